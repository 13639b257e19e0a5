package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

// olderStore is a store with the small vector, which a program whose schema is
// the next version finds.
func olderStore(t *testing.T) (cfg Config, v *vector) {
	v = loadVector(t, "small")
	s := openStore(t, testConfig(t))
	mustAppend(t, s, v.batch(0, 303))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return s.cfg, v
}

// A store of an older version is refused until it is upgraded, and upgraded with
// a copy kept, in one transaction.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	cfg, v := olderStore(t)
	const next = SchemaVersion + 1
	if _, err := open(cfg, &Store{newest: next}); !errors.Is(err, ErrSchema) {
		t.Fatalf("an older store is opened: %v", err)
	}
	failing := errors.New("half way")
	addTable := func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("new")); return err }
	for name, steps := range map[string]map[uint32]migration{
		"no way":   nil,
		"half way": {SchemaVersion: func(tx *bbolt.Tx) error { return errors.Join(addTable(tx), failing) }},
	} {
		if _, err := upgrade(t.Context(), cfg, next, steps); !errors.Is(err, ErrSchema) && !errors.Is(err, failing) {
			t.Fatalf("%s: %v", name, err)
		}
		s := openStore(t, cfg) // as it was
		v.verify(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		os.Remove(filepath.Join(cfg.Dir, fmt.Sprintf("%s.schema-%d", DatabaseFile, SchemaVersion)))
	}
	r, err := upgrade(t.Context(), cfg, next, map[uint32]migration{SchemaVersion: addTable})
	if err != nil || r.From != SchemaVersion || r.To != next {
		t.Fatalf("%+v, %v", r, err)
	}
	kept, err := os.ReadFile(r.Copy)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	place(t, dir, kept, nil)
	old := openStore(t, Config{Dir: dir})
	v.verify(t, old)
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(cfg); !errors.Is(err, ErrSchema) {
		t.Errorf("the older program opens the newer store: %v", err)
	}
	s, err := open(cfg, &Store{newest: next})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	v.verify(t, s)
	if r, err := upgrade(t.Context(), Config{Dir: t.TempDir()}, next, nil); !errors.Is(err, ErrMissing) {
		t.Errorf("an empty directory: %+v, %v", r, err)
	}
}

// What this program has is at its version already.
func TestUpgradeNothing(t *testing.T) {
	t.Parallel()
	cfg, _ := olderStore(t)
	if r, err := Upgrade(t.Context(), cfg); err != nil || *r != (UpgradeReport{From: SchemaVersion, To: SchemaVersion}) {
		t.Errorf("%+v, %v", r, err)
	}
}
