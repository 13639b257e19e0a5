package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/chaind/chaind/internal/disktest"
)

// compactEnv makes the test binary compact the store in a directory and die
// around a step: directory, step, "before" or "after".
const compactEnv = "CHAIND_STORE_COMPACT"

// compactSteps are the durable steps of a compaction in their order.
var compactSteps = []string{"sync the copy", "lower the mark", "rename", "sync the name"}

// bloat leaves some MiB of free pages in the file.
func bloat(t testing.TB, s *Store) {
	t.Helper()
	err := s.db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("junk"))
		for i := 0; err == nil && i < 500; i++ {
			err = b.Put(key64(uint64(i)), make([]byte, 10_000))
		}
		return err
	})
	if err == nil {
		err = s.db.Update(func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte("junk")) })
	}
	if err != nil {
		t.Fatal(err)
	}
	s.raiseMark()
}

// half is a store with the first half of the vector and much free space.
func half(t testing.TB) (*Store, *vector) {
	t.Helper()
	v := loadVector(t, "small")
	s := openStore(t, testConfig(t))
	tight(s)
	for i := 0; i < 150; i += 5 {
		mustAppend(t, s, v.batch(i, i+5))
	}
	bloat(t, s)
	return s, v
}

// heads are all chains with what they hold.
func heads(t testing.TB, s *Store) []ChainSummary {
	t.Helper()
	all, _, err := s.Chains(ChainQuery{Limit: MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// wantFiles wants that the directory holds the database and its mark alone.
func wantFiles(t testing.TB, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{DatabaseFile, MarkFile}, names); diff != "" {
		t.Errorf("the directory (-want +got):\n%s", diff)
	}
}

// Case B11: evidence is never deleted, but pages come free all the same. A
// compaction gives them back and changes no id, head or watermark; the store goes
// on with the same handle, and after a restart.
func TestB11CompactionChangesNothing(t *testing.T) {
	t.Parallel()
	s, v := half(t)
	before, mark, id := heads(t, s), must(s.Watermark(testStream)), s.ID()
	r, err := s.Compact(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(s.cfg.Dir, DatabaseFile))
	if err != nil || info.Size() != r.After || r.After*4 > r.Before || r.Values == 0 {
		t.Errorf("%+v, and the file has %d bytes (%v)", r, info.Size(), err)
	}
	wantFiles(t, s.cfg.Dir)
	for range 2 {
		if diff := cmp.Diff(before, heads(t, s)); diff != "" || s.ID() != id || must(s.Watermark(testStream)) != mark {
			t.Errorf("id %s, %+v, chains (-before +after):\n%s", s.ID(), must(s.Watermark(testStream)), diff)
		}
		mustCheck(t, s)
		s = reopen(t, s)
	}
	mustAppend(t, s, v.batch(140, 303)) // with some that come again
	v.verify(t, s)
	if epochs, err := s.Epochs(); err != nil || len(epochs) != 1 {
		t.Errorf("taken for a restored backup: %+v, %v", epochs, err)
	}
	if again, err := s.Compact(t.Context(), nil); err != nil || again.After > 2*r.After+1<<20 {
		t.Errorf("again: %+v, %v", again, err)
	}
	v.verify(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Compact(t.Context(), s.cfg, nil); err != nil {
		t.Errorf("of a stopped store: %v", err)
	}
	s = openStore(t, s.cfg)
	v.verify(t, s)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Each step of a compaction fails, with and without effect; then the same handle
// goes on, or the next one. There is the old database or the new one, nothing
// besides, and nothing has changed.
func TestCompactionFaults(t *testing.T) {
	t.Parallel()
	for at, name := range compactSteps {
		for _, persist := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, persisted %v", name, persist), func(t *testing.T) {
				t.Parallel()
				s, v := half(t)
				before := heads(t, s)
				var met []string
				s.testingOnly.compact = func(step string, do func() error) error {
					if met = append(met, step); step != name {
						return do()
					}
					if persist {
						if err := do(); err != nil {
							t.Error(err)
						}
					}
					return errInjected
				}
				r, err := s.Compact(t.Context(), nil)
				if err == nil || r != nil || !slices.Equal(met, compactSteps[:at+1]) {
					t.Fatalf("%+v, %v, steps %q", r, err, met)
				}
				if diff := cmp.Diff(before, heads(t, s)); diff != "" {
					t.Errorf("readers see (-before +after):\n%s", diff)
				}
				renamed := at > 2 || at == 2 && persist
				if broken := errors.Is(err, ErrBroken); broken != renamed {
					t.Fatalf("%v, renamed: %v", err, renamed)
				}
				if !renamed {
					wantFiles(t, s.cfg.Dir)
					s.testingOnly = hooks{}
					mustAppend(t, s, v.batch(150, 160))
				} else if _, err := s.Append(t.Context(), v.batch(150, 160)); !errors.Is(err, ErrBroken) {
					t.Errorf("append under a name that may go: %v", err)
				}
				s = reopen(t, s)
				wantFiles(t, s.cfg.Dir)
				mustCheck(t, s)
				if _, err := s.Compact(t.Context(), nil); err != nil {
					t.Error(err)
				}
				mustAppend(t, s, v.batch(150, 303))
				v.verify(t, s)
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// compactAndDie kills its own process around a step of a compaction.
func compactAndDie(spec string) {
	parts := strings.Split(spec, "|")
	s, err := Open(Config{Dir: parts[0]})
	if err != nil {
		fmt.Println(err)
		os.Exit(3)
	}
	die := func(step, when string) {
		if step == parts[1] && when == parts[2] {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	s.testingOnly.compact = func(step string, do func() error) error {
		die(step, "before")
		err := do()
		die(step, "after")
		return err
	}
	_, err = s.Compact(context.Background(), nil)
	fmt.Println("not killed:", err)
	os.Exit(3)
}

// kill -9 around any step leaves the old database or the new one, whole, with
// its mark, and the next start removes what else there is.
func TestKilledWhileCompacting(t *testing.T) {
	t.Parallel()
	s, v := half(t)
	before, id := heads(t, s), s.ID()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, step := range compactSteps {
		for _, when := range []string{"before", "after"} {
			dir := filepath.Join(t.TempDir(), "store")
			if err := os.CopyFS(dir, os.DirFS(s.cfg.Dir)); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(os.Args[0], "-test.run=^$")
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%s|%s", compactEnv, dir, step, when))
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("%s %s: %v: %s", when, step, err, out)
			}
			n := openStore(t, Config{Dir: dir, Now: s.cfg.Now})
			wantFiles(t, dir)
			if diff := cmp.Diff(before, heads(t, n)); diff != "" || n.ID() != id {
				t.Errorf("killed %s %s: (-before +after):\n%s", when, step, diff)
			}
			mustAppend(t, n, v.batch(150, 303))
			v.verify(t, n)
		}
	}
}

// A compaction beside appends, readers, a check and a backup: nobody sees it.
func TestCompactionWhileRunning(t *testing.T) {
	t.Parallel()
	s, v := half(t)
	ctx, cancel := context.WithCancel(t.Context())
	var readers, writer sync.WaitGroup
	for _, read := range []func() error{
		func() error { _, _, err := s.Chains(ChainQuery{}); return err },
		func() error { _, err := s.Stats(); return err },
		func() error { _, err := s.Backup(ctx, new(discard)); return err },
		func() error {
			r, err := s.Check(ctx, nil)
			if err == nil && len(r.Findings) > 0 {
				err = fmt.Errorf("findings: %+v", r.Findings)
			}
			return err
		},
	} {
		readers.Go(func() {
			for ctx.Err() == nil {
				if err := read(); err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
					return
				}
			}
		})
	}
	writer.Go(func() {
		for i := 150; i < 303; i += 3 {
			if _, err := s.Append(t.Context(), v.batch(i, i+3)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 2 {
		if _, err := s.Compact(t.Context(), nil); err != nil {
			t.Error(err)
		}
	}
	writer.Wait()
	if _, err := s.Compact(t.Context(), nil); err != nil {
		t.Error(err)
	}
	cancel()
	readers.Wait()
	v.verify(t, s)
	wantFiles(t, s.cfg.Dir)
	s = reopen(t, s)
	v.verify(t, s)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

type discard struct{}

func (*discard) Write(p []byte) (int, error) { return len(p), nil }

// What cannot be compacted stays as it is.
func TestCompactionRefused(t *testing.T) {
	t.Parallel()
	s, _ := half(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Compact(cancelled, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	late, stop := context.WithCancel(t.Context())
	s.testingOnly.compact = func(_ string, do func() error) error { stop(); return do() }
	if _, err := s.Compact(late, nil); err != nil {
		t.Errorf("cancelled when all was read: %v", err) // a small store is compared without a look at ctx
	}
	s.testingOnly = hooks{}
	wantFiles(t, s.cfg.Dir)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	reader, err := OpenReadOnly(s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Compact(t.Context(), nil); !errors.Is(err, ErrReadOnly) {
		t.Errorf("read-only: %v", err)
	}
	busy := s.cfg
	busy.LockTimeout = 1
	if _, err := Compact(t.Context(), busy, nil); !errors.Is(err, ErrLocked) {
		t.Errorf("beside a reader: %v", err)
	}
	reader.Close()
	if !tamper(t, filepath.Join(s.cfg.Dir, DatabaseFile), tableJournal, "truncate") {
		t.Fatal("not damaged")
	}
	before := content(t, s.cfg.Dir)
	if _, err := Compact(t.Context(), s.cfg, nil); !errors.Is(err, ErrCorrupt) {
		t.Errorf("damaged: %v", err)
	}
	if after := content(t, s.cfg.Dir); after != before {
		t.Errorf("the directory was\n%s and is\n%s", before, after)
	}
	missing := filepath.Join(t.TempDir(), "none")
	if _, err := Compact(t.Context(), Config{Dir: missing}, nil); err == nil {
		t.Error("a store that is not there was compacted")
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("the directory was made")
	}
	if _, err := Compact(t.Context(), Config{Dir: t.TempDir()}, nil); !errors.Is(err, ErrMissing) {
		t.Errorf("empty directory: %v", err)
	}
}

// Who waited for the lock of a file that a compaction then replaced does not
// write to it.
func TestReplacedWhileWaitingForTheLock(t *testing.T) {
	t.Parallel()
	s, v := half(t)
	waiting, err := os.OpenFile(filepath.Join(s.cfg.Dir, DatabaseFile), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	if _, err := s.Compact(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(s.cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	late := &Store{cfg: s.cfg, newest: SchemaVersion, mark: &mark{root: root}}
	if err := late.openFile(waiting); !errors.Is(err, errReplaced) {
		t.Errorf("the old file was opened: %v", err)
	}
	busy := s.cfg
	busy.LockTimeout = 1
	if _, err := Open(busy); !errors.Is(err, ErrLocked) {
		t.Errorf("the new file is not locked: %v", err)
	}
	mustAppend(t, s, v.batch(150, 303))
	v.verify(t, s)
}

// On a full disk the copy fails, goes away, and the old file is in use.
func TestCompactionOnFullDisk(t *testing.T) {
	dir := disktest.Small(t, "2m")
	s, err := Open(Config{Dir: filepath.Join(dir, "store")})
	if err != nil {
		t.Fatal(err)
	}
	applied := fill(t, s, 0)
	if _, err := s.Compact(t.Context(), nil); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("compacted on a full disk: %v", err)
	}
	wantFiles(t, s.cfg.Dir)
	if st := state(t, s, "c"); st.Segments != applied {
		t.Errorf("%d segments, and %d were acknowledged", st.Segments, applied)
	}
	mustCheck(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCompactionThatSavesNothingLeavesTheFile: a copy that is no smaller does not
// take the place of the database.
func TestCompactionThatSavesNothingLeavesTheFile(t *testing.T) {
	t.Parallel()
	s, _ := half(t)
	if _, err := s.Compact(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.cfg.Dir, DatabaseFile)
	before := must(os.Stat(path))
	r, err := s.Compact(t.Context(), nil)
	if err != nil || r.After != r.Before || r.Before != before.Size() || r.Values == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if !os.SameFile(before, must(os.Stat(path))) {
		t.Error("the file was replaced for nothing")
	}
	wantFiles(t, s.cfg.Dir)
}
