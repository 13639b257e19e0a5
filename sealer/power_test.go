package sealer

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chaind/chaind/internal/durable"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
)

// forgetful is a model of a file system beneath evidence files: bytes and names
// are certain after their fsync only. cut is called around every system call.
type forgetful struct {
	t    *testing.T
	root string
	cut  func()

	mu    sync.Mutex
	nodes []*node
	dirs  map[string]*entries // by name; "." is there from the start
}

type node struct {
	info           os.FileInfo
	cached, synced string
}

type entries struct{ cached, synced map[string]*node } // nil: a directory

func newEntries() *entries { return &entries{map[string]*node{}, map[string]*node{}} }

// around follows one system call. It holds the lock throughout, so that calls
// come one after the other, as cuts between them do.
func (f *forgetful) around(op, name string, do func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut()
	err := do()
	if err == nil {
		f.follow(op, name)
	}
	f.cut()
	return err
}

func (f *forgetful) follow(op, name string) {
	dir, base := path.Split(name)
	parent := f.dir(path.Clean(dir))
	switch op {
	case "write":
		text, err := os.ReadFile(filepath.Join(f.root, name))
		if err != nil {
			f.t.Fatal(err)
		}
		f.nodes = append(f.nodes, &node{info: f.stat(name), cached: string(text)})
	case "mkdir":
		f.dir(name)
	case "rename", "link":
		parent.cached[base] = f.node(name)
	case "unlink":
		delete(parent.cached, base)
	case "syncfs":
		for _, n := range f.nodes {
			n.synced = n.cached
		}
		for _, d := range f.dirs {
			d.synced = maps.Clone(d.cached)
		}
	case "fsync":
		if d := f.dirs[name]; d != nil {
			d.synced = maps.Clone(d.cached)
		} else {
			n := f.node(name)
			n.synced = n.cached
		}
	}
}

// dir finds a directory, or takes note of it; it may have been made otherwise.
func (f *forgetful) dir(name string) *entries {
	if d := f.dirs[name]; d != nil {
		return d
	}
	f.dirs[name] = newEntries()
	f.dir(path.Dir(name)).cached[path.Base(name)] = nil
	return f.dirs[name]
}

func (f *forgetful) stat(name string) os.FileInfo {
	info, err := os.Lstat(filepath.Join(f.root, name))
	if err != nil {
		f.t.Fatal(err)
	}
	return info
}

// node is the file that has the name now; numbers of files that are gone are
// given again, so the last one counts.
func (f *forgetful) node(name string) *node {
	info := f.stat(name)
	for i := len(f.nodes) - 1; i >= 0; i-- {
		if os.SameFile(f.nodes[i].info, info) {
			return f.nodes[i]
		}
	}
	f.t.Fatalf("%s is no file that was written", name)
	return nil
}

// after is what is there after a power cut now. kept: names survive although
// they were not synced, and their bytes do not.
func (f *forgetful) after(kept bool) map[string]string {
	files := map[string]string{}
	var walk func(dir string)
	walk = func(dir string) {
		d := f.dirs[dir]
		list := d.synced
		if kept {
			list = d.cached
		}
		for base, n := range list {
			if name := path.Join(dir, base); n != nil {
				files[name] = n.synced
			} else {
				walk(name)
			}
		}
	}
	walk(".")
	return files
}

// outage is what a power cut left: the evidence files, and the database.
type outage struct {
	files    map[string]string
	database []byte
}

// outages seals everything in a store and returns what each different power cut
// on the way would have left.
func outages(t *testing.T, db *store.Store) []outage {
	root := filepath.Join(t.TempDir(), "artifacts")
	tree, err := durable.Create(root)
	if err != nil {
		t.Fatal(err)
	}
	f := &forgetful{t: t, root: root, dirs: map[string]*entries{".": newEntries()}}
	seen := map[[32]byte]bool{}
	var all []outage
	var database []byte
	pending := uint64(0)
	f.cut = func() {
		st, err := db.Stats()
		if err == nil && (database == nil || st.PendingSeals != pending) {
			var b bytes.Buffer
			_, err = db.Backup(t.Context(), &b)
			database, pending = b.Bytes(), st.PendingSeals
		}
		if err != nil {
			t.Error(err)
		}
		for _, kept := range []bool{false, true} {
			o := outage{f.after(kept), database}
			if key := sha256.Sum256(fmt.Append(nil, pending, o.files)); !seen[key] {
				seen[key] = true
				all = append(all, o)
			}
		}
	}
	tree.TestingOnlyAround(f.around)
	dir, err := sidecar.OpenDirIn(tree, root)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	sealAll(t, Config{Store: db, Sidecars: openSidecars(t, dir), Workers: 1, SkipAudit: true})
	f.mu.Lock()
	f.cut()
	f.mu.Unlock()
	return all
}

// place lays the files of an outage out and opens them.
func (o *outage) place(t *testing.T) (*store.Store, *sidecar.Dir) {
	dir := t.TempDir()
	for name, text := range o.files {
		file := filepath.Join(dir, "artifacts", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "db"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "db", store.DatabaseFile), o.database, 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := sidecar.OpenDir(filepath.Join(dir, "artifacts"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { files.Close() })
	return openStore(t, filepath.Join(dir, "db")), files
}

// checkRecordedEvidence: what the database calls sealed is there, whole, before
// anything has been repaired.
func checkRecordedEvidence(t *testing.T, db *store.Store, files sidecar.Blobs) (sealed int) {
	t.Helper()
	if r, err := db.Check(t.Context(), nil); err != nil || len(r.Findings) > 0 {
		t.Errorf("check: %+v, %v", r, err)
	}
	chains, _, err := db.Chains(store.ChainQuery{Limit: store.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range chains {
		if c.Sealed == nil {
			continue
		}
		sealed++
		if c.Sealed.Path != "" { // "": a chain without a segment
			if text := content(t, files, c.Sealed.Path); segments.Sum([]byte(text)) != c.Sealed.SHA256 {
				t.Errorf("chain %s is sealed, and its evidence is not there: %.60q", c.Key.Chain, text)
			}
		}
		if text := content(t, files, c.Sealed.BundlePath); !strings.HasPrefix(text, "{") {
			t.Errorf("chain %s is sealed, and its trust bundle is not there: %.60q", c.Key.Chain, text)
		}
	}
	return sealed
}

// TestPowerCutsWhileSealing cuts the power around every system call of sealing,
// on a disk that forgets what was not synced: whatever the database calls sealed
// is there whole at once, and the next start ends with the files, byte for byte,
// that a run without a cut leaves.
func TestPowerCutsWhileSealing(t *testing.T) {
	t.Parallel()
	list := loadEvents(t, "small")
	restarts := 12
	if list = list[:200]; testing.Short() {
		restarts = 4
	}
	db := openStore(t, t.TempDir())
	feed(t, db, list, 1000)
	all := outages(t, db)
	last := all[len(all)-1]
	_, whole := last.place(t)
	want := dump(t, whole)
	delete(want, ".chaind/owner")
	stride := max(1, len(all)/restarts)
	reached := 0
	for i := 0; i < len(all); i += stride {
		db, files := all[i].place(t)
		reached = max(reached, checkRecordedEvidence(t, db, files))
		sealAll(t, Config{Store: db, Sidecars: openSidecars(t, files), Workers: 1, SkipAudit: true})
		audit(t, Config{Store: db, Sidecars: openSidecars(t, files)})
		got := dump(t, files)
		delete(got, ".chaind/owner")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("power cut %d of %d (-without +with):\n%.2000s", i, len(all), diff)
		}
	}
	if len(all) < 20 || reached == 0 || len(want) < 10 {
		t.Errorf("%d cuts, %d sealed chains at most, %d files: too little was met", len(all), reached, len(want))
	}
}
