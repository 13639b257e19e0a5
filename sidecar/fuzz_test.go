package sidecar

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaind/chaind/segments"
)

// FuzzName: a name is refused with ErrName, or is the same blob in memory and
// in a directory, and no other file.
func FuzzName(f *testing.F) {
	for _, name := range []string{"a", "a/b", "../x", "/abs", "a//b", `a\b`, "a\x00", ".chaind/lock", "é", "\xff", strings.Repeat("x", 256)} {
		f.Add(name)
	}
	seeded(f)
	root := f.TempDir()
	d, err := OpenDir(filepath.Join(root, "in"))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { d.Close() })
	f.Fuzz(func(t *testing.T, name string) {
		ctx := context.Background()
		m := NewMemory()
		memErr, dirErr := m.Put(ctx, name, Bytes([]byte(name))), d.Put(ctx, name, Bytes([]byte(name)))
		if errors.Is(memErr, ErrName) != errors.Is(dirErr, ErrName) || errors.Is(memErr, ErrName) != (CheckName(name) != nil) {
			t.Fatalf("memory: %v, directory: %v", memErr, dirErr)
		}
		if entries, err := os.ReadDir(root); err != nil || len(entries) != 1 {
			t.Fatalf("something is beside the directory: %v, %v", entries, err)
		}
		if dirErr != nil {
			return // refused, or part of the way is a file from another input
		}
		if got, err := read(ctx, d, name, 1<<20); err != nil || string(got) != name {
			t.Fatalf("read %q, %v", got, err)
		}
		if err := d.Remove(ctx, name); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzStored: whatever lies where we left pointers, entries and markers, reading
// and writing never panics, retention deletes nothing that its marker does not
// describe, and the next write makes everything right.
func FuzzStored(f *testing.F) {
	head := segments.Sum([]byte("x")).String()
	for _, text := range []string{"", head, head + "\n", "1 2\n", "1 2", "-1 2\n", "1\n" + head + "\n", "99999999999999999999\n" + head, "../../etc"} {
		f.Add([]byte(text))
	}
	seeded(f)
	e, text := testEvidence(testPlace, "x", false, runID(1))
	e.Sealed = Position{1, 1}
	f.Fuzz(func(t *testing.T, stored []byte) {
		b := NewMemory()
		s, err := Open(t.Context(), Config{Blobs: b, Retention: 1, Now: fixedNow})
		if err != nil {
			t.Fatal(err)
		}
		path, pointer := testPlace.EvidencePath(Heads, e.Head), testPlace.pointer(runID(1))
		for _, name := range []string{path, pointer, testPlace.history(runID(1)) + e.Head.String(), markers + path, markers + testPlace.SnapshotPath(runID(1))} {
			b.blobs[name] = stored
		}
		if n, err := s.Expire(t.Context()); n != 0 || err != nil {
			t.Fatalf("expired %d, %v", n, err)
		}
		if found, err := s.ReadRun(t.Context(), testPlace, runID(1)); err != nil && !errors.Is(err, ErrNotFound) || err == nil && !bytes.Equal(found.Bytes, stored) {
			t.Fatalf("%+v, %v", found, err)
		}
		write(t, s, e)
		found, err := s.ReadRun(t.Context(), testPlace, runID(1))
		if err != nil || !bytes.Equal(found.Bytes, text) || *found.Head != e.Head {
			t.Fatalf("%+v, %v", found, err)
		}
	})
}

// seeded fails a fuzz target that has lost its committed corpus.
func seeded(f *testing.F) {
	f.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "fuzz", f.Name(), "*"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no committed seeds, %v", err)
	}
}
