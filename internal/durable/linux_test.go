package durable

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// TestB05DiskFull is case B05 for files: a full disk fails the write and leaves
// what was there; when there is room again the same handle goes on.
func TestB05DiskFull(t *testing.T) {
	root := t.TempDir()
	if err := syscall.Mount("tmpfs", root, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("mount a small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(root, 0); err != nil {
			t.Error(err)
		}
	})
	d, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	chunk := bytes.Repeat([]byte("evidence"), 32<<10)
	mustWrite(t, d, "kept/f", "first")
	n := 0
	for err == nil {
		err = d.WriteOnce(fmt.Sprintf("fill/%d", n), Bytes(chunk))
		n++
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("full disk: %v", err)
	}
	if err := d.Write("kept/f", Bytes(chunk)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("replacing on the full disk: %v", err)
	}
	if got := content(t, root, "kept/f"); got != "first" {
		t.Errorf("what was there is now %.20q", got)
	}
	if got := content(t, root, fmt.Sprintf("fill/%d", n-1)); got != "absent" {
		t.Errorf("%d bytes of a failed write have a name", len(got))
	}
	checkNoTemp(t, root)
	if err := d.Remove("fill/0"); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteOnce(fmt.Sprintf("fill/%d", n-1), Bytes(chunk)); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// TestF07Trace is case F07 as the kernel sees it.
func TestF07Trace(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip(err)
	}
	root, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(strace, "-f", "-y", "-o", log, "-e", "trace=mkdirat,openat,write,fsync,renameat,renameat2,linkat", self)
	cmd.Env = append(os.Environ(), "DURABLE_TEST_ROOT="+root, "DURABLE_TEST_KILL=-1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("strace does not work here: %v: %s", err, out)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	temp := regexp.QuoteMeta(filepath.Join(root, TempDir))
	last := 0
	for _, step := range []string{
		`mkdirat\(\d+<` + root + `>, "a"`,
		`mkdirat\(\d+<` + root + `/a>, "b"`,
		`openat\(\d+<` + temp + `>, "1", O_WRONLY\|O_CREAT\|O_EXCL`,
		`write\(\d+<` + temp + `/1>, "new content"`,
		`fsync\(\d+<` + temp + `/1>`,
		`fsync\(\d+<` + root + `>`,
		`fsync\(\d+<` + root + `/a>`,
		`renameat2?\(\d+<` + temp + `>, "1", \d+<` + root + `/a/b>, "f"`,
		`fsync\(\d+<` + root + `/a/b>`,
	} {
		at := regexp.MustCompile(step).FindIndex(text[last:])
		if at == nil {
			t.Fatalf("%s does not come after what must precede it in:\n%s", step, grep(text, root))
		}
		last += at[1]
	}
}

func grep(text []byte, part string) string {
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, part) {
			b.WriteString(line)
		}
	}
	return b.String()
}
