package store

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"weak"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// What an event became is durable: the store does not hold on to the event, with
// its payload, whatever came of it.
func TestNoEventIsHeld(t *testing.T) {
	s, err := Open(Config{Dir: filepath.Join(t.TempDir(), "store")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	add := func(n, seq int, change func([]byte) []byte) (weak.Pointer[events.Event], events.Verdict) {
		m := ordinaryStep(n, 1)
		m.StreamSeq, m.Payload = uint64(seq), change(m.Payload)
		e := events.Decode(m, events.DefaultLimits)
		effects, err := s.Append(context.Background(), &events.Batch{Stream: testStream, Events: []*events.Event{e}})
		if err != nil {
			t.Fatal(err)
		}
		return weak.Make(e), effects[0].Verdict
	}
	same := func(b []byte) []byte { return b }
	unknown := func(b []byte) []byte { return bytes.Replace(b, []byte(`"v":1,`), []byte(`"v":1,"bogus":1,`), 1) }
	first := func(n int) func([]byte) []byte { return func([]byte) []byte { return ordinaryStep(n, 1).Payload } }
	for i, c := range []struct {
		n      int
		change func([]byte) []byte
		want   events.Verdict
	}{{0, same, events.Appended}, {1, unknown, events.Rejected}, {2, same, events.Appended}, {0, first(0), events.Duplicate}} {
		w, verdict := add(c.n, i+1, c.change)
		if verdict != c.want {
			t.Fatalf("event %d is %s, want %s", i, verdict, c.want)
		}
		runtime.GC()
		if w.Value() != nil {
			t.Errorf("the store holds on to an event that is %s", verdict)
		}
	}
}

// ordinaryStep is number n of steps that take turns in their chains: what an emitter
// sends after the first event of a chain, quotes in its source line included.
func ordinaryStep(n, chains int) events.Message {
	payload := fmt.Appendf(nil, `{"v":1,"event_id":"01JZ-%d","at_ms":1780000000000,"producer_seq":%d,"kind":{"kind":"step_executed",`+
		`"step_id":"list","step_index":3,"entry_id":"gh","request_fingerprints":["GET /issues"],"source_line":%q,"parsed_expr_digest":%q}}`,
		n, n/chains, `x = list(state="open")`, segments.Sum(nil).String())
	return events.Message{Subject: testKey(fmt.Sprint("c", n%chains)).Subject(events.VerbStep), Payload: payload,
		StreamSeq: uint64(n + 1), BrokerMS: 1780000000000}
}
