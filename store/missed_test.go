package store

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chaind/chaind/events"
)

// wantMissed holds what the record, the list and the rejections of chain c say of what
// it misses of its own. rejected are the stream sequences of its rejections.
func wantMissed(t *testing.T, s *Store, lost []string, rejected ...uint64) {
	t.Helper()
	record := must(s.Chain(testKey("c")))
	var got []string
	for _, l := range record.Lost {
		got = append(got, fmt.Sprintf("%d.%d %s", l.Epoch, l.From, l.Why))
	}
	if !slices.Equal(got, lost) {
		t.Errorf("the chain misses %q, want %q", got, lost)
	}
	var seqs []uint64
	for after, more := uint64(0), true; more; more = after != 0 {
		page, next, err := s.Rejected(RejectedQuery{Key: &record.Key, After: after, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		for i := range page {
			seqs = append(seqs, page[i].StreamSeq)
		}
		after = next
	}
	if !slices.Equal(seqs, rejected) || record.State.Rejected != uint64(len(rejected)) {
		t.Errorf("%d were rejected, at %d, want %d", record.State.Rejected, seqs, rejected)
	}
	for _, sum := range must2(s.Chains(ChainQuery{Chain: "c"})) {
		coverage, _ := record.Coverage()
		if sum.Rejected != record.State.Rejected || sum.Coverage != coverage {
			t.Errorf("the list says %d rejected, %s, the record %d, %s", sum.Rejected, sum.Coverage, record.State.Rejected, coverage)
		}
	}
}

// TestDamagedChainMissesItsEvents: what was rejected while a chain was damaged is among
// its rejections after the repair, and is lost to it until it is published again. One
// that had been applied before, and was delivered again, is neither.
func TestDamagedChainMissesItsEvents(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	s := openStore(t, cfg)
	bad := step("c", "r", 2)
	bad.Fault = &events.Fault{Class: events.Malformed}
	mustAppend(t, s, &events.Batch{Stream: testStream, Events: []*events.Event{step("c", "a", 1), bad}})
	reopen := func(damage bool) {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		edit(t, cfg, tableChains, key64(1), flip)
		var err error
		if s, err = Open(cfg); err != nil {
			t.Fatal(err)
		}
		if !damage {
			t.Cleanup(func() { s.Close() })
		}
	}
	reopen(true)
	want := "[rejected chain_damaged rejected chain_damaged rejected chain_damaged]"
	if got := offer(t, s, step("c", "a", 1), step("c", "b", 3), step("c", "n", 4)); fmt.Sprint(got) != want {
		t.Fatalf("%q", got)
	}
	if got := offer(t, s, bad); fmt.Sprint(got) != "[rejected malformed]" {
		t.Errorf("a rejected one delivered again while the chain is damaged: %q", got)
	}
	reopen(false)
	wantMissed(t, s, []string{"1.3 chain_damaged", "1.4 chain_damaged"}, 2, 3, 4)
	if got := offer(t, s, step("c", "b", 5)); fmt.Sprint(got) != "[appended]" {
		t.Errorf("published again: %q", got)
	}
	wantMissed(t, s, []string{"1.4 chain_damaged"}, 2, 3, 4)
	give(t, s, testStream, seal("c", "z", 6), step("c", "n", 7))
	wantMissed(t, s, []string{"1.4 chain_damaged"}, 2, 3, 4) // published again too late
	if f := must(s.Chain(testKey("c"))).Fixed; f.State.Rejected != 3 {
		t.Errorf("%d rejected at the end", f.State.Rejected)
	}
}

// TestOutOfStreamOrder: a segment that comes at a sequence which had been given up is
// taken once. The chain is not complete: its order is not that of the stream. Another
// payload at the same sequence is from another history of the stream.
func TestOutOfStreamOrder(t *testing.T) {
	t.Parallel()
	s := openStore(t, testConfig(t))
	if got := offer(t, s, step("c", "a", 6), step("c", "b", 5), step("c", "b", 5)); fmt.Sprint(got) != "[appended appended duplicate]" {
		t.Fatalf("%q", got)
	}
	own := "1.5 out_of_order"
	if lost := must(s.Chain(testKey("c"))).Lost; len(lost) == 0 || fmt.Sprintf("%d.%d %s", lost[len(lost)-1].Epoch, lost[len(lost)-1].From, lost[len(lost)-1].Why) != own {
		t.Errorf("%+v", lost)
	}
	if got := offer(t, s, step("c", "other", 5)); fmt.Sprint(got) != "[appended]" || len(must(s.Epochs())) != 2 {
		t.Errorf("%q, %d epochs", got, len(must(s.Epochs())))
	}
	mustCheck(t, s)
}
