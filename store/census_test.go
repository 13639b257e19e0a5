package store

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/chaind/chaind/events"
	"pgregory.net/rapid"
)

func attempt(chain, id, stepID, phase string, seq uint64) *events.Event {
	return decoded(testKey(chain).Subject(events.VerbStep),
		fmt.Sprintf(`{"v":1,"event_id":%q,"phase":%q,"kind":{"kind":"step_executed","step_id":%q,"step_index":0}}`, id, phase, stepID), seq)
}

// The census is what the chains' own records add up to, whatever of them is in memory.
func TestCensus(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		cfg := Config{Dir: t.TempDir(), Now: testConfig(t).Now, CachedChains: rapid.IntRange(1, 8).Draw(r, "cached")}
		s, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { s.Close() }()
		s.flush = flushLimits{tail: rapid.Uint64Range(3, 30).Draw(r, "tail"), slack: 2, pending: rapid.IntRange(1, 6).Draw(r, "pending")}
		for seq := uint64(1); seq <= 40; seq++ {
			chain, id := fmt.Sprint("c", rapid.IntRange(0, 11).Draw(r, "chain")), fmt.Sprint("e", seq)
			stepID := rapid.SampledFrom([]string{"s-a", "s-b", "s-c"}).Draw(r, "step")
			var e *events.Event
			switch rapid.IntRange(0, 9).Draw(r, "what") {
			case 0:
				e = seal(chain, id, seq)
			case 1, 2:
				e = step(chain, stepID[2:], seq) // ends an attempt of s-a, s-b or s-c
			case 3:
				e = attempt(chain, id, stepID, "failed", seq)
			default:
				e = attempt(chain, id, stepID, "begin", seq)
			}
			give(t, s, testStream, e)
			if seq%20 == 0 {
				sameCensus(t, s)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				if s, err = Open(cfg); err != nil {
					t.Fatal(err)
				}
				sameCensus(t, s)
			}
		}
	})
}

// sameCensus compares the census with the record of each chain.
func sameCensus(t *testing.T, s *Store) {
	t.Helper()
	var want Census
	for n := range 12 {
		rec, err := s.Chain(testKey(fmt.Sprint("c", n)))
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if rec.State.Outcome != events.Open {
			continue
		}
		want.Chains++
		for _, tally := range rec.State.Steps {
			if over := tally.Ended + tally.Failed; tally.Begun > over {
				want.Attempts += tally.Begun - over
			}
		}
	}
	got, err := s.Census(context.Background())
	if err != nil || got != want {
		t.Fatalf("census %+v, %v, want %+v", got, err, want)
	}
}

// More chains than one transaction looks at are counted, those that begin meanwhile
// or not; and the count ends with its context.
func TestCensusOfManyChains(t *testing.T) {
	t.Parallel()
	s := openStore(t, testConfig(t))
	const chains = 2*scanPerTx + 3
	for from := 0; from < chains; from += 1000 {
		var batch []*events.Event
		for n := from; n < min(from+1000, chains); n++ {
			batch = append(batch, attempt(fmt.Sprint("c", n), "e", "s", "begin", uint64(n)+1))
		}
		give(t, s, testStream, batch...)
	}
	if got, err := s.Census(context.Background()); err != nil || got != (Census{chains, chains}) {
		t.Errorf("census %+v, %v, want %d chains with an attempt each", got, err, chains)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Census(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after the context: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Census(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// A damaged chain is not counted, and the others are.
func TestCensusBesideDamage(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	s := openStore(t, cfg)
	s.flush = flushLimits{tail: 4, slack: 1, pending: 1}
	for n := range 3 {
		give(t, s, testStream, attempt(fmt.Sprint("c", n), "e", "s", "begin", uint64(n)+1))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, cfg)
	flipIn(t, s, tableChains, key64(2))
	if got, err := s.Census(context.Background()); err != nil || got != (Census{2, 2}) {
		t.Errorf("census %+v, %v, want the two whole chains", got, err)
	}
	flipIn(t, s, tableChains, key64(2)) // whole again, for the check at the end
}
