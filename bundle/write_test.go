package bundle_test

import (
	"bytes"
	"errors"
	"iter"
	"testing"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine/naive"
)

// redraft takes a bundle apart into a draft of its canonical parts.
func redraft(t testing.TB, b *bundle.Bundle) *bundle.Draft {
	t.Helper()
	graph := b.Closure.Get("graph")
	d := &bundle.Draft{
		Engine:      b.Engine.AppendCanonical(nil),
		Result:      b.Result.AppendCanonical(nil),
		Kind:        b.Closure.Get("kind").Text(),
		Edges:       items(graph.Get("edges")),
		Mentions:    items(graph.Get("mentions")),
		Resolutions: items(graph.Get("resolutions")),
		Records:     items(b.Closure.Get("kb").Get("records")),
		Nodes: func(yield func(string, []byte) bool) {
			for _, n := range graph.Get("nodes").Items() {
				if !yield(n.Get("record").Get("id").Text(), n.AppendCanonical(nil)) {
					return
				}
			}
		},
	}
	if b.Action.Kind() != bundle.Null {
		d.Action = b.Action.AppendCanonical(nil)
	}
	for _, up := range b.Upstream().Items() {
		u, err := bundle.Open(up)
		if err != nil {
			t.Fatal(err)
		}
		d.Upstream = append(d.Upstream, u)
	}
	return d
}

func items(list bundle.Value) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var buf []byte
		for _, item := range list.Items() {
			buf = item.AppendCanonical(buf[:0])
			if !yield(buf) {
				return
			}
		}
	}
}

// TestRewrite: a bundle written from its parts is the file, also when the parts
// came from a file with another layout.
func TestRewrite(t *testing.T) {
	for _, path := range []string{"testdata/e1.tsb", vectors + "honest.tsb", vectors + "forged.tsb", vectors + "rca.tsb", vectors + "brief.tsb"} {
		text := readFile(t, path)
		for _, source := range []string{text, spaced(text)} {
			b := mustParse(t, source)
			var out bytes.Buffer
			root, err := bundle.Write(&out, redraft(t, b), nil)
			if err != nil || root != b.StoredRoot() {
				t.Fatalf("%s: root %s, %v", path, root, err)
			}
			if out.String() != text {
				t.Errorf("%s: other bytes", path)
			}
		}
	}
}

func TestWriteSignedDraft(t *testing.T) {
	var out bytes.Buffer
	d := redraft(t, mustParse(t, readFile(t, "testdata/e1.tsb")))
	d.Action = []byte(`{"kind":"none"}`)
	if _, err := bundle.Write(&out, d, testKey()); err != nil {
		t.Fatal(err)
	}
	if err := naive.Check(naive.MustParse(out.String())); err != nil {
		t.Error(err)
	}
	b := mustParse(t, out.String())
	if check, err := b.CheckSignature(); err != nil || !check.Valid || !b.Canonical {
		t.Errorf("signature %+v, %v", check, err)
	}
}

// TestEmptyDraft: nil sequences are empty lists.
func TestEmptyDraft(t *testing.T) {
	var out bytes.Buffer
	d := &bundle.Draft{Engine: []byte("{}"), Result: []byte("{}"), Kind: bundle.KindChain}
	if _, err := bundle.Write(&out, d, nil); err != nil {
		t.Fatal(err)
	}
	if err := naive.Check(naive.MustParse(out.String())); err != nil {
		t.Error(err)
	}
	if check := mustIntegrity(t, mustParse(t, out.String())); len(check.Findings) > 0 || check.Leaves != 9 {
		t.Errorf("%d leaves, findings %v", check.Leaves, found(check.Findings))
	}
}

func TestWriteRefuses(t *testing.T) {
	e1 := mustParse(t, readFile(t, "testdata/e1.tsb"))
	for name, edit := range map[string]func(d *bundle.Draft){
		"kind":        func(d *bundle.Draft) { d.Kind = "cited-records-only" },
		"upstream":    func(d *bundle.Draft) { d.Upstream = []*bundle.Bundle{e1} },
		"twice":       func(d *bundle.Draft) { d.Kind, d.Upstream = bundle.KindChain, []*bundle.Bundle{e1, e1} },
		"invalid":     func(d *bundle.Draft) { d.Result = []byte("\"\xff\"") },
		"invalid too": func(d *bundle.Draft) { d.Engine = []byte("\"\xff\"") },
		"same id": func(d *bundle.Draft) {
			d.Nodes = func(yield func(string, []byte) bool) {
				for range 2 {
					if !yield("a", []byte("{}")) {
						return
					}
				}
			}
		},
	} {
		d := redraft(t, e1)
		edit(d)
		if root, err := bundle.Write(&bytes.Buffer{}, d, nil); err == nil || root != "" {
			t.Errorf("%s: root %q, %v", name, root, err)
		}
	}
}

var errFull = errors.New("no space left")

// full is a writer with room for so many bytes.
type full int

func (f *full) Write(p []byte) (int, error) {
	if len(p) > int(*f) {
		return 0, errFull
	}
	*f -= full(len(p))
	return len(p), nil
}

func TestWriteToAFullDisk(t *testing.T) {
	b := mustParse(t, readFile(t, vectors+"honest.tsb"))
	for _, room := range []full{0, 1, 70000, 200000, 404339} {
		left := room
		if root, err := bundle.Write(&left, redraft(t, b), nil); !errors.Is(err, errFull) || root != "" {
			t.Errorf("room for %d: root %q, %v", room, root, err)
		}
		left = room
		if err := bundle.WriteSigned(&left, b, nil); !errors.Is(err, errFull) {
			t.Errorf("signed, room for %d: %v", room, err)
		}
	}
	left := full(404340)
	if _, err := bundle.Write(&left, redraft(t, b), nil); err != nil || left != 0 {
		t.Errorf("%d bytes left, %v", left, err)
	}
}
