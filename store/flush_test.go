package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chaind/chaind/events"
	"github.com/google/go-cmp/cmp"
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
		{"in parts", flushLimits{tail: 1000, slack: 300, pending: 1 << 10}, 1, 1000, 1 + cutAtLeast + 1},
		{"large batches", flushLimits{tail: 1000, slack: 300, pending: 1 << 10}, 100, 1000, 100 + cutAtLeast + 100},
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

// Chains that come in the order of their numbers and then the other way round, in batches
// larger than what is flushed beside: each cut is done by the time the tail is at its
// limit, although the oldest is the last of it, and no transaction has to do the rest.
func TestCutIsDoneInTime(t *testing.T) {
	t.Parallel()
	const chains, size = 5000, 250
	s := openStore(t, testConfig(t))
	s.flush = flushLimits{tail: 4 << 10, slack: 1 << 10, pending: 256}
	most := 0
	s.testingOnly.published = func(touched, _ int) { most = max(most, touched) }
	for n := 0; n < 4*chains; n += size {
		var batch []*events.Event
		for i := n; i < n+size; i++ {
			c := i % (2 * chains)
			batch = append(batch, step(fmt.Sprint("c", min(c, 2*chains-1-c)), fmt.Sprint(i), uint64(i)+1))
		}
		give(t, s, testStream, batch...)
	}
	if most > 2*size+cutAtLeast {
		t.Errorf("%d chains in a transaction of %d entries, want %d at most", most, size, 2*size+cutAtLeast)
	}
}

// A redelivery looks at a chain before the transaction's first new event does. The
// tail begins with the oldest pending entry all the same. Here, under the limits of
// the program, the 256th event of a chain flushes it, and the process ends before it
// acknowledges.
func TestTailBehindARedelivery(t *testing.T) {
	t.Parallel()
	for _, then := range []string{"the other is silent", "the other goes on", "a commit fails"} {
		t.Run(then, func(t *testing.T) {
			t.Parallel()
			s := openStore(t, testConfig(t))
			var first []*events.Event
			for seq := range uint64(s.flush.pending) {
				first = append(first, step("a", fmt.Sprint("a", seq), seq+1))
			}
			give(t, s, testStream, first...)
			s = reopen(t, s)
			seq := uint64(len(first))
			give(t, s, testStream, first[seq-1], step("b", "b1", seq+1), step("a", "last", seq+2))
			checkMemory(t, s)
			give(t, s, testStream, step("c", "c1", seq+3))
			want, b2 := uint64(2), &events.Batch{Stream: testStream, Events: []*events.Event{step("b", "b2", seq+4)}}
			switch then {
			case "the other is silent":
				want = 1
			case "the other goes on":
				mustAppend(t, s, b2)
			case "a commit fails":
				s.testingOnly.beforeCommit = func() error { return errInjected }
				if _, err := s.Append(t.Context(), b2); !errors.Is(err, errInjected) {
					t.Fatal(err)
				}
				s.testingOnly.beforeCommit = nil
				mustAppend(t, s, b2)
			}
			s = reopen(t, s)
			if c, err := s.Chain(testKey("b")); err != nil || c.State.Segments != want {
				t.Fatalf("%v, %+v, want %d segments", err, c, want)
			}
		})
	}
}

// checkMemory looks at what the writer keeps between transactions: what the tail and
// the cut are found by.
func checkMemory(t *testing.T, s *Store) {
	t.Helper()
	living, last := map[*chain]int{}, uint64(0)
	for _, m := range s.dirty {
		if m.first <= last {
			t.Fatalf("marks are out of order: %d behind %d", m.first, last)
		}
		if last = m.first; !m.stale() {
			living[m.c]++
		}
	}
	for i, m := range s.cut {
		if i > 0 && m.c.next.no <= s.cut[i-1].c.next.no {
			t.Fatal("the cut is out of order")
		}
		if !m.stale() && living[m.c] != 1 {
			t.Fatal("the cut has a mark that is not among the others")
		}
	}
	for key, c := range s.chains {
		first := c.firstPending()
		if want := min(first, 1); living[c] != int(want) || first != 0 && first < s.n.tail {
			t.Fatalf("chain %s, first pending entry %d: %d marks, and the tail is at %d", key.Chain, first, living[c], s.n.tail)
		}
		if c.touched || c.flushed || *c.view.key != key || c.view.last != c.next.last || c.view.stored != c.next.stored || !slices.Equal(c.view.pending, c.next.pending) {
			t.Fatalf("chain %s is not as it was published", key.Chain)
		}
		delete(living, c)
	}
	if len(living) != 0 {
		t.Fatalf("%d marks of chains that nobody knows", len(living))
	}
}

// Limits, batches, redeliveries, failed commits, evictions, compactions and new
// starts change nothing about what the store says.
func TestFlushesChangeNothing(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 51))
			all := mixed(r, 200+r.IntN(300), []int{3, 12, 60, 200}[seed%4])
			plain := openStore(t, testConfig(t))
			mustAppend(t, plain, &events.Batch{Stream: testStream, Events: all})
			want := everything(t, plain)
			cfg := testConfig(t)
			cfg.CachedChains = []int{1, 2, 7, 1000}[r.IntN(4)]
			s := openStore(t, cfg)
			s.flush = flushLimits{tail: uint64(1 + r.IntN(300)), slack: uint64(r.IntN(120)), pending: 2 + r.IntN(60)}
			s = troubled(t, r, s, all)
			if diff := cmp.Diff(want, everything(t, s), ignoreMemory); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(want, everything(t, reopen(t, s)), ignoreMemory); diff != "" {
				t.Errorf("after a new start: %s", diff)
			}
		})
	}
}

// mixed makes events of all sorts.
func mixed(r *rand.Rand, n, chains int) (all []*events.Event) {
	for i := range n {
		name, id, seq := fmt.Sprint("c", r.IntN(chains)), fmt.Sprint("e", i), uint64(i)+1
		switch r.IntN(20) {
		case 0:
			all = append(all, seal(name, id, seq))
		case 1:
			all = append(all, decoded(testKey(name).Subject(events.VerbStep), `{"v":1,`, seq))
		case 2:
			all = append(all, step(name, fmt.Sprint("e", r.IntN(i+1)), seq)) // now and then a repeat or a conflict
		case 3:
			all = append(all, attempt(name, id, "s", "begin", seq))
		default:
			all = append(all, step(name, id, seq))
		}
	}
	return all
}

// troubled gives the events, some of them more than once, to a store to which things happen.
func troubled(t *testing.T, r *rand.Rand, s *Store, all []*events.Event) *Store {
	t.Helper()
	most := []int{1, 3, 40, 200}[r.IntN(4)]
	for at := 0; at < len(all); {
		again, to := max(0, at-r.IntN(30)), min(len(all), at+1+r.IntN(most))
		b := &events.Batch{Stream: testStream, Events: all[at:to]}
		switch r.IntN(4) {
		case 0:
			b.Events = all[again:to]
		case 1:
			b.Events = append(slices.Clone(all[again:min(again+1, at)]), b.Events...)
		}
		switch r.IntN(12) {
		case 0:
			s.testingOnly.beforeCommit = func() error { return errInjected }
		case 1:
			s.testingOnly.afterCommit = func() error { return errInjected }
		}
		_, err := s.Append(t.Context(), b)
		s.testingOnly.beforeCommit, s.testingOnly.afterCommit = nil, nil
		if errors.Is(err, errInjected) {
			mustAppend(t, s, b)
		} else if err != nil {
			t.Fatal(err)
		}
		checkMemory(t, s)
		at = to
		switch r.IntN(40) {
		case 0:
			s = reopen(t, s)
			checkMemory(t, s)
		case 1:
			if _, err := s.Compact(context.Background(), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

// everything is what a store says of its chains.
func everything(t *testing.T, s *Store) (all struct {
	List     []ChainSummary
	Records  []*ChainRecord
	Segments [][]SegmentRecord
	Attempts [][]AttemptRecord
	Rejected []events.Rejection
	Jobs     []SealJob
}) {
	t.Helper()
	all.List = must2(s.Chains(ChainQuery{Limit: MaxPage}))
	for i := range all.List {
		key := all.List[i].Key
		all.Records = append(all.Records, must(s.Chain(key)))
		all.Segments = append(all.Segments, must(s.Segments(key, 0, MaxPage)))
		all.Attempts = append(all.Attempts, must(s.Attempts(key, 0, MaxPage)))
	}
	all.Rejected = must2(s.Rejected(RejectedQuery{Limit: MaxPage}))
	all.Jobs = must(s.SealJobs(0, MaxPage))
	return all
}
