package sealer

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chaind/chaind/internal/disktest"
	"github.com/chaind/chaind/internal/durable"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
)

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
	var disk *disktest.Forgetful
	seen := map[[32]byte]bool{}
	var all []outage
	var database []byte
	pending := uint64(0)
	disk = disktest.NewForgetful(t, root, func() {
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
			o := outage{disk.After(kept), database}
			if key := sha256.Sum256(fmt.Append(nil, pending, o.files)); !seen[key] {
				seen[key] = true
				all = append(all, o)
			}
		}
	})
	tree.TestingOnlyAround(disk.Around)
	dir, err := sidecar.OpenDirIn(tree, root)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	sealAll(t, Config{Store: db, Sidecars: openSidecars(t, dir), Workers: 1, SkipAudit: true})
	disk.Cut()
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
