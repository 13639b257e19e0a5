package emitter

import (
	"regexp"
	"testing"
	"time"

	"github.com/chaind/chaind/events"
)

func testSession(cfg IntakeConfig) *session {
	cfg = cfg.withDefaults()
	return &session{in: &Intake{cfg: cfg}, hand: newHandoff(&cfg), decoder: events.NewDecoder(events.Limits{}), next: 1}
}

// Case N24: the broker's time goes back, and even before 1970. Chains keep the
// order of the stream, each segment the time that the broker gave it, none of them
// is negative, and nothing ends for its age: a chain ends by a seal alone.
func TestN24BrokerTimeGoesBackwards(t *testing.T) {
	t.Parallel()
	s := testSession(IntakeConfig{})
	store := newMemory()
	times := []time.Time{time.UnixMilli(1 << 41), time.UnixMilli(400), time.Unix(-5, 0), time.UnixMilli(600)}
	for i, at := range times {
		m := stepEvent("c", i+1)
		undated := regexp.MustCompile(`,"at_ms":[0-9]+`).ReplaceAll(m.Data, nil)
		if len(undated) == len(m.Data) {
			t.Fatalf("no time in %s", m.Data)
		}
		if !s.accept(events.Message{Subject: m.Subject, Payload: undated, StreamSeq: uint64(i + 1), BrokerMS: unixMS(at)}, nil, false) {
			t.Fatal("refused")
		}
	}
	b := s.hand.take(&batch{})
	if _, err := store.Append(deadline(t), &events.Batch{Events: b.events}); err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, store: store}
	r.inOrder("c", 1, 2, 3, 4)
	store.look(testKey("c"), func(c *memoryChain) {
		for i, want := range []uint64{1 << 41, 400, 0, 600} {
			if got := c.segments[i].EmittedAtMS; got == nil || *got != want {
				t.Errorf("segment %d is of %v, want %d", i, got, want)
			}
		}
		if c.state.Outcome != events.Open || c.state.LastAtMS != 600 {
			t.Errorf("%s, last at %d", c.state.Outcome, c.state.LastAtMS)
		}
	})
}

func TestBatchesAreBounded(t *testing.T) {
	t.Parallel()
	s := testSession(IntakeConfig{BatchEvents: 3, BatchBytes: 1 << 20, BatchTime: time.Hour})
	put := func(n int, more bool) bool {
		m := stepEvent("c", n)
		return s.accept(events.Message{Subject: m.Subject, Payload: m.Data, StreamSeq: uint64(n)}, nil, more)
	}
	for n := 1; n <= 3; n++ {
		put(n, true)
	}
	blocked := make(chan bool, 1)
	go func() { blocked <- put(4, false) }()
	b := s.hand.take(&batch{}) // full, so it does not linger although more is on its way
	if len(b.events) != 3 || b.bytes == 0 {
		t.Fatalf("batch of %d events, %d bytes", len(b.events), b.bytes)
	}
	if !<-blocked {
		t.Fatal("the waiting event was refused")
	}
	if b = s.hand.take(b); len(b.events) != 1 || b.events[0].StreamSeq != 4 {
		t.Fatalf("batch %+v", b)
	}
	s.hand.close()
	if put(5, false) || s.hand.take(b) != nil || s.hand.lose(lostRange{}) {
		t.Error("a closed handoff goes on")
	}
}

func TestLostRangeComesBehindTheEventsBeforeIt(t *testing.T) {
	t.Parallel()
	s := testSession(IntakeConfig{BatchTime: time.Hour})
	m := stepEvent("c", 1)
	s.accept(events.Message{Subject: m.Subject, Payload: m.Data, StreamSeq: 1}, nil, true)
	told := make(chan bool, 1)
	go func() { told <- s.hand.lose(lostRange{from: 2, to: 3}) }()
	if b := s.hand.take(&batch{}); len(b.events) != 1 || len(b.lost) != 0 {
		t.Fatalf("first batch %+v", b)
	}
	if !<-told {
		t.Fatal("the lost range was refused")
	}
	s.accept(events.Message{Subject: m.Subject, Payload: m.Data, StreamSeq: 4}, nil, false)
	if b := s.hand.take(&batch{}); len(b.events) != 1 || len(b.lost) != 1 {
		t.Fatalf("second batch %+v", b)
	}
}
