package segments_test

import (
	"errors"
	"math"
	"testing"

	"github.com/chaind/chaind/segments"
)

func TestWalk(t *testing.T) {
	t.Parallel()
	b := chainOf(honest(3))
	var w segments.Walk
	for i := range b.Segments {
		if err := w.Step(&b.Segments[i]); err != nil {
			t.Fatal(err)
		}
	}
	if w.Count != uint64(len(b.Segments)) || *w.Head != *b.Head {
		t.Errorf("%d segments, head %v", w.Count, w.Head)
	}
}

// A broken link names the stored seq and the place, changes nothing, and the
// walk can go on behind it.
func TestWalkBreaks(t *testing.T) {
	t.Parallel()
	b := chainOf(honest(3))
	b.Segments[2].Seq = 77 // its digest changes: the next link breaks
	var w segments.Walk
	var broken []segments.BrokenPrevError
	for i := range b.Segments {
		before := w
		err := w.Step(&b.Segments[i])
		if e, ok := errors.AsType[*segments.BrokenPrevError](err); ok {
			broken = append(broken, *e)
			if w.Count != before.Count || w.Head != before.Head {
				t.Error("a failed step moved the walk")
			}
			w.Skip(&b.Segments[i])
		}
	}
	want := segments.BrokenPrevError{Seq: 3, Index: 3}
	if len(broken) != 1 || broken[0] != want || w.Count != uint64(len(b.Segments)) || *w.Head != *b.Head {
		t.Errorf("%+v, %d segments", broken, w.Count)
	}
	if got := want.Error(); got != "link to the previous segment is broken at index 3 (seq 3)" {
		t.Error(got)
	}
	first := b.Segments[0]
	first.Prev = b.Head
	if err := new(segments.Walk).Step(&first); err == nil {
		t.Error("a first segment with prev passes")
	}
}

// A chain can be taken up from what a store keeps of it.
func TestBuilderGoesOn(t *testing.T) {
	t.Parallel()
	kinds := honest(20)
	whole := chainOf(kinds)
	var state segments.Builder
	for i, k := range kinds {
		b := segments.Builder{Next: state.Next, Head: state.Head}
		at := 1767225600000 + uint64(i)
		if s := b.Append(k, &at); s.Digest() != whole.Segments[i].Digest() {
			t.Fatalf("segment %d differs", i)
		}
		state = b
	}
	if *state.Head != *whole.Head {
		t.Error("heads differ")
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	big, safe, bad := uint64(segments.MaxSafeInteger+1), uint64(segments.MaxSafeInteger), "\xff"
	for _, tt := range []struct {
		what string
		s    segments.Segment
		want error
	}{
		{"safe", segments.Segment{Seq: safe, EmittedAtMS: &safe, Kind: &segments.RunSealed{ResourceIndex: &safe}}, nil},
		{"u32", segments.Segment{Kind: &segments.IntentBound{IntentLen: math.MaxUint32}}, nil},
		{"seq", segments.Segment{Seq: big, Kind: &segments.IntentBound{}}, segments.ErrUnsafeInteger},
		{"time", segments.Segment{EmittedAtMS: &big, Kind: &segments.IntentBound{}}, segments.ErrUnsafeInteger},
		{"index", segments.Segment{Kind: &segments.RunSealed{ResourceIndex: &big}}, segments.ErrUnsafeInteger},
		{"run id", segments.Segment{Kind: &segments.RunSealed{RunID: bad}}, segments.ErrInvalidUTF8},
		{"topology", segments.Segment{Kind: &segments.CompCommitted{StepTopo: []string{"a", bad}}}, segments.ErrInvalidUTF8},
		{"fingerprint", segments.Segment{Kind: &segments.StepExecuted{RequestFingerprints: []string{bad}}}, segments.ErrInvalidUTF8},
		{"entry", segments.Segment{Kind: &segments.StepExecuted{EntryID: &bad}}, segments.ErrInvalidUTF8},
	} {
		if err := tt.s.Check(); !errors.Is(err, tt.want) || tt.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", tt.what, err, tt.want)
		}
	}
}

func TestDecodeParts(t *testing.T) {
	t.Parallel()
	b := chainOf(honest(1))
	scope, found, err := segments.DecodeScope(segments.AppendScope(nil, &b.Scope))
	if err != nil || len(found) != 0 || *scope != b.Scope {
		t.Errorf("%+v, %v, %v", scope, found, err)
	}
	for _, s := range b.Segments {
		back, found, err := segments.DecodeSegment(segments.AppendSegment(nil, &s))
		if err != nil || len(found) != 0 || back.Digest() != s.Digest() || back.Kind.Tag() != s.Kind.Tag() || *back.EmittedAtMS != *s.EmittedAtMS {
			t.Errorf("%+v, %v, %v", back, found, err)
		}
	}
	for _, text := range []string{"", "{", "{}", "7", "{}x", `{"seq":0}`} {
		s, _, err1 := segments.DecodeSegment([]byte(text))
		sc, _, err2 := segments.DecodeScope([]byte(text))
		k, _, err3 := segments.DecodeKind([]byte(text))
		if err1 == nil || err2 == nil || err3 == nil || s != nil || sc != nil || k != nil {
			t.Errorf("%q decodes", text)
		}
	}
}
