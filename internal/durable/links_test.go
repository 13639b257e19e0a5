package durable

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestNames(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := open(t, filepath.Join(root))
	for _, name := range []string{"", ".", "..", "/abs", "a/", "/", "a//b", "./a", "a/../b", "../x", "a/..", `a\b`, "a\x00b"} {
		for op, err := range map[string]error{
			"write":  d.Write(name, Bytes(nil)),
			"once":   d.WriteOnce(name, Bytes(nil)),
			"remove": d.Remove(name),
		} {
			if err == nil {
				t.Errorf("%s of %q succeeded", op, name)
			}
		}
		if b, err := d.Read(name, 10); err == nil || b != nil {
			t.Errorf("read of %q succeeded", name)
		}
	}
	entries, err := os.ReadDir(root)
	if err != nil || len(entries) != 0 {
		t.Errorf("something was made: %v, %v", entries, err)
	}
}

// TestF17Links is case F17: nothing is read or written through a symbolic link.
func TestF17Links(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	target := filepath.Join(outside, "f")
	if err := os.WriteFile(target, []byte("outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	d := open(t, root)
	mustWrite(t, d, "real/f", "inside")
	for link, to := range map[string]string{"out": target, "in": "real/f", "dangling": "nowhere", "outdir": outside, "indir": "real"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"out", "in", "dangling", "outdir/f", "indir/f", "real/f/x"} {
		if b, err := d.Read(name, 100); !errors.Is(err, ErrNotRegular) || b != nil {
			t.Errorf("read %s: %q, %v", name, b, err)
		}
	}
	for _, name := range []string{"outdir/g", "indir/g"} {
		for _, err := range []error{d.Write(name, Bytes([]byte("new"))), d.WriteOnce(name, Bytes([]byte("new"))), d.Remove(name)} {
			if !errors.Is(err, ErrNotRegular) {
				t.Errorf("write %s: %v", name, err)
			}
		}
	}
	for _, name := range []string{"out", "in", "dangling"} {
		if err := d.WriteOnce(name, Bytes([]byte("new"))); !errors.Is(err, ErrNotRegular) {
			t.Errorf("write once %s: %v", name, err)
		}
		mustWrite(t, d, name, "new")
		if info, err := os.Lstat(filepath.Join(root, name)); err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s is still a link: %v, %v", name, info, err)
		}
	}
	if content(t, outside, "f") != "outside" || content(t, outside, "g") != "absent" || content(t, root, "real/f") != "inside" {
		t.Error("something was written through a link")
	}
	if entries, err := d.List("outdir"); !errors.Is(err, ErrNotRegular) || entries != nil {
		t.Errorf("list through a link: %v, %v", entries, err)
	}
	checkNoTemp(t, root)
}

func TestSpecialFiles(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := open(t, root)
	if err := syscall.Mkfifo(filepath.Join(root, "pipe"), 0o644); err != nil {
		t.Skip(err)
	}
	// A pipe without a writer would block for ever.
	if _, err := d.Read("pipe", 10); !errors.Is(err, ErrNotRegular) {
		t.Errorf("read a pipe: %v", err)
	}
	if _, err := d.Open("."); err == nil {
		t.Error("opened the root as a file")
	}
	mustWrite(t, d, "dir/f", "x")
	if _, err := d.Open("dir"); !errors.Is(err, ErrNotRegular) {
		t.Errorf("open a directory: %v", err)
	}
	if err := d.Write("dir", Bytes([]byte("x"))); err == nil {
		t.Error("a file replaced a directory")
	}
	checkNoTemp(t, root)
}
