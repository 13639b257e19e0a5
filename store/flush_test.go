package store

import (
	"fmt"
	"testing"

	"github.com/chaind/chaind/events"
)

// Chains that hold back the tail are flushed a few in each transaction, before the
// tail is at its limit; at the limit all are.
func TestTailIsCutInParts(t *testing.T) {
	t.Parallel()
	const chains, rounds = 400, 6
	for _, tc := range []struct {
		name    string
		limits  flushLimits
		batch   int
		longest uint64 // tail
		most    int    // chains in a transaction
	}{
		{"in parts", flushLimits{tail: 1000, slack: 300, pending: 1 << 10}, 1, 1000, 1 + 64 + 1},
		{"large batches", flushLimits{tail: 1000, slack: 300, pending: 1 << 10}, 100, 1000, 100 + 64 + 100},
		{"too late for parts", flushLimits{tail: 450, slack: 1, pending: 1 << 10}, 200, 650, chains},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t)
			s := openStore(t, cfg)
			s.flush = tc.limits
			most, longest, cut := 0, uint64(0), 0
			s.testingOnly.published = func(touched, _ int) {
				most, longest = max(most, touched), max(longest, s.n.arrivals+1-s.n.tail)
			}
			var batch []*events.Event
			for n := range chains * rounds {
				batch = append(batch, step(fmt.Sprint("c", n%chains), fmt.Sprint(n/chains), uint64(n)+1))
				if len(batch) == tc.batch {
					give(t, s, testStream, batch...)
					batch = batch[:0]
				}
			}
			for _, c := range s.chains {
				if c.view.stored.lastArrival != 0 {
					cut++
				}
				if c.touched || c.flushed {
					t.Error("a chain was left as in the middle of a transaction")
				}
			}
			if most > tc.most || longest > tc.longest || cut != chains {
				t.Errorf("%d chains in a transaction, want %d at most; a tail of %d entries, want %d at most; %d of %d chains flushed",
					most, tc.most, longest, tc.longest, cut, chains)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = openStore(t, cfg)
			for c := range chains {
				if st := state(t, s, fmt.Sprint("c", c)); st.Segments != rounds {
					t.Fatalf("chain %d has %d segments, want %d", c, st.Segments, rounds)
				}
			}
		})
	}
}
