package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chaind/chaind/events"
	"go.etcd.io/bbolt"
)

// damageEnv makes the test binary open and walk damaged databases, so that a
// fault that cannot be caught ends that process and not the tests.
const damageEnv = "CHAIND_STORE_DAMAGED"

var namedErrors = []error{ErrMissing, ErrForeign, ErrTruncated, ErrCorrupt, ErrSchema, ErrLocked}

func named(err error) bool {
	for _, e := range namedErrors {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// openDamaged opens, reads, checks and writes every store below a directory and
// prints one line for each.
func openDamaged(root string) {
	dirs, err := fs.ReadDir(os.DirFS(root), ".")
	if err != nil {
		fmt.Println(err)
		os.Exit(3)
	}
	for _, d := range dirs {
		fmt.Println(d.Name(), exercise(filepath.Join(root, d.Name())))
	}
	os.Exit(0)
}

// exercise says what became of a store: "refused", "found" (opened, and Check
// has findings), "clean", or a text that begins with "WRONG".
func exercise(dir string) string {
	s, err := Open(Config{Dir: dir, LockTimeout: time.Millisecond})
	if err != nil {
		if !named(err) {
			return "WRONG open: " + err.Error()
		}
		return "refused"
	}
	defer s.Close()
	report, err := s.Check(context.Background(), nil)
	if err != nil {
		return "WRONG check: " + err.Error()
	}
	_, err = s.Append(context.Background(), &events.Batch{Stream: testStream, Events: []*events.Event{step("new", "a", 304)}})
	if err != nil && !named(err) {
		return "WRONG append: " + err.Error()
	}
	chains, _, err := s.Chains(ChainQuery{Limit: MaxPage})
	if err != nil && !named(err) {
		return "WRONG chains: " + err.Error()
	}
	for _, c := range chains {
		if _, err := s.Segments(c.Key, 0, MaxPage); err != nil && !named(err) {
			return "WRONG segments: " + err.Error()
		}
	}
	if len(report.Findings) > 0 {
		return "found"
	}
	return "clean"
}

// smallStore makes a store that holds the small vector and returns its files.
func smallStore(t testing.TB) (database, mark []byte) {
	t.Helper()
	cfg := testConfig(t)
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	tight(s)
	v := loadVector(t, "small")
	for i := 0; i < len(v.Messages); i += 100 { // each a frame and single entries
		mustAppend(t, s, v.batch(i, i+100))
	}
	mustCheck(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if database, err = os.ReadFile(filepath.Join(cfg.Dir, DatabaseFile)); err != nil {
		t.Fatal(err)
	}
	if mark, err = os.ReadFile(filepath.Join(cfg.Dir, MarkFile)); err != nil {
		t.Fatal(err)
	}
	return database, mark
}

func place(t testing.TB, dir string, database, mark []byte) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{DatabaseFile: database, MarkFile: mark} {
		if b == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// inOtherProcess exercises every store below root and returns the answers.
func inOtherProcess(t testing.TB, root string) map[string]string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), damageEnv+"="+root)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the process did not survive: %v\n%s", err, out[max(0, len(out)-4000):])
	}
	answers := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, answer, _ := strings.Cut(strings.TrimSpace(line), " ")
		answers[name] = answer
	}
	return answers
}

// Case B03: truncated at every page and at random places, with the mark and
// (as a restored backup) without: a named error or findings, never a crash,
// never a store that looks whole.
func TestB03Truncated(t *testing.T) {
	t.Parallel()
	database, mark := smallStore(t)
	root := t.TempDir()
	rnd := rand.New(rand.NewPCG(3, 3))
	var sizes []int
	for n := 0; n < len(database); n += 4096 {
		sizes = append(sizes, n)
	}
	for range 30 {
		sizes = append(sizes, rnd.IntN(len(database)))
	}
	meta := func() metaPage {
		p := &pageFile{f: strings.NewReader(string(database)), size: int64(len(database)), damagedMeta: -1}
		if err := p.readMetas(); err != nil {
			t.Fatal(err)
		}
		return p.meta
	}()
	for i, n := range sizes {
		if i%5 == 0 {
			place(t, filepath.Join(root, fmt.Sprintf("%d-marked", n)), database[:n], mark)
		}
		place(t, filepath.Join(root, fmt.Sprintf("%d-bare", n)), database[:n], nil)
	}
	for name, answer := range inOtherProcess(t, root) {
		var n int
		fmt.Sscanf(name, "%d-", &n)
		unused := strings.HasSuffix(name, "-bare") && uint64(n) >= meta.pages*uint64(meta.pageSize)
		if unused && answer == "clean" {
			continue // only space that no page uses was cut off
		}
		if answer != "refused" {
			t.Errorf("%s of %d bytes: %s", name, len(database), answer)
		}
	}
}

// A flipped bit anywhere in the pages in use is refused or found, or it hits
// bytes that nobody reads. What is read is never other than what was written.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	database, mark := smallStore(t)
	flips := 200
	if testing.Short() {
		flips = 60
	}
	root := t.TempDir()
	rnd := rand.New(rand.NewPCG(4, 4))
	for i := range flips {
		at := rnd.IntN(len(database))
		if i < 40 {
			at = i * 2 // header and fields of the first meta page
		}
		bit := byte(1) << rnd.IntN(8)
		database[at] ^= bit
		place(t, filepath.Join(root, fmt.Sprintf("%d-%d", at, bit)), database, mark)
		database[at] ^= bit
	}
	tally := map[string]int{}
	for name, answer := range inOtherProcess(t, root) {
		tally[answer]++
		if strings.HasPrefix(answer, "WRONG") {
			t.Errorf("flip at %s: %s", name, answer)
		}
	}
	t.Logf("%v", tally)
	if tally["refused"]+tally["found"] < flips/4 { // the rest hits pages that are free
		t.Errorf("flips were not noticed: %v", tally)
	}
}

// Case H10 and V31: one changed byte of a stored segment, page structure
// intact: reading names the chain, checking names the value.
func TestChangedValue(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	s := openStore(t, cfg)
	give(t, s, testStream, step("c", "a", 1), step("c", "b", 2), seal("c", "z", 3), step("d", "a", 4))
	s.Close()
	db, err := bbolt.Open(filepath.Join(cfg.Dir, DatabaseFile), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(tableJournal.name))
		value := append([]byte(nil), b.Get(key64(2))...)
		value[len(value)/2] ^= 1
		return b.Put(key64(2), value)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	s, err = Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var bad *CorruptError
	if _, err := s.Segments(testKey("c"), 0, 10); !errors.As(err, &bad) || !errors.Is(err, ErrCorrupt) ||
		bad.Chain != testKey("c") || bad.Bucket != "journal" || number(bad.Key) != 2 {
		t.Errorf("segments: %v", err)
	}
	report, err := s.Check(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, f := range report.Findings {
		found = found || f.Class == Mismatch && f.Chain == testKey("c") && f.Bucket == "journal"
	}
	if !found {
		t.Errorf("findings %+v", report.Findings)
	}
	if _, err := s.Segments(testKey("d"), 0, 10); err != nil {
		t.Errorf("another chain: %v", err)
	}
	chains, _, err := s.Chains(ChainQuery{})
	if err != nil || len(chains) != 2 || chains[1].Segments != 1 || chains[1].Damage != "" {
		t.Errorf("chains %+v, %v", chains, err)
	}
	wantVerdicts(t, give(t, s, testStream, step("d", "b", 5)), "appended")
}

// A chain whose record is damaged is listed as such, and hides no other one.
func TestDamagedChainIsListed(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	s := openStore(t, cfg)
	give(t, s, testStream, step("c", "a", 1), seal("c", "z", 2), step("d", "a", 3))
	s.Close()
	db, err := bbolt.Open(filepath.Join(cfg.Dir, DatabaseFile), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(tableChains.name))
		value := append([]byte(nil), b.Get(key64(1))...)
		value[len(value)-20] ^= 4
		return b.Put(key64(1), value)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(cfg); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	chains, _, err := s.Chains(ChainQuery{})
	if err != nil || len(chains) != 2 || chains[0].Damage == "" || chains[0].Key != testKey("c") || chains[1].Damage != "" {
		t.Errorf("chains %+v, %v", chains, err)
	}
	if chains, _, err = s.Chains(ChainQuery{Outcome: events.Open}); err != nil || len(chains) != 1 || chains[0].Key != testKey("d") {
		t.Errorf("open chains %+v, %v", chains, err)
	}
	wantVerdicts(t, give(t, s, testStream, step("d", "b", 4)), events.Appended)
}

// Check finds whatever is taken away from, or put into, any table.
func TestCheckFindsLossInAnyTable(t *testing.T) {
	t.Parallel()
	database, mark := smallStore(t)
	eachTampering(t, database, mark, func(t *testing.T, dir string) {
		s, err := Open(Config{Dir: dir})
		if err != nil {
			if !named(err) {
				t.Errorf("open: %v", err)
			}
			return
		}
		defer s.Close()
		report, err := s.Check(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Findings) == 0 {
			t.Error("nothing was found")
		}
	})
}

// eachTampering looks at copies of a database, each with one table changed in one way.
func eachTampering(t *testing.T, database, mark []byte, look func(t *testing.T, dir string)) {
	for _, table := range tables() {
		for _, what := range []string{"delete", "swap", "truncate"} {
			t.Run(table.name+" "+what, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				place(t, dir, database, mark)
				if !tamper(t, filepath.Join(dir, DatabaseFile), table, what) {
					t.Skip("nothing to tamper with")
				}
				look(t, dir)
			})
		}
	}
}

// tamper changes a table through bbolt, so that its pages stay in order.
func tamper(t *testing.T, path string, table *table, what string) (done bool) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(table.name))
		var keys [][]byte
		b.ForEach(func(k, _ []byte) error { keys = append(keys, append([]byte(nil), k...)); return nil })
		if len(keys) == 0 || what == "swap" && len(keys) < 2 {
			return nil
		}
		done = true
		first := keys[len(keys)/2]
		switch what {
		case "delete":
			return b.Delete(first)
		case "truncate":
			return b.Put(first, b.Get(first)[:len(b.Get(first))/2])
		}
		second := keys[(len(keys)/2+1)%len(keys)]
		a, z := append([]byte(nil), b.Get(first)...), append([]byte(nil), b.Get(second)...)
		return errors.Join(b.Put(first, z), b.Put(second, a))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return done
}

// Cases B17 and the rule of refused starts: a named error, and nothing changes.
func TestB17RefusedStarts(t *testing.T) {
	t.Parallel()
	database, mark := smallStore(t)
	other, otherMark := smallStore(t)
	foreign := foreignDatabase(t)
	newer := newerDatabase(t, database)
	for name, c := range map[string]struct {
		database, mark []byte
		expect         string
		want           error
	}{
		"missing beside its mark":   {nil, mark, "", ErrMissing},
		"empty":                     {[]byte{}, nil, "", ErrTruncated},
		"empty beside its mark":     {[]byte{}, mark, "", ErrTruncated},
		"no database":               {[]byte(strings.Repeat("not a database ", 1000)), nil, "", ErrForeign},
		"another program's":         {foreign, nil, "", ErrForeign},
		"another store's":           {other, mark, "", ErrForeign},
		"another environment's":     {other, otherMark, strings.Repeat("0", 32), ErrForeign},
		"from a newer program":      {newer, nil, "", ErrSchema},
		"mark damaged":              {database, []byte("chaind store"), "", ErrCorrupt},
		"both meta pages destroyed": {destroyMetas(database), nil, "", ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			place(t, dir, c.database, c.mark)
			before := content(t, dir)
			for _, open := range []func(Config) (*Store, error){Open, OpenReadOnly} {
				s, err := open(Config{Dir: dir, ExpectID: c.expect})
				if err == nil {
					s.Close()
				}
				if !errors.Is(err, c.want) || s != nil {
					t.Errorf("open: %v", err)
				} else if !strings.Contains(err.Error(), DatabaseFile) {
					t.Errorf("the error names no file: %v", err)
				}
			}
			if after := content(t, dir); after != before {
				t.Errorf("the directory was\n%s and is\n%s", before, after)
			}
		})
	}
	if _, err := OpenReadOnly(Config{Dir: filepath.Join(t.TempDir(), "none")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read-only open of no directory: %v", err)
	}
}

func content(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		file, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %d %x\n", e.Name(), len(file), file[:min(len(file), 20)])
	}
	return b.String()
}

func foreignDatabase(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "other.db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte("meta"))
		return err
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newerDatabase(t *testing.T, database []byte) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), DatabaseFile)
	if err := os.WriteFile(path, database, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		w := new(writer)
		w.reset(new(Store), tx)
		return w.write(tableMeta, metaIdentity, &identity{schema: SchemaVersion + 1, id: strings.Repeat("7", 32)})
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func destroyMetas(database []byte) []byte {
	b := append([]byte(nil), database...)
	b[pageHeader+20] ^= 1
	b[4096+pageHeader+20] ^= 1
	return b
}
