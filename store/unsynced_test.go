package store

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chaind/chaind/events"
	"go.etcd.io/bbolt"
)

// leftUnsynced is a closed store whose last commit failed in its sync: with effect
// in what the next process reads, or without.
func leftUnsynced(t *testing.T, persisted bool) (*Store, *vector) {
	t.Helper()
	s, v := half(t)
	s.testingOnly.commit = func(tx *bbolt.Tx) error {
		if persisted {
			return errors.Join(tx.Commit(), pathError("sync", syscall.EIO))
		}
		return errors.Join(tx.Rollback(), pathError("sync", syscall.EIO))
	}
	if _, err := s.Append(t.Context(), v.batch(150, 170)); !errors.Is(err, ErrBroken) {
		t.Fatalf("failed sync: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(s.cfg.Dir, UnsyncedFile)); err != nil {
		t.Fatalf("the failed sync is not noted: %v", err)
	}
	return s, v
}

func inode(t *testing.T, s *Store) os.FileInfo {
	t.Helper()
	info, err := os.Stat(filepath.Join(s.cfg.Dir, DatabaseFile))
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// After a failed sync the next start does not believe what it reads: it names the
// failure, checks the database, writes it into another file and syncs that, before
// anything is committed. Nothing is acknowledged that was in no such file.
func TestFailedSyncIsMadeGoodAtTheNextStart(t *testing.T) {
	t.Parallel()
	for _, persisted := range []bool{false, true} {
		s, v := leftUnsynced(t, persisted)
		before, cfg := inode(t, s), s.cfg
		r, err := OpenReadOnly(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(r.Unsynced(), "input/output error") {
			t.Errorf("its reader is told %q", r.Unsynced())
		}
		if f := must(r.Check(t.Context(), nil)).Findings; len(f) != 1 || f[0].Class != Torn || !strings.Contains(f[0].Detail, "input/output error") {
			t.Errorf("the check says %+v", f)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		var steps []string
		next := &Store{newest: SchemaVersion}
		next.testingOnly.compact = func(step string, do func() error) error {
			steps = append(steps, step)
			return do()
		}
		next.testingOnly.beforeCommit = func() error {
			if len(steps) != len(compactSteps) {
				t.Errorf("a commit after %q", steps)
			}
			return nil
		}
		if s, err = open(cfg.withDefaults(), next); err != nil {
			t.Fatal(err)
		}
		if len(steps) != len(compactSteps) || os.SameFile(before, inode(t, s)) {
			t.Errorf("persisted %v: it was not written anew: %q", persisted, steps)
		}
		if !strings.Contains(log.String(), "written anew") || !strings.Contains(log.String(), "input/output error") {
			t.Errorf("the log does not name it: %s", log.String())
		}
		if s.Unsynced() != "" {
			t.Errorf("made good, and it says %q", s.Unsynced())
		}
		wantFiles(t, cfg.Dir)
		mustAppend(t, s, v.batch(150, 303))
		v.verify(t, s)
		before = inode(t, s)
		s = reopen(t, s)
		if !os.SameFile(before, inode(t, s)) || len(must(s.Epochs())) != 1 {
			t.Errorf("and once more: %+v", must(s.Epochs()))
		}
		v.verify(t, s)
		mustCheck(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// When the database cannot be written anew, or is damaged, the start is refused by
// name, and the note stays, whatever step failed, with or without effect.
func TestFailedSyncStaysNotedUntilItIsMadeGood(t *testing.T) {
	t.Parallel()
	s, v := leftUnsynced(t, true)
	for _, name := range compactSteps {
		for _, persist := range []bool{false, true} {
			next := &Store{newest: SchemaVersion}
			next.testingOnly.compact = func(step string, do func() error) error {
				if step != name {
					return do()
				}
				if persist {
					return errors.Join(do(), errInjected)
				}
				return errInjected
			}
			if _, err := open(s.cfg, next); !errors.Is(err, ErrUnsynced) || !strings.Contains(err.Error(), "chaind check") {
				t.Fatalf("%s, persisted %v: %v", name, persist, err)
			}
			if _, err := os.Stat(filepath.Join(s.cfg.Dir, UnsyncedFile)); err != nil {
				t.Errorf("%s, persisted %v: %v", name, persist, err)
			}
		}
	}
	before := edit(t, s.cfg, tableJournal, key64(1), flip)
	if _, err := Open(s.cfg); !errors.Is(err, ErrUnsynced) || !errors.Is(err, ErrCorrupt) {
		t.Errorf("damaged: %v", err)
	}
	edit(t, s.cfg, tableJournal, key64(1), func([]byte) []byte { return before })
	s = openStore(t, s.cfg)
	mustAppend(t, s, v.batch(150, 303))
	v.verify(t, s)
}

// A commit that cannot even be noted says so, and is refused all the same.
func TestFailedSyncThatCannotBeNoted(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	cfg := testConfig(t)
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := os.Mkdir(filepath.Join(cfg.Dir, creatingPrefix+UnsyncedFile), 0o700); err != nil {
		t.Fatal(err)
	}
	s.testingOnly.commit = func(tx *bbolt.Tx) error { return errors.Join(tx.Rollback(), syscall.EIO) }
	if _, err := s.Append(t.Context(), &events.Batch{Stream: testStream, Events: []*events.Event{step("c", "a", 1)}}); !errors.Is(err, ErrBroken) {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), UnsyncedFile) {
		t.Errorf("the log says %s", log.String())
	}
}
