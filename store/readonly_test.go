//go:build linux

package store

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/chaind/chaind/internal/disktest"
)

// On a file system that is read-only a store cannot be opened for writing, with
// the system's own reason; it can be read and checked; and it goes on when the
// file system is writable again.
func TestReadOnlyFileSystem(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a file system needs root")
	}
	root := t.TempDir()
	if err := syscall.Mount("tmpfs", root, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("mount: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(root, syscall.MNT_DETACH) })
	remount := func(flags uintptr) {
		t.Helper()
		if err := syscall.Mount("tmpfs", root, "tmpfs", syscall.MS_REMOUNT|flags, ""); err != nil {
			t.Fatal(err)
		}
	}
	v := loadVector(t, "small")
	cfg := Config{Dir: filepath.Join(root, "store")}
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, v.batch(0, 200))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	remount(syscall.MS_RDONLY)
	if s, err := Open(cfg); !errors.Is(err, syscall.EROFS) || s != nil {
		t.Errorf("open for writing: %v", err)
	}
	if _, err := Open(Config{Dir: filepath.Join(root, "other")}); !errors.Is(err, syscall.EROFS) {
		t.Errorf("create: %v", err)
	}
	if _, err := Compact(t.Context(), cfg, nil); !errors.Is(err, syscall.EROFS) {
		t.Errorf("compact: %v", err)
	}
	r, err := OpenReadOnly(cfg)
	if err != nil {
		t.Fatal(err)
	}
	mustCheck(t, r)
	if w := must(r.Watermark(testStream)); w.Applied != 200 {
		t.Errorf("%+v", w)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	remount(0)
	if s, err = Open(cfg); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, v.batch(150, 303))
	v.verify(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// The file system turns read-only under an open store, as Linux does after an
// error of the disk: appends fail with a named reason, which stays, and reading
// goes on or fails with it; after the repair everything acknowledged is there.
func TestFileSystemTurnsReadOnlyUnderTheStore(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a file system needs root")
	}
	disk := disktest.NewFailing(t)
	v := loadVector(t, "small")
	cfg := Config{Dir: filepath.Join(disk.Dir, "store")}
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, v.batch(0, 100))
	disk.Fail(t)
	for i := range 3 {
		_, err := s.Append(t.Context(), v.batch(100, 200))
		if !errors.Is(err, syscall.EROFS) && !errors.Is(err, ErrBroken) {
			t.Errorf("append %d: %v", i, err)
		}
		// Where the file was to grow, the kernel does not even map it again.
		st, err := s.Stats()
		if err == nil && st.WriteFault != FaultReadOnly && st.WriteFault != FaultBroken || err != nil && !errors.Is(err, ErrBroken) {
			t.Errorf("append %d: fault %q, %v", i, st.WriteFault, err)
		}
	}
	if chains, _, err := s.Chains(ChainQuery{}); err == nil && len(chains) == 0 || err != nil && !errors.Is(err, ErrBroken) {
		t.Errorf("reading: %d chains, %v", len(chains), err)
	}
	if _, err := s.Compact(t.Context(), nil); err == nil {
		t.Error("compacted")
	}
	if err := s.Close(); err != nil {
		t.Logf("close: %v", err) // the lock is gone all the same
	}
	disk.Repair(t)
	if s, err = Open(cfg); err != nil {
		t.Fatal(err)
	}
	if w := must(s.Watermark(testStream)); w.Applied != 100 && w.Applied != 200 {
		t.Errorf("after the repair: %+v", w)
	}
	mustAppend(t, s, v.batch(50, 303))
	v.verify(t, s)
	mustCheck(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
