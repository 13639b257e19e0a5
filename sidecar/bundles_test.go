package sidecar

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chaind/chaind/segments"
)

const testBundleText = "the bundle"

// trustBundle is sound when it says so and ends.
func trustBundle(text string) Bundle {
	return Bundle{
		Place: testPlace, Chain: "c", Root: segments.Sum([]byte("root")), Body: Bytes([]byte(text)),
		Sound: func(r io.Reader) (bool, error) {
			b, err := io.ReadAll(r)
			return bytes.HasPrefix(b, []byte(testBundleText)), err
		},
	}
}

func openMemory(t *testing.T) (*Sidecars, *Memory) {
	t.Helper()
	m := NewMemory()
	s, err := Open(t.Context(), Config{Blobs: m})
	if err != nil {
		t.Fatal(err)
	}
	return s, m
}

func TestWriteBundle(t *testing.T) {
	t.Parallel()
	s, m := openMemory(t)
	b := trustBundle(testBundleText)
	w, err := s.WriteBundle(t.Context(), b)
	want := Written{Path: "bundles/" + b.Root.String() + ".tsb", Outcome: Stored, Bytes: uint64(len(testBundleText)), SHA256: segments.Sum([]byte(testBundleText))}
	if diff := cmp.Diff(want, w); diff != "" || err != nil {
		t.Fatalf("%v %s", err, diff)
	}
	var names []string
	if err := m.List(t.Context(), "", func(name string) error { names = append(names, name); return nil }); err != nil || len(names) != 3 {
		t.Errorf("%q, %v", names, err)
	}
	for _, step := range []struct {
		name, before string // what stands there first; "absent"
		text         string
		exact        bool
		outcome      Outcome
		stands       string
	}{
		{"again", testBundleText, testBundleText, false, Stored, testBundleText},
		{"another signature was first", testBundleText + "!", testBundleText, false, Kept, testBundleText + "!"},
		{"… and is known not to be the first", testBundleText + "!", testBundleText, true, Repaired, testBundleText},
		{"damaged", "the bun", testBundleText, false, Repaired, testBundleText},
		{"emptied", "", testBundleText, false, Repaired, testBundleText},
		{"absent", "absent", testBundleText, false, Stored, testBundleText},
	} {
		if step.before == "absent" {
			err = m.Remove(t.Context(), w.Path)
		} else {
			err = m.Put(t.Context(), w.Path, Bytes([]byte(step.before)))
		}
		if err != nil {
			t.Fatal(err)
		}
		b := trustBundle(step.text)
		b.Exact = step.exact
		got, err := s.WriteBundle(t.Context(), b)
		text, readErr := s.ReadBundle(t.Context(), b.Root)
		if err != nil || readErr != nil || got.Outcome != step.outcome || string(text) != step.stands || got.SHA256 != segments.Sum(text) {
			t.Errorf("%s: %+v, %v, %q, %v", step.name, got, err, text, readErr)
		}
	}
}

// TestBundleHistory: a second root of a chain takes the pointer, and the first
// stays findable.
func TestBundleHistory(t *testing.T) {
	t.Parallel()
	s, _ := openMemory(t)
	first, second := trustBundle(testBundleText), trustBundle(testBundleText)
	second.Root = segments.Sum([]byte("other"))
	for _, b := range []Bundle{first, second} {
		if _, err := s.WriteBundle(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	pointer, roots, err := s.BundleRoots(t.Context(), testPlace, "c")
	if err != nil || len(roots) != 2 || pointer == nil || *pointer != second.Root {
		t.Errorf("%v, %v, %v", pointer, roots, err)
	}
	sum := segments.Sum([]byte(testBundleText))
	for _, b := range []Bundle{first, second} {
		if ok, err := s.IntactBundle(t.Context(), b, sum); !ok || err != nil {
			t.Errorf("%s: %v, %v", b.Root, ok, err)
		}
	}
	if pointer, roots, err := s.BundleRoots(t.Context(), testPlace, "unknown"); pointer != nil || len(roots) != 0 || err != nil {
		t.Errorf("unknown chain: %v, %v, %v", pointer, roots, err)
	}
}

func TestBundleNames(t *testing.T) {
	t.Parallel()
	s, m := openMemory(t)
	for _, chain := range []string{"", "a/b", "..", "a.root", strings.Repeat("a", 65), "é", "a b"} {
		b := trustBundle(testBundleText)
		b.Chain = chain
		if _, err := s.WriteBundle(t.Context(), b); !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", chain, err)
		}
		if _, err := s.IntactBundle(t.Context(), b, segments.Digest{}); !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", chain, err)
		}
	}
	if err := m.List(t.Context(), "", func(name string) error { return errors.New(name) }); err != nil {
		t.Errorf("written: %v", err)
	}
	b := trustBundle(testBundleText)
	b.Chain = "_"
	if _, err := s.WriteBundle(t.Context(), b); err != nil {
		t.Error(err)
	}
	if _, err := s.ReadBundle(t.Context(), segments.Digest{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown root: %v", err)
	}
}

// TestBundleFaults makes each operation fail, with and without effect: it must
// be reported, and the next attempt must leave what one without a fault leaves.
func TestBundleFaults(t *testing.T) {
	t.Parallel()
	sum := segments.Sum([]byte(testBundleText))
	for _, before := range []string{"", "damaged"} {
		for n := 0; ; n++ {
			met := false
			for _, persist := range []bool{false, true} {
				m := NewMemory()
				b := trustBundle(testBundleText)
				if before != "" {
					if err := m.Put(t.Context(), BundlePath(b.Root), Bytes([]byte(before))); err != nil {
						t.Fatal(err)
					}
				}
				f := &faulty{Blobs: m, n: n, persist: persist}
				s, err := Open(t.Context(), Config{Blobs: f})
				if err != nil {
					t.Fatal(err)
				}
				_, err = s.WriteBundle(t.Context(), b)
				met = f.count > n
				if met != errors.Is(err, errInjected) {
					t.Errorf("operation %d, persisted %v: %v", n, persist, err)
				}
				f.n = -1
				if _, err := s.WriteBundle(t.Context(), b); err != nil {
					t.Error(err)
				}
				if ok, err := s.IntactBundle(t.Context(), b, sum); !ok || err != nil {
					t.Errorf("operation %d, persisted %v: intact %v, %v", n, persist, ok, err)
				}
			}
			if !met {
				if n < 3 {
					t.Errorf("only %d operations", n)
				}
				break
			}
		}
	}
}
