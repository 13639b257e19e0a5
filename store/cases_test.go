package store

import (
	"fmt"
	"strings"
	"testing"
)

// Case C16: the order is that of the stream, whatever the clocks say: the
// producer's goes back between two steps, two steps share a millisecond, and the
// broker's goes back.
func TestC16OrderIsByNumberNotByTime(t *testing.T) {
	t.Parallel()
	s := openStore(t, testConfig(t))
	at := []uint64{1780000005000, 1780000003000, 1780000003000, 1780000009000}
	for i, ms := range at {
		payload := strings.Replace(stepPayload(fmt.Sprint("e", i)), "1780000000000", fmt.Sprint(ms), 1)
		e := decoded(testKey("c").Subject("step"), payload, uint64(i)+1)
		e.BrokerMS = 1780000000000 - uint64(i)*1000
		give(t, s, testStream, e)
	}
	segments, err := s.Segments(testKey("c"), 0, 0)
	if err != nil || len(segments) != len(at) {
		t.Fatalf("%d segments, %v", len(segments), err)
	}
	for i, r := range segments {
		if r.EventID != fmt.Sprint("e", i) || r.Segment.Seq != uint64(i) || r.Segment.EmittedAtMS == nil || *r.Segment.EmittedAtMS != at[i] {
			t.Errorf("segment %d: %s at %v", i, r.EventID, r.Segment.EmittedAtMS)
		}
	}
	mustCheck(t, s)
}
