// Package blobstest holds every implementation of [sidecar.Blobs] against its
// whole contract.
package blobstest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chaind/chaind/sidecar"
)

// Run tests the stores that open returns, each of them empty and used by one
// test.
func Run(t *testing.T, open func(t *testing.T) sidecar.Blobs) {
	for name, check := range map[string]func(*testing.T, sidecar.Blobs){
		"put replaces":         testPut,
		"put once":             testPutOnce,
		"put once, concurrent": testPutOnceConcurrent,
		"body error":           testBodyError,
		"open is a snapshot":   testOpen,
		"list":                 testList,
		"remove":               testRemove,
		"removed is free":      testRemovedIsFree,
		"names":                testNames,
		"ended context":        testContext,
		"names stay apart":     testInjective,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, open(t))
		})
	}
}

func put(t *testing.T, b sidecar.Blobs, name, content string) {
	t.Helper()
	if err := b.Put(t.Context(), name, sidecar.Bytes([]byte(content))); err != nil {
		t.Fatal(err)
	}
}

// get returns the content of a blob, "absent" when there is none.
func get(t *testing.T, b sidecar.Blobs, name string) string {
	t.Helper()
	r, err := b.Open(t.Context(), name)
	if errors.Is(err, fs.ErrNotExist) {
		return "absent"
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func names(t *testing.T, b sidecar.Blobs, prefix string) []string {
	t.Helper()
	list := []string{}
	if err := b.List(t.Context(), prefix, func(name string) error { list = append(list, name); return nil }); err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

var errInjected = errors.New("injected fault")

func testPut(t *testing.T, b sidecar.Blobs) {
	for _, content := range []string{"one", "", "three", strings.Repeat("x", 200_000)} {
		put(t, b, "a/b", content)
		if got := get(t, b, "a/b"); got != content {
			t.Errorf("wrote %.20q, got %.20q", content, got)
		}
	}
}

func testPutOnce(t *testing.T, b sidecar.Blobs) {
	for range 2 {
		if err := b.PutOnce(t.Context(), "a/b", sidecar.Bytes([]byte("first"))); err != nil {
			t.Fatal(err)
		}
	}
	for _, other := range []string{"", "firs", "first!", "other"} {
		err := b.PutOnce(t.Context(), "a/b", sidecar.Bytes([]byte(other)))
		if conflict, ok := errors.AsType[*sidecar.ConflictError](err); !ok || conflict.Name != "a/b" {
			t.Errorf("put %q over it: %v", other, err)
		}
	}
	if got := get(t, b, "a/b"); got != "first" {
		t.Errorf("got %q", got)
	}
}

func testPutOnceConcurrent(t *testing.T, b sidecar.Blobs) {
	var wg sync.WaitGroup
	won := make([]bool, 8)
	for i := range won {
		wg.Go(func() { won[i] = b.PutOnce(t.Context(), "a/b", sidecar.Bytes([]byte{byte('0' + i)})) == nil })
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

func testBodyError(t *testing.T, b sidecar.Blobs) {
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

func testOpen(t *testing.T, b sidecar.Blobs) {
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

func testList(t *testing.T, b sidecar.Blobs) {
	all := []string{"a.head", "a/1", "a/2/x", "ab/3", "b"}
	for _, name := range all {
		put(t, b, name, "x")
	}
	for prefix, want := range map[string][]string{
		"": all, "a": {"a.head", "a/1", "a/2/x", "ab/3"}, "a/": {"a/1", "a/2/x"}, "a/2": {"a/2/x"}, "a/2/": {"a/2/x"},
		"b": {"b"}, "c": {}, "c/d": {}, "b/": {},
	} {
		if got := names(t, b, prefix); !slices.Equal(got, want) {
			t.Errorf("prefix %q: %v, not %v", prefix, got, want)
		}
	}
	count := 0
	err := b.List(t.Context(), "", func(string) error { count++; return errInjected })
	if !errors.Is(err, errInjected) || count != 1 {
		t.Errorf("visit failed: %v after %d", err, count)
	}
}

func testRemove(t *testing.T, b sidecar.Blobs) {
	put(t, b, "a/b", "x")
	put(t, b, "a/c", "y")
	if err := b.Remove(t.Context(), "a/b"); err != nil {
		t.Fatal(err)
	}
	if err := b.Remove(t.Context(), "a/b"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a second time: %v", err)
	}
	if left := names(t, b, "a/"); !slices.Equal(left, []string{"a/c"}) {
		t.Errorf("left: %v", left)
	}
}

// testNames is case F01: what could leave the store is refused.
func testNames(t *testing.T, b sidecar.Blobs) {
	bad := []string{"", ".", "..", "/", "/abs", "a/", "a//b", "a/./b", "../x", "a/../../x", "../../etc/cron.d/x",
		`a\b`, `..\x`, "a\x00b", "a\nb", "a\x7f", "\xff", ".chaind/lock", ".chaind-tmp", ".chaind-tmp/1", strings.Repeat("x", 256), strings.Repeat("x/", 600) + "x"}
	for _, name := range bad {
		_, openErr := b.Open(t.Context(), name)
		for op, err := range map[string]error{
			"put":      b.Put(t.Context(), name, sidecar.Bytes(nil)),
			"put once": b.PutOnce(t.Context(), name, sidecar.Bytes(nil)),
			"remove":   b.Remove(t.Context(), name),
			"open":     openErr,
		} {
			if !errors.Is(err, sidecar.ErrName) {
				t.Errorf("%s %.30q: %v", op, name, err)
			}
		}
	}
	if list := names(t, b, ""); len(list) != 0 {
		t.Errorf("something was written: %v", list)
	}
}

// testInjective is cases F03 and F05.
func testInjective(t *testing.T, b sidecar.Blobs) {
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

func testContext(t *testing.T, b sidecar.Blobs) {
	put(t, b, "a", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, openErr := b.Open(ctx, "a")
	for op, err := range map[string]error{
		"put":      b.Put(ctx, "a", sidecar.Bytes(nil)),
		"put once": b.PutOnce(ctx, "b", sidecar.Bytes(nil)),
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

// testRemovedIsFree: a removed name is like one that never was (case F13: what
// was removed does not come back by a conditional write).
func testRemovedIsFree(t *testing.T, b sidecar.Blobs) {
	for _, content := range []string{"one", "two", "one"} {
		if err := b.PutOnce(t.Context(), "a/b", sidecar.Bytes([]byte(content))); err != nil {
			t.Fatal(err)
		}
		if got := get(t, b, "a/b"); got != content {
			t.Errorf("wrote %q, got %q", content, got)
		}
		if err := b.Remove(t.Context(), "a/b"); err != nil {
			t.Fatal(err)
		}
		if got := get(t, b, "a/b"); got != "absent" {
			t.Errorf("removed, yet %q is there", got)
		}
	}
}
