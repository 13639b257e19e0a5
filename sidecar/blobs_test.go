package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// backEnds are the implementations of Blobs; each is held against the whole
// contract by TestBlobs.
var backEnds = map[string]func(t *testing.T) Blobs{
	"memory":    func(*testing.T) Blobs { return NewMemory() },
	"directory": func(t *testing.T) Blobs { return openDir(t, t.TempDir()) },
}

func openDir(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func TestBlobs(t *testing.T) {
	t.Parallel()
	checks := map[string]func(*testing.T, Blobs){
		"put replaces":         testPut,
		"put once":             testPutOnce,
		"put once, concurrent": testPutOnceConcurrent,
		"body error":           testBodyError,
		"open is a snapshot":   testOpen,
		"list":                 testList,
		"remove":               testRemove,
		"names":                testNames,
		"ended context":        testContext,
		"names stay apart":     testInjective,
	}
	for backEnd, make := range backEnds {
		for name, check := range checks {
			t.Run(backEnd+"/"+name, func(t *testing.T) {
				t.Parallel()
				check(t, make(t))
			})
		}
	}
}

func put(t *testing.T, b Blobs, name, content string) {
	t.Helper()
	if err := b.Put(t.Context(), name, Bytes([]byte(content))); err != nil {
		t.Fatal(err)
	}
}

// get returns the content of a blob, "absent" when there is none.
func get(t *testing.T, b Blobs, name string) string {
	t.Helper()
	data, err := read(t.Context(), b, name, 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return "absent"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func names(t *testing.T, b Blobs, prefix string) []string {
	t.Helper()
	list := []string{}
	if err := b.List(t.Context(), prefix, func(name string) error { list = append(list, name); return nil }); err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

func testPut(t *testing.T, b Blobs) {
	for _, content := range []string{"one", "", "three", strings.Repeat("x", 200_000)} {
		put(t, b, "a/b", content)
		if got := get(t, b, "a/b"); got != content {
			t.Errorf("wrote %.20q, got %.20q", content, got)
		}
	}
}

func testPutOnce(t *testing.T, b Blobs) {
	for range 2 {
		if err := b.PutOnce(t.Context(), "a/b", Bytes([]byte("first"))); err != nil {
			t.Fatal(err)
		}
	}
	for _, other := range []string{"", "firs", "first!", "other"} {
		err := b.PutOnce(t.Context(), "a/b", Bytes([]byte(other)))
		if conflict, ok := errors.AsType[*ConflictError](err); !ok || conflict.Name != "a/b" {
			t.Errorf("put %q over it: %v", other, err)
		}
	}
	if got := get(t, b, "a/b"); got != "first" {
		t.Errorf("got %q", got)
	}
}

func testPutOnceConcurrent(t *testing.T, b Blobs) {
	var wg sync.WaitGroup
	won := make([]bool, 8)
	for i := range won {
		wg.Go(func() { won[i] = b.PutOnce(t.Context(), "a/b", Bytes([]byte{byte('0' + i)})) == nil })
	}
	wg.Wait()
	winner := slices.Index(won, true)
	if winner < 0 || slices.Contains(won[winner+1:], true) {
		t.Fatalf("who wrote: %v", won)
	}
	if got := get(t, b, "a/b"); got != fmt.Sprint(winner) {
		t.Errorf("%d wrote, but %q is there", winner, got)
	}
}

var errInjected = errors.New("injected fault")

func testBodyError(t *testing.T, b Blobs) {
	broken := func(w io.Writer) error {
		io.WriteString(w, "half")
		return errInjected
	}
	put(t, b, "old", "old")
	for _, name := range []string{"old", "new"} {
		if err := b.Put(t.Context(), name, broken); !errors.Is(err, errInjected) {
			t.Errorf("put %s: %v", name, err)
		}
		if err := b.PutOnce(t.Context(), name, broken); !errors.Is(err, errInjected) {
			t.Errorf("put once %s: %v", name, err)
		}
	}
	if get(t, b, "old") != "old" || get(t, b, "new") != "absent" {
		t.Errorf("half a body is there: %q, %q", get(t, b, "old"), get(t, b, "new"))
	}
}

func testOpen(t *testing.T, b Blobs) {
	if r, err := b.Open(t.Context(), "a/b"); !errors.Is(err, fs.ErrNotExist) || r != nil {
		t.Errorf("missing: %v, %v", r, err)
	}
	put(t, b, "a/b", "0123456789")
	r, err := b.Open(t.Context(), "a/b")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	put(t, b, "a/b", "replaced")
	if size, err := r.Seek(0, io.SeekEnd); size != 10 || err != nil {
		t.Errorf("size %d, %v", size, err)
	}
	if _, err := r.Seek(4, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(r); string(rest) != "456789" || err != nil {
		t.Errorf("read %q, %v", rest, err)
	}
}

func testList(t *testing.T, b Blobs) {
	all := []string{"a.head", "a/1", "a/2/x", "ab/3", "b"}
	for _, name := range all {
		put(t, b, name, "x")
	}
	for prefix, want := range map[string][]string{
		"": all, "a": {"a.head", "a/1", "a/2/x", "ab/3"}, "a/": {"a/1", "a/2/x"}, "a/2": {"a/2/x"}, "a/2/": {"a/2/x"},
		"b": {"b"}, "c": {}, "c/d": {}, "b/": {},
	} {
		var got []string
		for _, name := range names(t, b, prefix) {
			if name != ownerName {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("prefix %q: %v, not %v", prefix, got, want)
		}
	}
	count := 0
	err := b.List(t.Context(), "", func(string) error { count++; return errInjected })
	if !errors.Is(err, errInjected) || count != 1 {
		t.Errorf("visit failed: %v after %d", err, count)
	}
}

func testRemove(t *testing.T, b Blobs) {
	put(t, b, "a/b", "x")
	put(t, b, "a/c", "y")
	if err := b.Remove(t.Context(), "a/b"); err != nil {
		t.Fatal(err)
	}
	if err := b.Remove(t.Context(), "a/b"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a second time: %v", err)
	}
	if diff := cmp.Diff([]string{"a/c"}, names(t, b, "a/")); diff != "" {
		t.Error(diff)
	}
}

// testNames is case F01: what could leave the store is refused.
func testNames(t *testing.T, b Blobs) {
	bad := []string{"", ".", "..", "/", "/abs", "a/", "a//b", "a/./b", "../x", "a/../../x", "../../etc/cron.d/x",
		`a\b`, `..\x`, "a\x00b", "a\nb", "a\x7f", "\xff", ".chaind/lock", ".chaind-tmp", ".chaind-tmp/1", strings.Repeat("x", 256), strings.Repeat("x/", 600) + "x"}
	for _, name := range bad {
		_, openErr := b.Open(t.Context(), name)
		for op, err := range map[string]error{
			"put":      b.Put(t.Context(), name, Bytes(nil)),
			"put once": b.PutOnce(t.Context(), name, Bytes(nil)),
			"remove":   b.Remove(t.Context(), name),
			"open":     openErr,
		} {
			if !errors.Is(err, ErrName) {
				t.Errorf("%s %.30q: %v", op, name, err)
			}
		}
	}
	if list := names(t, b, ""); len(list) != 0 {
		t.Errorf("something was written: %v", list)
	}
}

// testInjective is cases F03 and F05.
func testInjective(t *testing.T, b Blobs) {
	apart := []string{"a:b", "a_b", "a%b", "a%3Ab", "CON", "_CON", "run-1", "Run-1", "\u00e9", "e\u0301"}
	for i, name := range apart {
		put(t, b, "d/"+name, fmt.Sprint(i))
	}
	for i, name := range apart {
		if got := get(t, b, "d/"+name); got != fmt.Sprint(i) {
			t.Errorf("%q holds what was written under %q", name, apart[i])
		}
	}
}

func testContext(t *testing.T, b Blobs) {
	put(t, b, "a", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, openErr := b.Open(ctx, "a")
	for op, err := range map[string]error{
		"put":      b.Put(ctx, "a", Bytes(nil)),
		"put once": b.PutOnce(ctx, "b", Bytes(nil)),
		"remove":   b.Remove(ctx, "a"),
		"open":     openErr,
		"list":     b.List(ctx, "", func(string) error { return nil }),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", op, err)
		}
	}
	if get(t, b, "a") != "x" || get(t, b, "b") != "absent" {
		t.Error("something was written")
	}
}

// TestFoldingFileSystem is case F03 where the file system itself makes two
// names one: the one with capitals is refused.
func TestFoldingFileSystem(t *testing.T) {
	t.Parallel()
	d := openDir(t, t.TempDir())
	if d.folds {
		t.Skip("this file system folds case")
	}
	d.folds = true
	put(t, d, "tenants/acme/f", "x")
	for _, err := range []error{
		d.Put(t.Context(), "tenants/Acme/f", Bytes(nil)), d.PutOnce(t.Context(), "tenants/Acme/g", Bytes(nil)),
	} {
		if !errors.Is(err, ErrName) {
			t.Errorf("capitals: %v", err)
		}
	}
}

// TestLock is case F15: a second daemon on the directory stops.
func TestLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "dir")
	first, err := OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	second, err := OpenDir(path)
	locked, ok := errors.AsType[*LockedError](err)
	if !ok || second != nil || locked.Dir != path || locked.Holder != fmt.Sprint(os.Getpid()) {
		t.Fatalf("second opening: %v, %v", second, err)
	}
	reader, err := OpenDirReadOnly(path)
	if err != nil {
		t.Fatalf("reading beside the writer: %v", err)
	}
	defer reader.Close()
	put(t, first, "a", "x")
	if get(t, reader, "a") != "x" {
		t.Error("the reader does not see what is written")
	}
	if err := reader.Put(t.Context(), "a", Bytes(nil)); !errors.Is(err, errReadOnly) {
		t.Errorf("the reader wrote: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	openDir(t, path)
}

// TestOwner: another store's daemon stops, unless it is told to take over.
func TestOwner(t *testing.T) {
	t.Parallel()
	b := NewMemory()
	for range 2 {
		if _, err := Open(t.Context(), Config{Blobs: b, Owner: "store-1"}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(t.Context(), Config{Blobs: b, Owner: "store-2"})
	owner, ok := errors.AsType[*OwnerError](err)
	if !ok || s != nil || owner.Have != "store-1" || owner.Want != "store-2" {
		t.Fatalf("another store: %v", err)
	}
	if _, err := Open(t.Context(), Config{Blobs: b}); err != nil {
		t.Errorf("a reader: %v", err)
	}
	if _, err := Open(t.Context(), Config{Blobs: b, Owner: "store-2", TakeOver: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Config{Blobs: b, Owner: "store-1"}); err == nil {
		t.Error("the former owner came back unnoticed")
	}
}

func TestLeftoversAreRemoved(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	temp := filepath.Join(path, ".chaind-tmp")
	if err := os.Mkdir(temp, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(temp, "3"), []byte("torn"), 0o644); err != nil {
		t.Fatal(err)
	}
	d := openDir(t, path)
	if list := names(t, d, ""); len(list) != 0 {
		t.Errorf("blobs: %v", list)
	}
	if entries, err := os.ReadDir(temp); err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}
