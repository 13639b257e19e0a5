package store

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/chaind/chaind/events"
)

// TestReadersReplayOnlyWhatIsNew reads a growing chain again and again, through
// what was kept and anew, and wants the same both ways.
func TestReadersReplayOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	s, err := Open(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	key := events.Key{Tenant: "acme", PromptHash: fmt.Sprintf("%064x", 1), Session: fmt.Sprintf("%032x", 2), Chain: "grows"}
	kept := 0
	for seq := uint64(1); seq <= 200; seq++ {
		body := fmt.Sprintf(`{"v":1,"event_id":"e%d","kind":{"kind":"step_executed","step_id":"s%d","step_index":0,"request_fingerprints":[],"source_line":"x"},"preimage":{"parsed":{"n":%d}}}`, seq, seq%7, seq)
		batch := &events.Batch{Stream: events.Stream{Name: "EVIDENCE", CreatedNS: 1}, Events: []*events.Event{
			events.Decode(events.Message{Subject: key.Subject(events.VerbStep), Payload: []byte(body), StreamSeq: seq, BrokerMS: 1780000000000 + seq}, events.DefaultLimits)}}
		if _, err := s.Append(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		if seq%9 != 0 {
			continue
		}
		through, err := s.Chain(key)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.replays.kept) > 0 {
			kept++
		}
		s.replays.mu.Lock()
		mine := s.replays.kept
		s.replays.kept, s.replays.bytes = nil, 0
		s.replays.mu.Unlock()
		anew, err := s.Chain(key)
		if err != nil {
			t.Fatal(err)
		}
		s.replays.mu.Lock()
		s.replays.kept = mine
		s.replays.mu.Unlock()
		if diff := cmp.Diff(anew, through, cmpopts.IgnoreUnexported(events.State{})); diff != "" || through.State.Segments != seq {
			t.Fatalf("after %d events (-anew +through what was kept):\n%s", seq, diff)
		}
	}
	if kept < 5 {
		t.Errorf("something was kept on %d reads only", kept)
	}
}
