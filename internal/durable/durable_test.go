package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func open(t *testing.T, root string) *Dir {
	t.Helper()
	d, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func mustWrite(t *testing.T, d *Dir, name, content string) {
	t.Helper()
	if err := d.Write(name, Bytes([]byte(content))); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, root, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "absent"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func checkNoTemp(t *testing.T, root string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, TempDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("temporary file %s was left behind", e.Name())
	}
}

// record makes d note its system calls, temporary names replaced by "temp".
func record(d *Dir) *[]string {
	var mu sync.Mutex
	calls := new([]string)
	d.around = func(op, name string, do func() error) error {
		if strings.HasPrefix(name, TempDir) {
			name = "temp"
		}
		mu.Lock()
		*calls = append(*calls, op+" "+name)
		mu.Unlock()
		return do()
	}
	return calls
}

// TestF07Order is case F07: the bytes are synced before they get their name, and
// the name is synced before success is reported.
func TestF07Order(t *testing.T) {
	t.Parallel()
	stage := []string{"create temp", "write temp", "fsync temp", "close temp"}
	then := func(last ...string) []string { return append(append([]string{}, stage...), last...) }
	tests := []struct {
		name string
		do   func(d *Dir) error
		want []string
	}{
		{"new directories", func(d *Dir) error { return d.Write("a/b/f", Bytes([]byte("1"))) },
			[]string{"mkdir a", "mkdir a/b", "create temp", "write temp", "fsync temp", "fsync .", "fsync a", "close temp", "rename a/b/f", "fsync a/b"}},
		{"known directories", func(d *Dir) error { return d.Write("a/b/f", Bytes([]byte("2"))) },
			then("rename a/b/f", "fsync a/b")},
		{"in the root", func(d *Dir) error { return d.Write("f", Bytes([]byte("2"))) }, then("rename f", "fsync .")},
		{"once, new", func(d *Dir) error { return d.WriteOnce("a/b/g", Bytes([]byte("1"))) },
			then("link a/b/g", "fsync a/b")},
		{"once, same bytes", func(d *Dir) error { return d.WriteOnce("a/b/g", Bytes([]byte("1"))) },
			then("link a/b/g", "rename a/b/g", "fsync a/b")},
		{"remove", func(d *Dir) error { return d.Remove("a/b/g") }, []string{"unlink a/b/g", "fsync a/b"}},
	}
	d := open(t, t.TempDir())
	calls := record(d)
	for _, test := range tests {
		*calls = nil
		if err := test.do(d); err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if diff := cmp.Diff(test.want, *calls); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestExistingDirectories: a directory that is there may never have been
// synced by whoever made it.
func TestExistingDirectories(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "a/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	d := open(t, root)
	calls := record(d)
	mustWrite(t, d, "a/b/f", "x")
	want := []string{"mkdir a", "mkdir a/b", "create temp", "write temp", "fsync temp", "fsync .", "fsync a", "close temp"}
	if diff := cmp.Diff(want, (*calls)[:8]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUnsyncedDirectoryIsMadeAgain: a directory whose entry could not be synced
// does not stay to be synced by a second fsync.
func TestUnsyncedDirectoryIsMadeAgain(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := open(t, root)
	failAt(d, 6, true) // mkdir a, mkdir a/b, create, write, fsync temp, fsync ., fsync a
	if err := d.Write("a/b/f", Bytes([]byte("x"))); !errors.Is(err, errInjected) {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "a/b")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a/b is still there: %v", err)
	}
	mustWrite(t, d, "a/b/f", "x")
}

var errInjected = errors.New("injected fault")

// failAt makes the n-th system call (from 0) of d fail, with or without having
// had its effect. It returns how many calls there were.
func failAt(d *Dir, n int, persist bool) (count *int) {
	count = new(int)
	d.around = func(_, _ string, do func() error) error {
		at := *count
		*count++
		if at != n {
			return do()
		}
		if persist {
			do()
		}
		return errInjected
	}
	return count
}

// TestFaults makes each system call of each kind of write fail, with and
// without effect, then tries again with the same handle or after a restart.
func TestFaults(t *testing.T) {
	t.Parallel()
	writes := map[string]struct {
		before string
		write  func(d *Dir) error
	}{
		"replace":   {"old", func(d *Dir) error { return d.Write("a/b/f", Bytes([]byte("new"))) }},
		"create":    {"absent", func(d *Dir) error { return d.Write("a/b/f", Bytes([]byte("new"))) }},
		"once":      {"absent", func(d *Dir) error { return d.WriteOnce("a/b/f", Bytes([]byte("new"))) }},
		"once same": {"new", func(d *Dir) error { return d.WriteOnce("a/b/f", Bytes([]byte("new"))) }},
	}
	for name, w := range writes {
		for _, persist := range []bool{false, true} {
			for _, restart := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s persist=%v restart=%v", name, persist, restart), func(t *testing.T) {
					t.Parallel()
					ran := 0
					for n := 0; ; n++ {
						if !faultAt(t, w.before, w.write, n, persist, restart) {
							break
						}
						ran++
					}
					if ran < 6 {
						t.Errorf("only %d calls were made to fail", ran)
					}
				})
			}
		}
	}
}

// faultAt reports whether there was an n-th call to fail.
func faultAt(t *testing.T, before string, write func(*Dir) error, n int, persist, restart bool) bool {
	root := t.TempDir()
	if before != "absent" {
		mustWrite(t, open(t, root), "a/b/f", before)
	}
	d := open(t, root)
	count := failAt(d, n, persist)
	err := write(d)
	if *count <= n {
		if err != nil {
			t.Fatalf("without a fault: %v", err)
		}
		return false
	}
	if !errors.Is(err, errInjected) {
		t.Fatalf("call %d failed, but the write returned %v", n, err)
	}
	if got := content(t, root, "a/b/f"); got != before && got != "new" {
		t.Fatalf("call %d failed and left %q", n, got)
	}
	checkNoTemp(t, root)
	if restart {
		d = open(t, root)
		if _, err := d.RemoveTemp(); err != nil {
			t.Fatal(err)
		}
	}
	calls := record(d)
	if err := write(d); err != nil {
		t.Fatalf("again after call %d failed: %v", n, err)
	}
	// The failed fsync is not trusted: bytes and name are made again.
	text := strings.Join(*calls, ", ")
	text = strings.Replace(text, "fsync ., fsync a, ", "", 1)
	if !strings.Contains(text, "create temp, write temp, fsync temp, close temp") || !strings.HasSuffix(text, "fsync a/b") {
		t.Fatalf("again after call %d failed: %s", n, text)
	}
	if strings.Contains(text, "rename a/b/f") == strings.Contains(text, "link a/b/f") && !strings.Contains(text, "link a/b/f, rename a/b/f") {
		t.Fatalf("again after call %d failed the name was not made again: %s", n, text)
	}
	if got := content(t, root, "a/b/f"); got != "new" {
		t.Fatalf("again after call %d failed: content %q", n, got)
	}
	checkNoTemp(t, root)
	return true
}

func TestWriteOnce(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := open(t, root)
	for range 2 {
		if err := d.WriteOnce("d/f", Bytes([]byte("one"))); err != nil {
			t.Fatal(err)
		}
	}
	for _, other := range []string{"", "on", "one ", "two"} {
		err := d.WriteOnce("d/f", Bytes([]byte(other)))
		if conflict, ok := errors.AsType[*ConflictError](err); !ok || conflict.Name != "d/f" {
			t.Errorf("writing %q over it: %v", other, err)
		}
	}
	if got := content(t, root, "d/f"); got != "one" {
		t.Errorf("content %q", got)
	}
	checkNoTemp(t, root)
}

// TestCompareAcrossBuffers: equality is of all the bytes, not of the first buffer.
func TestCompareAcrossBuffers(t *testing.T) {
	t.Parallel()
	base := bytes.Repeat([]byte("x"), 2*compareSize)
	for _, size := range []int{0, 1, compareSize - 1, compareSize, compareSize + 1, 2 * compareSize} {
		a := base[:size]
		same, err := sameContent(bytes.NewReader(a), bytes.NewReader(a))
		if !same || err != nil {
			t.Errorf("%d bytes: %v, %v", size, same, err)
		}
		longer := append(bytes.Clone(a), 'x')
		if same, err := sameContent(bytes.NewReader(a), bytes.NewReader(longer)); same || err != nil {
			t.Errorf("%d bytes and one more: %v, %v", size, same, err)
		}
		if size > 0 {
			other := bytes.Clone(a)
			other[size-1] = 'y'
			if same, err := sameContent(bytes.NewReader(a), bytes.NewReader(other)); same || err != nil {
				t.Errorf("%d bytes, last one differs: %v, %v", size, same, err)
			}
		}
	}
}

func TestConcurrentWriteOnce(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := open(t, root)
	var wg sync.WaitGroup
	won := make([]bool, 16)
	for i := range won {
		wg.Go(func() { won[i] = d.WriteOnce("new/dir/f", Bytes([]byte{byte('a' + i)})) == nil })
	}
	wg.Wait()
	winner := -1
	for i, w := range won {
		if w && winner >= 0 {
			t.Errorf("%d and %d both wrote", winner, i)
		}
		if w {
			winner = i
		}
	}
	if winner < 0 || content(t, root, "new/dir/f") != string(rune('a'+winner)) {
		t.Errorf("winner %d, content %q", winner, content(t, root, "new/dir/f"))
	}
	checkNoTemp(t, root)
}

func TestBodyError(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := open(t, root)
	err := d.Write("f", func(w io.Writer) error {
		io.WriteString(w, "half")
		return errInjected
	})
	if !errors.Is(err, errInjected) || content(t, root, "f") != "absent" {
		t.Errorf("error %v, content %q", err, content(t, root, "f"))
	}
	checkNoTemp(t, root)
}

func TestRemoveTemp(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := open(t, root)
	if n, err := d.RemoveTemp(); n != 0 || err != nil {
		t.Fatalf("nothing there: %d, %v", n, err)
	}
	mustWrite(t, d, "f", "x")
	for _, name := range []string{"1", "7", "strange"} {
		if err := os.WriteFile(filepath.Join(root, TempDir, name), []byte("torn"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// What is left over does not disturb writers that start before the removal.
	mustWrite(t, open(t, root), "g", "y")
	if n, err := d.RemoveTemp(); n != 3 || err != nil {
		t.Errorf("removed %d, %v", n, err)
	}
	if content(t, root, "f") != "x" || content(t, root, "g") != "y" {
		t.Error("a file was removed with the temporary ones")
	}
	checkNoTemp(t, root)
}

func TestCreate(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "a", "b", "c")
	for range 2 {
		d, err := Create(root)
		if err != nil {
			t.Fatal(err)
		}
		mustWrite(t, d, "f", "x")
		d.Close()
	}
	if _, err := Create(filepath.Join(root, "f")); err == nil {
		t.Error("a file passed for a directory")
	}
	if _, err := Open(filepath.Join(root, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open a missing directory: %v", err)
	}
}

func TestReadLimit(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	mustWrite(t, d, "f", "12345")
	if b, err := d.Read("f", 5); err != nil || string(b) != "12345" {
		t.Errorf("at the limit: %q, %v", b, err)
	}
	if b, err := d.Read("f", 4); !errors.Is(err, ErrTooLarge) || b != nil {
		t.Errorf("above the limit: %q, %v", b, err)
	}
	if _, err := d.Read("g", 4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

// TestVanishedDirectory: a directory that somebody removed is made again.
func TestVanishedDirectory(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := open(t, root)
	mustWrite(t, d, "a/f", "x")
	if err := os.RemoveAll(filepath.Join(root, "a")); err != nil {
		t.Fatal(err)
	}
	if err := d.Write("a/f", Bytes([]byte("y"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("first write after the removal: %v", err)
	}
	mustWrite(t, d, "a/f", "y")
}

func TestKnownIsBounded(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	for i := range maxKnown {
		d.known[fmt.Sprint("x", i)] = struct{}{}
	}
	mustWrite(t, d, "a/b/f", "x")
	if len(d.known) > maxKnown {
		t.Errorf("%d directories are remembered", len(d.known))
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	if entries, err := d.List("none/here"); err != nil || len(entries) != 0 {
		t.Errorf("missing directory: %v, %v", entries, err)
	}
	for _, name := range []string{"d/b", "d/a", "d/c/x"} {
		mustWrite(t, d, name, "x")
	}
	if entries, err := d.List("d/a"); err != nil || len(entries) != 0 {
		t.Errorf("a file: %v, %v", entries, err)
	}
	entries, err := d.List("d")
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, names); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}
