package bundle_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine/naive"
)

// judged runs everything that reads a text. It returns the bundle when its
// envelope is intact.
func judged(text string) *bundle.Bundle {
	b, err := bundle.Parse(text)
	if err != nil {
		return nil
	}
	b.ChainDepth()
	b.Withheld()
	signature, errSignature := b.CheckSignature()
	integrity, err := b.CheckIntegrity()
	if err != nil || errSignature != nil || len(integrity.Findings) > 0 || signature.Finding != nil {
		return nil
	}
	return b
}

func TestEveryPrefix(t *testing.T) {
	text, stride := signedE1(t), 1
	if testing.Short() {
		stride = 7
	}
	for n := 0; n < len(text)-1; n += stride {
		if judged(text[:n]) != nil {
			t.Errorf("the first %d bytes are intact", n)
		}
	}
	if b := judged(text[:len(text)-1]); b == nil || b.Canonical {
		t.Error("without its last byte, a line feed, the bundle must be intact and not canonical")
	}
	brief := readFile(t, vectors+"brief.tsb")
	for n := 0; n < len(brief)-1; n += 1201 * stride {
		if judged(brief[:n]) != nil {
			t.Errorf("the first %d bytes of brief.tsb are intact", n)
		}
	}
}

// TestFlippedBits: whatever bit is flipped, the envelope is not intact, or the
// document is the same: only its layout changed.
func TestFlippedBits(t *testing.T) {
	flip := func(text, canon string, at, bit int) {
		changed := []byte(text)
		changed[at] ^= 1 << bit
		if b := judged(string(changed)); b != nil && (b.Canonical || string(b.Doc.AppendCanonical(nil))+"\n" != canon) {
			t.Errorf("byte %d, bit %d: an altered document is intact", at, bit)
		}
	}
	text, stride := signedE1(t), 1
	if testing.Short() {
		stride = 11
	}
	for at := range len(text) {
		for bit := at % stride; bit < 8; bit += stride {
			flip(text, text, at, bit)
		}
	}
	honest := readFile(t, vectors+"honest.tsb")
	for at := 0; at < len(honest); at += 4099 {
		flip(honest, honest, at, at%8)
	}
	loose := spaced(text)
	for at := 0; at < len(loose); at += stride {
		flip(loose, text, at, at%7)
	}
}

// TestEveryMember: each value of a bundle deleted or replaced, sealed again and
// not (case V17). The reader must answer; what it answers is checked elsewhere.
func TestEveryMember(t *testing.T) {
	text := signedE1(t)
	for n, path := range naive.Paths(naive.MustParse(text)) {
		if testing.Short() && n%5 > 0 {
			continue
		}
		for _, v := range []any{nil, []any{}, map[string]any{}, "", naive.Number("-1"), naive.Number("1000000000"), naive.Number("1e9"), true} {
			doc := naive.MustParse(text)
			naive.Put(doc, v, path...)
			if judged(naive.File(doc)) != nil && path[0] != "anchor" && path[0] != "signature" {
				if same := naive.At(naive.MustParse(text), path...); naive.Canon(same) != naive.Canon(v) {
					t.Errorf("%v replaced by %v: intact", path, v)
				}
			}
		}
		doc := naive.MustParse(text)
		naive.Remove(doc, path...)
		judged(naive.File(doc))
		doc = naive.MustParse(text)
		naive.Put(doc, []any{map[string]any{"a": []any{naive.Number("1000000000")}}}, path...)
		judged(naive.File(doc))
	}
}

// TestMemory: reading and checking a file takes a small multiple of its size,
// whatever the file is made of.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("measures tens of megabytes")
	}
	e1 := readFile(t, "testdata/e1.tsb")
	head, tail, _ := strings.Cut(e1, `"claim_shapes":[]`)
	const n = 1 << 20
	for name, filling := range map[string]string{
		"numbers": strings.Repeat("0,", 2*n), "lists": strings.Repeat("[],", n), "pairs": strings.Repeat(`["",""],`, n/2),
		"objects": strings.Repeat(`{"":0},`, n/2), "names": strings.Repeat(`{"b":0,"a":0},`, n/3),
		"escapes": `"` + strings.Repeat(`\u0041`, 2*n) + `",`, "text": `"` + strings.Repeat("x", 16*n) + `",`,
	} {
		text := head + `"claim_shapes":[` + filling + `0]` + tail
		grown := heapDuring(func() {
			b := mustParse(t, text)
			if _, err := b.CheckIntegrity(); err != nil {
				t.Fatal(err)
			}
			runtime.KeepAlive(b)
		})
		if limit := uint64(32<<20 + 6*len(text)); grown > limit {
			t.Errorf("%s: a file of %d bytes took %d, limit %d", name, len(text), grown, limit)
		}
	}
}

// heapDuring measures what f allocates in total, an upper bound of what it ever
// holds.
func heapDuring(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func FuzzParse(f *testing.F) {
	f.Add(`{"b":[1.0,-0.0,1e+16,"\u0041\n"],"a":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		v, err := bundle.ParseValue(text)
		if err != nil {
			return
		}
		canon := string(v.AppendCanonical(nil))
		again, err := bundle.ParseValue(canon)
		if err != nil || string(again.AppendCanonical(nil)) != canon || !v.EqualCanonical([]byte(canon)) || again.Digest() != v.Digest() {
			t.Fatalf("canon(%q) = %q is not a fixed point: %v", text, canon, err)
		}
		if v.Kind() != bundle.Object {
			return
		}
		doc, err := naive.Parse(text)
		if err != nil {
			t.Fatalf("%q is accepted, and another reader refuses it: %v", text, err)
		}
		if other := naive.Canon(doc); other != canon {
			t.Fatalf("%q: canonical forms %q and %q", text, canon, other)
		}
	})
}

func FuzzBundle(f *testing.F) {
	f.Add(readFile(f, "testdata/e1.tsb"))
	f.Fuzz(func(t *testing.T, text string) {
		b := judged(text)
		if b == nil {
			return
		}
		if again := judged(string(b.Doc.AppendCanonical(nil)) + "\n"); again == nil || !again.Canonical || again.StoredRoot() != b.StoredRoot() {
			t.Fatalf("%q is intact, and its canonical form is not", text)
		}
	})
}

// TestFuzzCorpora: fuzz targets without seeds test nothing.
func TestFuzzCorpora(t *testing.T) {
	for _, target := range []string{"FuzzParse", "FuzzBundle"} {
		seeds, err := os.ReadDir(filepath.Join("testdata", "fuzz", target))
		if err != nil || len(seeds) < 3 {
			t.Errorf("%s has %d seeds, %v", target, len(seeds), err)
		}
	}
}
