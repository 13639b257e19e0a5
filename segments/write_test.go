package segments_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaind/chaind/segments"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The reference's writer gave the positive vectors their bytes.
func TestVectorsAreWrittenBack(t *testing.T) {
	t.Parallel()
	same := 0
	for _, name := range vectors(t) {
		if !strings.HasPrefix(name, "p") {
			continue
		}
		text := readFile(t, filepath.Join(plasm, name, "bundle.json"))
		got := segments.AppendBundle(nil, readBundle(t, name))
		if name == "p08-reordered-pretty" { // p01 in another order
			text = readFile(t, filepath.Join(plasm, "p01-full-run-unsigned", "bundle.json"))
		}
		if !bytes.Equal(got, text) {
			t.Errorf("%s: %s", name, cmp.Diff(string(text), string(got)))
		}
		same++
	}
	if same != 10 {
		t.Errorf("%d positive vectors", same)
	}
}

func stream(t testing.TB, b *segments.Bundle) []byte {
	t.Helper()
	var out bytes.Buffer
	w := segments.NewBundleWriter(&out, &b.Scope)
	for i := range b.Segments {
		if err := w.Write(&b.Segments[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(b.Head, b.Anchors, b.Signature); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestBundleRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		b := genBundle.Draw(r, "bundle")
		text := segments.AppendBundle(nil, b)
		if got := stream(t, b); !bytes.Equal(got, text) {
			t.Fatalf("streamed\n%s\nappended\n%s", got, text)
		}
		back, found, err := segments.ReadBundle(bytes.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if !bytes.Equal(segments.AppendBundle(nil, back), text) {
			t.Fatalf("%s does not come back", text)
		}
		for _, d := range found { // what the generator makes on purpose
			if d.Code != segments.UnsafeInteger && d.Code != segments.NoncanonicalHex {
				t.Fatalf("%s: %+v", text, d)
			}
		}
	})
}

// failAfter accepts n writes and then fails.
type failAfter struct{ n, writes int }

var errFull = errors.New("disk full")

func (w *failAfter) Write(p []byte) (int, error) {
	if w.writes++; w.writes > w.n {
		return 0, errFull
	}
	return len(p), nil
}

func TestBundleWriterFaults(t *testing.T) {
	t.Parallel()
	b := chainOf(honest(500))
	for n := range 4 {
		w := segments.NewBundleWriter(&failAfter{n: n}, &b.Scope)
		var err error
		for i := range b.Segments {
			if err = w.Write(&b.Segments[i]); err != nil {
				break
			}
		}
		if end := w.Close(b.Head, b.Anchors, nil); !errors.Is(end, errFull) || err != nil && !errors.Is(err, errFull) {
			t.Errorf("after %d writes: %v, then %v", n, err, end)
		}
	}
	w := segments.NewBundleWriter(&failAfter{n: 9}, &b.Scope)
	if err := w.Close(nil, segments.Anchors{}, nil); err != nil {
		t.Error(err)
	}
	if w.Close(nil, segments.Anchors{}, nil) == nil || w.Write(&b.Segments[0]) == nil {
		t.Error("a closed writer goes on")
	}
}
