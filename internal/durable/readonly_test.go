//go:build linux

package durable

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// remount makes the file system at dir read-only, or writable.
func remount(t *testing.T, dir string, flags uintptr) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|flags, ""); err != nil {
		t.Fatal(err)
	}
}

// A file system that turns read-only under an open Dir, as after an error of the
// disk: writes fail with EROFS and change nothing, reads go on, and so do writes
// when it is writable again.
func TestReadOnlyRemount(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a file system needs root")
	}
	root := t.TempDir()
	if err := syscall.Mount("tmpfs", root, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("mount: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(root, syscall.MNT_DETACH) })
	d := open(t, root)
	mustWrite(t, d, "a/f", "old")
	remount(t, root, syscall.MS_RDONLY)
	for name, write := range map[string]func() error{
		"replace":       func() error { return d.Write("a/f", Bytes([]byte("new"))) },
		"create":        func() error { return d.Write("a/g", Bytes([]byte("new"))) },
		"new directory": func() error { return d.Write("b/f", Bytes([]byte("new"))) },
		"once":          func() error { return d.WriteOnce("a/h", Bytes([]byte("new"))) },
		"once, same":    func() error { return d.WriteOnce("a/f", Bytes([]byte("old"))) },
		"remove":        func() error { return d.Remove("a/f") },
	} {
		if err := write(); !errors.Is(err, syscall.EROFS) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b, err := d.Read("a/f", 10); err != nil || string(b) != "old" {
		t.Errorf("read %q, %v", b, err)
	}
	if got := content(t, root, "a/g"); got != "absent" {
		t.Errorf("a/g holds %q", got)
	}
	remount(t, root, 0)
	mustWrite(t, d, "a/f", "new")
	mustWrite(t, d, "b/f", "new")
	checkNoTemp(t, root)
}
