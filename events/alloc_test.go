//go:build !race

package events

import (
	"testing"

	"github.com/chaind/chaind/segments"
)

// TestDecodeAllocations: events, and their strings, are made some at a time, with
// escapes or without.
func TestDecodeAllocations(t *testing.T) {
	d := NewDecoder(DefaultLimits)
	const want = 0
	for _, source := range []string{"x = list()", `x = list("open")`} {
		m := guardedStep(1, source)
		if e := d.Decode(m); e.Fault != nil {
			t.Fatal(e.Fault)
		}
		if e := d.Decode(m); e.Kind.(*segments.StepExecuted).SourceLine != source {
			t.Fatalf("source line %q", e.Kind.(*segments.StepExecuted).SourceLine)
		}
		if got := testing.AllocsPerRun(200, func() { d.Decode(m) }); got > want {
			t.Errorf("decode of a step event with %q: %v allocations, want %v at most", source, got, want)
		}
	}
}

// TestApplyAllocations: the new head, and the event's id.
func TestApplyAllocations(t *testing.T) {
	const runs = 200
	var decoded []*Event
	for n := range runs + 2 {
		decoded = append(decoded, Decode(guardedStep(n, "x = list()"), DefaultLimits))
	}
	s := NewState(decoded[0].Key)
	s.Apply(decoded[0], Known{})
	next := 0
	got := testing.AllocsPerRun(runs, func() {
		next++
		if effect := s.Apply(decoded[next], Known{}); effect.Verdict != Appended {
			t.Fatal(effect)
		}
	})
	if got > 2 {
		t.Errorf("apply of a step event: %v allocations, want 2 at most", got)
	}
}
