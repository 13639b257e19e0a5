package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// groupFiles are five files of one generation, of which the first two are written
// first and stay the same in all generations, as those written once do.
func groupFiles(generation int) []File {
	var files []File
	for i, name := range []string{"a/once", "b/c/once", "b/pointer", "b/pointed/x", "top"} {
		files = append(files, File{Name: name, Body: Bytes([]byte(groupText(name, generation))), Once: i < 2})
	}
	return files
}

func groupText(name string, generation int) string {
	if strings.HasSuffix(name, "once") {
		return name
	}
	return fmt.Sprint(name, " ", generation)
}

func bodyText(f *File) string {
	var b strings.Builder
	_ = f.Body(&b) // to a builder
	return b.String()
}

// checkGroup: each file holds old or new bytes, and the last three do not hold new
// ones without the first two.
func checkGroup(t *testing.T, old map[string]string, files []File, read func(name string) string) {
	t.Helper()
	missing := false
	for i, f := range files {
		was, ok := old[f.Name]
		if !ok {
			was = "absent"
		}
		got, want := read(f.Name), bodyText(&f)
		if got != was && got != want {
			t.Errorf("%s holds %q, neither %q nor %q", f.Name, got, was, want)
		}
		if i < 2 && got != want {
			missing = true
		}
		if i >= 2 && missing && got == want && got != was {
			t.Errorf("%s is new, and what comes first is not there", f.Name)
		}
	}
}

func TestGroupOrder(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	calls := record(d)
	files := groupFiles(0)
	if err := d.WriteGroup(files[:2], files[2:], nil); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(*calls, ", ")
	stage := strings.Repeat("create temp, write temp, ", 5)
	sync := strings.Repeat("fsync temp, ", 5) + "fsync ., fsync b, " + strings.Repeat("close temp, ", 5)
	want := "mkdir a, mkdir b, mkdir b/c, mkdir b/pointed, " + stage + sync +
		"link a/once, link b/c/once, fsync a, fsync b/c, " +
		"rename b/pointer, rename b/pointed/x, rename top, fsync b, fsync b/pointed, fsync ."
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestGroupFaults makes each call of a group fail, with and without effect.
func TestGroupFaults(t *testing.T) {
	t.Parallel()
	for _, persist := range []bool{false, true} {
		for n := 0; ; n++ {
			root := t.TempDir()
			d := open(t, root)
			count := failAt(d, n, persist)
			files := groupFiles(0)
			err := d.WriteGroup(files[:2], files[2:], nil)
			if *count <= n {
				if n < 25 || err != nil {
					t.Errorf("only %d calls, %v", n, err)
				}
				break
			}
			if !errors.Is(err, errInjected) {
				t.Fatalf("call %d failed, and the group says %v", n, err)
			}
			checkGroup(t, nil, files, func(name string) string { return content(t, root, name) })
			checkNoTemp(t, root)
			if err := d.WriteGroup(files[:2], files[2:], nil); err != nil {
				t.Fatalf("again after call %d: %v", n, err)
			}
			for _, f := range files {
				if got := content(t, root, f.Name); got != bodyText(&f) {
					t.Errorf("again after call %d: %s holds %q", n, f.Name, got)
				}
			}
		}
	}
}

// TestGroupConflict: other bytes under one of the first names leave all that is
// written then as it was.
func TestGroupConflict(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := open(t, root)
	mustWrite(t, d, "b/c/once", "other")
	files := groupFiles(0)
	err := d.WriteGroup(files[:2], files[2:], nil)
	if c, ok := errors.AsType[*ConflictError](err); !ok || c.Name != "b/c/once" {
		t.Errorf("says %v", err)
	}
	for _, f := range files[2:] {
		if got := content(t, root, f.Name); got != "absent" {
			t.Errorf("%s holds %q", f.Name, got)
		}
	}
	if got := content(t, root, "b/c/once"); got != "other" {
		t.Errorf("what stood there is now %q", got)
	}
	checkNoTemp(t, root)
}

// TestGroupUnhooked: without anybody looking on, when the fsyncs are made at once.
func TestGroupUnhooked(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := open(t, root)
	for generation := range 3 {
		files := groupFiles(generation)
		if err := d.WriteGroup(files[:2], files[2:], nil); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if got := content(t, root, f.Name); got != bodyText(&f) {
				t.Errorf("%s holds %q", f.Name, got)
			}
		}
	}
	checkNoTemp(t, root)
	broken := groupFiles(3)
	broken[4].Body = func(io.Writer) error { return errInjected }
	if err := d.WriteGroup(broken[:2], broken[2:], nil); !errors.Is(err, errInjected) {
		t.Errorf("a body that fails: %v", err)
	}
	checkNoTemp(t, root)
	if err := d.WriteGroup(nil, []File{{Name: "../x", Body: Bytes(nil)}}, nil); err == nil {
		t.Error("a name outside was taken")
	}
	if err := d.WriteGroup(nil, nil, nil); err != nil {
		t.Errorf("nothing: %v", err)
	}
}

// TestSyncsAtOnceReport: of several fsyncs at once, one that fails fails all.
func TestSyncsAtOnceReport(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	var list []syncing
	for range 3 {
		f, err := d.root.Open(".")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		list = append(list, syncing{".", f})
	}
	if err := d.syncEach(list); err != nil {
		t.Fatal(err)
	}
	if err := list[2].f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.syncEach(list); !errors.Is(err, os.ErrClosed) {
		t.Errorf("says %v", err)
	}
}

// TestReplacedDirectory: a directory that is kept open is not written to, nor read
// from, once another one, or a link, stands at its name.
func TestReplacedDirectory(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := open(t, root)
	mustWrite(t, d, "a/b/f", "old")
	if err := os.Rename(filepath.Join(root, "a"), filepath.Join(root, "away")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, "a/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if b, err := d.Read("a/b/f", 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read %q, %v", b, err)
	}
	mustWrite(t, d, "a/b/f", "new")
	if content(t, root, "away/b/f") != "old" || content(t, root, "a/b/f") != "new" {
		t.Error("the directory that was moved away was written to")
	}
	if err := os.RemoveAll(filepath.Join(root, "a")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("away", filepath.Join(root, "a")); err != nil {
		t.Fatal(err)
	}
	if err := d.Write("a/b/f", Bytes([]byte("x"))); !errors.Is(err, ErrNotRegular) {
		t.Errorf("write through a link: %v", err)
	}
	if content(t, root, "away/b/f") != "old" {
		t.Error("written through a link")
	}
}

func TestFoldersAreBounded(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := open(t, root)
	for i := range 2 * maxFolders {
		mustWrite(t, d, fmt.Sprintf("d%d/e/f", i), "x")
	}
	if n := len(d.folders.open); n > maxFolders || n == 0 {
		t.Errorf("%d directories are open", n)
	}
	for name, f := range d.folders.open {
		if f.uses != 0 {
			t.Errorf("%s is still held", name)
		}
	}
}

// TestGroupMeanwhile: what runs while the bytes go to the disk has its say before
// any file has its name.
func TestGroupMeanwhile(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := open(t, root)
	files := groupFiles(0)
	for _, answer := range []error{errInjected, nil} {
		err := d.WriteGroup(files[:2], files[2:], func() error {
			for _, f := range files {
				if got := content(t, root, f.Name); got != "absent" {
					t.Errorf("%s holds %q already", f.Name, got)
				}
			}
			return answer
		})
		if !errors.Is(err, answer) {
			t.Errorf("says %v, not %v", err, answer)
		}
		for _, f := range files {
			if got := content(t, root, f.Name); (got == "absent") != (answer != nil) {
				t.Errorf("after %v %s holds %q", answer, f.Name, got)
			}
		}
		checkNoTemp(t, root)
	}
}
