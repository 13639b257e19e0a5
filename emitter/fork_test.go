package emitter

import (
	"errors"
	"testing"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// Case C04: two writers go on from one segment. Only the first gets its event in;
// the second is told, and the chain has no fork.
func TestC04SecondWriterOfASegmentIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start()
	a := r.begin(r.publisherConfig("c"))
	for i := range 3 {
		must(t)(a.Step(deadline(t), Step{StepID: "s", StepIndex: uint32(i), Parsed: []byte("1")}))
	}
	b, err := Resume(deadline(t), r.publisherConfig("c"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	of := func(p *Publisher) segments.Digest {
		t.Helper()
		head, known := p.Head()
		if !known || head == nil {
			t.Fatal("the publisher knows no head")
		}
		return *head
	}
	if of(a) != of(b) {
		t.Fatal("the writers do not go on from one segment")
	}
	must(t)(a.Step(deadline(t), Step{StepID: "ours", StepIndex: 3, Parsed: []byte("1")}))
	if s, err := b.Step(deadline(t), Step{StepID: "theirs", StepIndex: 3, Parsed: []byte("2")}); !errors.Is(err, ErrOtherWriter) || s != (Sent{}) {
		t.Fatalf("the second writer sent %+v, %v", s, err)
	}
	must(t)(a.Seal(deadline(t), Seal{}))
	if _, err := a.Wait(deadline(t)); err != nil {
		t.Fatal(err)
	}
	r.store.look(testKey("c"), func(c *memoryChain) {
		if coverage, why := c.state.Coverage(); coverage != events.Complete || len(c.segments) != 4 || c.state.Late+c.state.Rejected != 0 {
			t.Errorf("%d segments, %s %v", len(c.segments), coverage, why)
		}
		if err := walk(c.segments); err != nil || *c.state.Head != of(a) {
			t.Errorf("head %s, the writer's is %s: %v", c.state.Head, of(a), err)
		}
	})
}

func TestC04SecondBeginIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a, b := r.begin(r.publisherConfig("c")), r.begin(r.publisherConfig("c"))
	must(t)(a.Intent(deadline(t), Intent{Text: "a"}))
	if _, err := b.Intent(deadline(t), Intent{Text: "b"}); !errors.Is(err, ErrExists) {
		t.Fatalf("second writer: %v", err)
	}
	must(t)(a.Attempt(deadline(t), Attempt{StepID: "s"}))
}
