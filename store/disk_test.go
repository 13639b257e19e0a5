package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chaind/chaind/internal/disktest"
)

// Case B01: the second opener gets an error in time, which names the file.
func TestB01SecondOpenerIsTold(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.LockTimeout = 50 * time.Millisecond
	s := openStore(t, cfg)
	for name, open := range map[string]func(Config) (*Store, error){"writer": Open, "reader": OpenReadOnly} {
		start := time.Now()
		_, err := open(cfg)
		var locked *LockedError
		if !errors.Is(err, ErrLocked) || !errors.As(err, &locked) || !strings.Contains(err.Error(), filepath.Join(cfg.Dir, DatabaseFile)) {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("%s: waited %v", name, took)
		}
	}
	s.Close()
	a, err := OpenReadOnly(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := OpenReadOnly(cfg)
	if err != nil {
		t.Fatalf("a second reader: %v", err)
	}
	defer b.Close()
	if _, err := Open(cfg); !errors.Is(err, ErrLocked) {
		t.Errorf("writer beside readers: %v", err)
	}
	if _, err := b.Append(context.Background(), nil); !errors.Is(err, ErrReadOnly) {
		t.Errorf("append to a reader: %v", err)
	}
	mustCheck(t, b)
}

// Case B05: the disk runs full in the middle of commits. Nothing acknowledged
// is lost, and the same handle goes on when there is space again.
func TestB05DiskFull(t *testing.T) {
	dir := disktest.Small(t, "4m")
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, bytes.Repeat([]byte{1}, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(Config{Dir: filepath.Join(dir, "store")})
	if err != nil {
		t.Fatal(err)
	}
	applied := fill(t, s, 0)
	if st, err := s.Stats(); err != nil || st.LastWriteError == "" {
		t.Errorf("the full disk does not show: %+v, %v", st, err)
	}
	mustCheck(t, s)
	if st := state(t, s, "c"); st.Segments != applied {
		t.Errorf("%d segments, and %d were acknowledged", st.Segments, applied)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	more := fill(t, s, applied)
	if more <= applied {
		t.Fatal("nothing could be written after space was there again")
	}
	s = reopen(t, s)
	if st := state(t, s, "c"); st.Segments != more {
		t.Errorf("%d segments after a restart, and %d were acknowledged", st.Segments, more)
	}
	mustCheck(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// fill appends until the disk is full and returns the last sequence applied.
func fill(t *testing.T, s *Store, applied uint64) uint64 {
	t.Helper()
	for {
		b := batchOf("c", applied+1, 50)
		_, err := s.Append(context.Background(), b)
		if errors.Is(err, syscall.ENOSPC) {
			return applied
		}
		if err != nil {
			t.Fatalf("append to a full disk: %v", err)
		}
		if applied += 50; applied > 100000 {
			t.Fatal("the disk does not fill")
		}
	}
}

// A store cannot be created on a full disk, and the attempt leaves nothing that
// a later one trips over.
func TestCreateOnFullDisk(t *testing.T) {
	dir := disktest.Small(t, "1m")
	ballast := filepath.Join(dir, "ballast")
	os.WriteFile(ballast, bytes.Repeat([]byte{1}, 2<<20), 0o600) // as much as there is
	if _, err := Open(Config{Dir: filepath.Join(dir, "store")}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("open: %v", err)
	}
	os.Remove(ballast)
	s, err := Open(Config{Dir: filepath.Join(dir, "store")})
	if err != nil {
		t.Fatal(err)
	}
	mustCheck(t, s)
	s.Close()
}

// Case B09: the backup is a store of its own; a restored one goes on from where
// it was taken, and what comes again is recognised.
func TestBackup(t *testing.T) {
	t.Parallel()
	v := loadVector(t, "small")
	s := openStore(t, testConfig(t))
	mustAppend(t, s, v.batch(0, 200))
	var b bytes.Buffer
	n, err := s.Backup(context.Background(), &b)
	if err != nil || n != int64(b.Len()) {
		t.Fatalf("backup of %d bytes, %d written: %v", n, b.Len(), err)
	}
	mustAppend(t, s, v.batch(200, 303))
	dir := t.TempDir()
	place(t, dir, b.Bytes(), nil)
	restored := openStore(t, Config{Dir: dir})
	if restored.ID() != s.ID() {
		t.Error("the backup has another id")
	}
	if w, _ := restored.Watermark(testStream); w != (Watermark{2, 200}) {
		t.Errorf("watermark %v", w)
	}
	epochs, err := restored.Epochs()
	if err != nil || len(epochs) != 2 || epochs[1].Why != WhyRestored || epochs[1].Base != 200 {
		t.Errorf("the restore is not recorded: %+v, %v", epochs, err)
	}
	restored = reopen(t, restored)
	if again, _ := restored.Epochs(); len(again) != 2 {
		t.Errorf("recorded again at the next start: %+v", again)
	}
	mustAppend(t, restored, v.batch(150, 303))
	v.verify(t, restored)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Backup(ctx, &b); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled backup: %v", err)
	}
}

// Case B07: readers that come and go leave the file as large as it would be
// without them, because none of them keeps a transaction: one that is open would
// also hold up the writer that lets the file grow, and the end of the store.
func TestB07ReadersDoNotGrowTheFile(t *testing.T) {
	t.Parallel()
	size := func(cfg Config, read bool) (int64, error) {
		s, err := Open(cfg)
		if err != nil {
			return 0, err
		}
		for i := uint64(0); i < 100; i++ {
			_, err := s.Append(t.Context(), batchOf(fmt.Sprint("c", i%3), i*20+1, 20))
			if err == nil && read {
				_, _, listed := s.Chains(ChainQuery{})
				err = errors.Join(listed, errOf(s.Segments(testKey("c0"), 0, MaxPage)), errOf(s.Chain(testKey("c0"))))
			}
			if err != nil {
				return 0, err
			}
		}
		st, err := s.Stats()
		return st.FileBytes, errors.Join(err, s.Close())
	}
	type result struct {
		with, without int64
		err           error
	}
	done := make(chan result, 1)
	plain, read := testConfig(t), testConfig(t)
	go func() {
		without, err := size(plain, false)
		with, failed := size(read, true)
		done <- result{with, without, errors.Join(err, failed)}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			t.Fatal(r.err)
		}
		if r.with > r.without*5/4 {
			t.Errorf("%d bytes with readers, %d without", r.with, r.without)
		}
	case <-time.After(5 * time.Minute):
		t.Fatal("the store waits for a read transaction that somebody has left open")
	}
}
