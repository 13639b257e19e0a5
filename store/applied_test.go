package store

import (
	"testing"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// What lies under a sequence is found in the history that is the stream's own
// now, whatever the event's effect was.
func TestN12WhatLiesUnderASequence(t *testing.T) {
	s := openStore(t, Config{Dir: t.TempDir()})
	stream := events.Stream{Name: "EVIDENCE", CreatedNS: 1}
	var first []*events.Event
	for seq := uint64(1); seq <= 10; seq++ {
		first = append(first, step("c", string(rune('a'+seq)), seq))
	}
	first[3] = decoded("evidence.nowhere", "{", 4)            // of no chain
	first[4] = decoded(testKey("c").Subject("step"), "{}", 5) // rejected in its chain
	first = append(first[:6:6], first[7:]...)                 // 7 is lost
	mustAppend(t, s, &events.Batch{Stream: stream, Events: first[:5]})
	mustAppend(t, s, &events.Batch{Stream: stream, Events: first[5:]})
	if _, err := s.BeginEpoch(t.Context(), stream, 8, "stream_differs"); err != nil {
		t.Fatal(err)
	}
	second := []*events.Event{step("c", "x", 9), step("d", "y", 10), step("d", "z", 11)}
	mustAppend(t, s, &events.Batch{Stream: stream, Events: second})

	want := map[uint64]*events.Event{}
	for _, e := range append(first, second...) {
		want[e.StreamSeq] = e // the second history replaces 9 and 10
	}
	for seq := uint64(0); seq <= 13; seq++ {
		got, known, err := s.AppliedAt(stream, seq)
		if err != nil {
			t.Fatal(err)
		}
		switch e := want[seq]; {
		case seq == 7:
			if !known || !got.Lost || got.Sum != (segments.Digest{}) {
				t.Errorf("7: %+v, known %v; it was lost", got, known)
			}
		case e == nil:
			if known {
				t.Errorf("%d: %+v, which was never there", seq, got)
			}
		case !known || got != Applied{Sum: e.Sum, BrokerMS: e.BrokerMS}:
			t.Errorf("%d: %+v, known %v", seq, got, known)
		}
	}
	if _, known, _ := s.AppliedAt(events.Stream{Name: "EVIDENCE", CreatedNS: 2}, 3); known {
		t.Error("a stream created anew has this one's messages")
	}
}
