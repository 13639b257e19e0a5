package disktest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Small mounts a file system in memory of that many bytes.
func Small(t testing.TB, size string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("mounting a small file system: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// Failing is an ext4 on a file, which turns read-only when told to, while files
// in it are open for writing.
type Failing struct {
	Dir            string
	image, trigger string
}

// NewFailing makes one of 32 MiB.
func NewFailing(t testing.TB) *Failing {
	t.Helper()
	d := &Failing{image: filepath.Join(t.TempDir(), "image"), Dir: t.TempDir()}
	err := os.WriteFile(d.image, nil, 0o600)
	if err == nil {
		err = os.Truncate(d.image, 32<<20)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", d.image).CombinedOutput(); err != nil {
		t.Skipf("mkfs.ext4: %v: %s", err, out)
	}
	d.mount(t)
	t.Cleanup(func() { _ = syscall.Unmount(d.Dir, syscall.MNT_DETACH) })
	return d
}

func (d *Failing) mount(t testing.TB) {
	t.Helper()
	if out, err := exec.Command("mount", "-o", "loop,errors=remount-ro", d.image, d.Dir).CombinedOutput(); err != nil {
		t.Skipf("mounting a file needs root and loop devices: %v: %s", err, out)
	}
	out, err := exec.Command("findmnt", "-n", "-o", "SOURCE", d.Dir).Output()
	if err != nil {
		t.Skipf("findmnt: %v", err)
	}
	d.trigger = filepath.Join("/sys/fs/ext4", filepath.Base(strings.TrimSpace(string(out))), "trigger_fs_error")
}

// Fail is what the kernel does when it finds the file system damaged.
func (d *Failing) Fail(t testing.TB) {
	t.Helper()
	if err := os.WriteFile(d.trigger, []byte("made by a test\n"), 0); err != nil {
		t.Skipf("no way to make the file system fail here: %v", err)
	}
}

// Repair makes it writable again, when no file in it is open.
func (d *Failing) Repair(t testing.TB) {
	t.Helper()
	if err := syscall.Unmount(d.Dir, 0); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("e2fsck", "-fy", d.image).CombinedOutput(); err != nil {
		t.Logf("e2fsck: %v: %s", err, out) // exit code 1: repaired
	}
	d.mount(t)
}
