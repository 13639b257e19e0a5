//go:build linux

package store

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// On a file system that is read-only a store cannot be opened for writing, with
// the system's own reason; it can be read and checked; and it goes on when the
// file system is writable again. (A file that is open for writing keeps a file
// system from being remounted; what a write says that fails midway is
// TestCommitErrors.)
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
