package segments_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaind/chaind/segments"
)

const plasm = "../testdata/plasm"

// expected is the part of a vector's expected.json that this room answers for.
type expected struct {
	Name           string
	RecomputedHead *string `json:"recomputed_head"`
	SameHeadAs     string  `json:"same_head_as"`
	Inputs         struct {
		Artifact string
		RunID    string `json:"run_id"`
	}
	Reference struct {
		Decode struct{ Outcome string }
	}
	Strict struct{ Errors, Warnings []string }
}

func readJSON(t testing.TB, path string, v any) {
	t.Helper()
	if err := json.Unmarshal(readFile(t, path), v); err != nil {
		t.Fatal(err)
	}
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// vectors returns the names of all vector folders.
func vectors(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob(plasm + "/*/expected.json")
	if err != nil || len(paths) != 73 {
		t.Fatalf("%d vectors, %v", len(paths), err)
	}
	var names []string
	for _, p := range paths {
		names = append(names, filepath.Base(filepath.Dir(p)))
	}
	return names
}

var valueTreeCodes = []string{
	segments.DuplicateMember, segments.UnknownMember, segments.ExplicitNull, segments.EmptyOptional,
	segments.NotAnObject, segments.NoncanonicalHex, segments.NoncanonicalUUID, segments.UnsafeInteger,
}

func codesOf(found []segments.Deviation) []string {
	var codes []string
	for _, d := range found {
		codes = append(codes, d.Code)
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

func TestVectorsDecode(t *testing.T) {
	t.Parallel()
	for _, name := range vectors(t) {
		t.Run(name, func(t *testing.T) {
			var want expected
			readJSON(t, filepath.Join(plasm, name, "expected.json"), &want)
			text := readFile(t, filepath.Join(plasm, name, "bundle.json"))
			b, found, err := segments.ReadBundle(bytes.NewReader(text))
			if got, want := err == nil, want.Reference.Decode.Outcome == "accept"; got != want {
				t.Fatalf("decodes: %v (%v), want %v", got, err, want)
			}
			wantCodes := slices.DeleteFunc(slices.Clone(want.Strict.Errors), func(c string) bool {
				return !slices.Contains(valueTreeCodes, c)
			})
			if got := codesOf(found); !slices.Equal(got, wantCodes) {
				t.Errorf("deviations %v, want %v", found, wantCodes)
			}
			if err != nil {
				if b != nil {
					t.Error("a bundle beside an error")
				}
				return
			}
			checkHead(t, b, want.RecomputedHead)
			checkOrder(t, b, &want)
		})
	}
}

func checkHead(t *testing.T, b *segments.Bundle, want *string) {
	t.Helper()
	var w segments.Walk
	for i := range b.Segments {
		if err := w.Step(&b.Segments[i]); err != nil {
			if _, ok := errors.AsType[*segments.BrokenPrevError](err); !ok || want != nil {
				t.Errorf("walk: %v, want head %v", err, want)
			}
			return
		}
	}
	switch {
	case w.Head == nil || want == nil:
		if w.Head != nil || want != nil {
			t.Errorf("head %v, want %v", w.Head, want)
		}
	case w.Head.String() != *want:
		t.Errorf("head %v, want %v", w.Head, *want)
	}
}

// orderCodes are the strict codes that follow from an Order.
func orderCodes(o *segments.Order) (codes []string) {
	if o.Comps == 0 {
		codes = append(codes, "comp_missing")
	} else if o.First.Broken != nil || o.AgainstLast().Broken != nil {
		codes = append(codes, "topo_mismatch")
	}
	if o.KindOrder != nil {
		codes = append(codes, "kind_order")
	}
	if _, n := o.Missing(0); n > 0 {
		codes = append(codes, "steps_missing")
	}
	slices.Sort(codes)
	return codes
}

func checkOrder(t *testing.T, b *segments.Bundle, want *expected) {
	t.Helper()
	var o segments.Order
	for i := range b.Segments {
		o.Add(&b.Segments[i])
	}
	all := slices.Concat(want.Strict.Errors, want.Strict.Warnings)
	wantCodes := slices.DeleteFunc(all, func(c string) bool {
		return !slices.Contains([]string{"comp_missing", "topo_mismatch", "kind_order", "steps_missing"}, c)
	})
	slices.Sort(wantCodes)
	if got := orderCodes(&o); !slices.Equal(got, wantCodes) {
		t.Errorf("order codes %v, want %v", got, wantCodes)
	}
}
