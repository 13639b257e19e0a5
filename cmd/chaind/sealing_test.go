package main

import (
	"testing"
	"time"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/events"
)

// TestPublishWaitsForSeals: with --sealed the answer is complete when every chain
// that the published events ended is sealed, in whatever order receipts come.
func TestPublishWaitsForSeals(t *testing.T) {
	t.Parallel()
	applied := func(chain string, seq uint64, outcome events.Outcome) *emitter.Receipt {
		return &emitter.Receipt{Type: emitter.ReceiptApplied, Chain: chain, Outcome: outcome, Events: []emitter.EventReceipt{{StreamSeq: seq, Verdict: events.Appended}}}
	}
	seal := func(chain string) *emitter.Receipt {
		return &emitter.Receipt{Type: emitter.ReceiptSealed, Chain: chain, Outcome: events.Succeeded, Sealed: &emitter.SealedReceipt{}}
	}
	for name, c := range map[string]struct {
		receipts []*emitter.Receipt
		sealed   bool
		missing  int
	}{
		"both sealed":       {[]*emitter.Receipt{applied("a", 1, events.Succeeded), applied("b", 2, events.Failed), seal("a"), seal("b")}, true, 0},
		"seal comes first":  {[]*emitter.Receipt{seal("a"), applied("a", 1, events.Succeeded), seal("b"), applied("b", 2, events.Failed)}, true, 0},
		"one is not sealed": {[]*emitter.Receipt{applied("a", 1, events.Succeeded), applied("b", 2, events.Failed), seal("b")}, true, 1},
		"one stays open":    {[]*emitter.Receipt{applied("a", 1, events.Succeeded), applied("b", 2, ""), seal("a")}, true, 0},
		"somebody else's":   {[]*emitter.Receipt{applied("z", 9, events.Succeeded), applied("a", 1, ""), applied("b", 2, "")}, true, 0},
		"not asked for":     {[]*emitter.Receipt{applied("a", 1, events.Succeeded), applied("b", 2, events.Failed)}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newAnswers()
			for _, r := range c.receipts {
				w.take(r)
			}
			patience := 30 * time.Second // which only a failing test waits for
			if c.missing > 0 {
				patience = 50 * time.Millisecond
			}
			result := published{Verdicts: map[string]int{}}
			w.await(t.Context(), patience, map[uint64]int{1: 1, 2: 2}, c.sealed, &result)
			if result.Waiting != 0 || result.Unsealed != c.missing {
				t.Errorf("%d without receipt, %d without seal, want %d", result.Waiting, result.Unsealed, c.missing)
			}
		})
	}
}
