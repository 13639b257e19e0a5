package sidecar

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// backEnds are the implementations of Blobs in this room.
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

var errInjected = errors.New("injected fault")

// TestF03FoldingFileSystem is case F03 where the file system itself makes two
// names one: the one with capitals is refused.
func TestF03FoldingFileSystem(t *testing.T) {
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

// TestF15SecondDaemonOnOneDirectory is case F15: a second daemon on the directory stops.
func TestF15SecondDaemonOnOneDirectory(t *testing.T) {
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

// TestF15AnotherStoresDaemon: another store's daemon stops, unless it is told to take over.
func TestF15AnotherStoresDaemon(t *testing.T) {
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
