package emitter

import (
	"testing"
	"time"

	"github.com/chaind/chaind/events"
)

func testSession(cfg IntakeConfig) *session {
	cfg = cfg.withDefaults()
	return &session{in: &Intake{cfg: cfg}, hand: newHandoff(&cfg), decoder: events.NewDecoder(events.Limits{}), next: 1}
}

func TestN24BrokerTimeGoesBackwards(t *testing.T) {
	t.Parallel()
	s := testSession(IntakeConfig{})
	store := newMemory()
	for i, ms := range []uint64{500, 400, 0, 600} {
		m := stepEvent("c", i+1)
		if !s.accept(events.Message{Subject: m.Subject, Payload: m.Data, StreamSeq: uint64(i + 1), BrokerMS: ms}, nil, false) {
			t.Fatal("refused")
		}
	}
	b := s.hand.take(&batch{})
	if _, err := store.Append(deadline(t), &events.Batch{Events: b.events}); err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, store: store}
	r.inOrder("c", 1, 2, 3, 4)
	if unixMS(time.Unix(-5, 0)) != 0 {
		t.Error("a time before 1970 is negative")
	}
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
