package sidecar

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// faulty makes the n-th operation fail, with or without effect.
type faulty struct {
	Blobs
	n       int
	persist bool
	mu      sync.Mutex
	count   int
}

func (f *faulty) do(op func() error) error {
	f.mu.Lock()
	at := f.count
	f.count++
	f.mu.Unlock()
	if at != f.n {
		return op()
	}
	if f.persist {
		op()
	}
	return errInjected
}

func (f *faulty) Put(ctx context.Context, name string, body Body) error {
	return f.do(func() error { return f.Blobs.Put(ctx, name, body) })
}

func (f *faulty) PutOnce(ctx context.Context, name string, body Body) error {
	return f.do(func() error { return f.Blobs.PutOnce(ctx, name, body) })
}

func (f *faulty) Open(ctx context.Context, name string) (r io.ReadSeekCloser, err error) {
	err = f.do(func() error { r, err = f.Blobs.Open(ctx, name); return err })
	if err != nil {
		r = nil
	}
	return r, err
}

func (f *faulty) List(ctx context.Context, prefix string, visit func(string) error) error {
	return f.do(func() error { return f.Blobs.List(ctx, prefix, visit) })
}

func (f *faulty) Remove(ctx context.Context, name string) error {
	return f.do(func() error { return f.Blobs.Remove(ctx, name) })
}

// TestFaults makes each operation of a write fail, with and without effect. It
// must be reported, and the next attempt must leave what one without a fault
// leaves.
func TestFaults(t *testing.T) {
	t.Parallel()
	early, _ := testEvidence(testPlace, "early", false, runID(1))
	early.Sealed = Position{1, 1}
	e, _ := testEvidence(testPlace, "x", true, runID(1), runID(2))
	e.Sealed = Position{1, 2}
	now := Config{Now: fixedNow}
	writeAll := func(b Blobs) error {
		cfg := now
		cfg.Blobs, cfg.Owner = b, "store"
		s, err := Open(t.Context(), cfg)
		if err != nil {
			return err
		}
		if _, err := s.WriteSnapshot(t.Context(), testPlace, runID(1), []byte("{}")); err != nil {
			return err
		}
		_, err = s.Write(t.Context(), e)
		return err
	}
	prepare := func() *Memory {
		b := NewMemory()
		s := openSidecars(t, b)
		write(t, s, early)
		put(t, b, testPlace.EvidencePath(Heads, e.Head), "damaged")
		return b
	}
	clean := prepare()
	if err := writeAll(clean); err != nil {
		t.Fatal(err)
	}
	for _, persist := range []bool{false, true} {
		n := 0
		for ; ; n++ {
			b := prepare()
			f := &faulty{Blobs: b, n: n, persist: persist}
			err := writeAll(f)
			if f.count <= n {
				break
			}
			if !errors.Is(err, errInjected) {
				t.Fatalf("operation %d failed, result %v", n, err)
			}
			if err := writeAll(b); err != nil {
				t.Fatalf("again after operation %d failed: %v", n, err)
			}
			if diff := cmp.Diff(clean.blobs, b.blobs); diff != "" {
				t.Fatalf("again after operation %d failed (-clean +got):\n%s", n, diff)
			}
		}
		if n < 15 {
			t.Errorf("only %d operations were made to fail", n)
		}
	}
}

// TestF17Links is case F17 for sidecars.
func TestF17Links(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	target := filepath.Join(outside, "f")
	if err := os.WriteFile(target, []byte("outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	s := openSidecars(t, openDir(t, root))
	e, text := testEvidence(testPlace, "x", false, runID(1))
	w := write(t, s, e)
	for _, name := range []string{w.Path, testPlace.pointer(runID(1))} {
		link(t, target, filepath.Join(root, name))
		if _, err := s.ReadRun(t.Context(), testPlace, runID(1)); !errors.Is(err, ErrNotRegular) {
			t.Errorf("read through %s: %v", name, err)
		}
		write(t, s, e)
		if found, err := s.ReadRun(t.Context(), testPlace, runID(1)); err != nil || string(found.Bytes) != string(text) {
			t.Errorf("after writing %s again: %v", name, err)
		}
	}
	dir := filepath.Join(root, filepath.Dir(w.Path))
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	link(t, outside, dir)
	if _, err := s.Write(t.Context(), e); err == nil {
		t.Error("wrote into a directory that is a link")
	}
	if _, err := s.ReadHead(t.Context(), testPlace, Heads, e.Head); !errors.Is(err, ErrNotRegular) {
		t.Errorf("read in a directory that is a link: %v", err)
	}
	entries, err := os.ReadDir(outside)
	if content, _ := os.ReadFile(target); err != nil || len(entries) != 1 || string(content) != "outside" {
		t.Errorf("outside changed: %v, %q", entries, content)
	}
}

func link(t *testing.T, to, at string) {
	t.Helper()
	os.Remove(at)
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
}

// TestBadPlaces: what is not in its form is refused before anything is touched.
func TestBadPlaces(t *testing.T) {
	t.Parallel()
	b := NewMemory()
	s := openSidecars(t, b)
	good, _ := testEvidence(testPlace, "x", false, runID(1))
	change := map[string]func(*Place){
		"tenant _":           func(p *Place) { p.Tenant = "_" },
		"tenant with dots":   func(p *Place) { p.Tenant = ".." },
		"tenant with slash":  func(p *Place) { p.Tenant = "a/b" },
		"long tenant":        func(p *Place) { p.Tenant = strings.Repeat("a", 65) },
		"capital hash":       func(p *Place) { p.PromptHash = strings.ToUpper(testPrompt) },
		"short hash":         func(p *Place) { p.PromptHash = testPrompt[1:] },
		"no hash":            func(p *Place) { p.PromptHash = "" },
		"session with slash": func(p *Place) { p.Session = "../" + testSession[3:] },
	}
	for _, name := range slices.Sorted(maps.Keys(change)) {
		e := good
		change[name](&e.Place)
		_, err := s.Write(t.Context(), e)
		_, readErr := s.ReadRun(t.Context(), e.Place, runID(1))
		_, headErr := s.ReadHead(t.Context(), e.Place, Heads, e.Head)
		_, snapErr := s.WriteSnapshot(t.Context(), e.Place, runID(1), nil)
		for _, err := range []error{err, readErr, headErr, snapErr} {
			if !errors.Is(err, ErrName) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, id := range []string{"", "pr", "../../etc/cron.d/x", "/abs", "..", strings.ToUpper(runID(10)), "PR" + runID(1)[2:], runID(1) + "0"} {
		e := good
		e.RunIDs = []string{id}
		_, err := s.Write(t.Context(), e)
		_, readErr := s.ReadRun(t.Context(), testPlace, id)
		_, snapErr := s.ReadSnapshot(t.Context(), testPlace, id)
		for _, err := range []error{err, readErr, snapErr} {
			if !errors.Is(err, ErrName) {
				t.Errorf("run id %q: %v", id, err)
			}
		}
	}
	if list := names(t, b, ""); len(list) != 0 {
		t.Errorf("something was written: %v", list)
	}
}
