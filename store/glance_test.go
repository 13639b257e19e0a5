package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chaind/chaind/events"
	"github.com/google/go-cmp/cmp"
)

// dropGlances makes readers look at the database, and tells how many there were.
func dropGlances(s *Store) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.chains {
		if c.glance != nil {
			n++
		}
		c.glance = nil
	}
	return n
}

// What the writer keeps for lists is what a reader makes of the database, after
// every commit, whether the chain went on, ended, was flushed, evicted or idle.
func TestGlancesAreWhatIsStored(t *testing.T) {
	t.Parallel()
	for _, cached := range []int{2, DefaultCachedChains} {
		cfg := testConfig(t)
		cfg.CachedChains = cached
		s := openStore(t, cfg)
		tight(s)
		v := loadVector(t, "small")
		used := 0
		for i := 0; i < len(v.Messages); i += 7 {
			mustAppend(t, s, v.batch(i, i+7))
			kept := mustList(t, s)
			used += dropGlances(s)
			if diff := cmp.Diff(mustList(t, s), kept); diff != "" {
				t.Fatalf("after %d messages (-stored +kept):\n%s", i+7, diff)
			}
		}
		if used == 0 {
			t.Error("nothing was kept")
		}
		s.mu.Lock()
		s.n.arrivals += watchedFor
		for _, c := range s.chains {
			if c.publish(s); c.glance != nil {
				t.Error("a chain that nobody lists is kept")
			}
		}
		s.n.arrivals -= watchedFor
		s.mu.Unlock()
	}
}

func mustList(t *testing.T, s *Store) []ChainSummary {
	t.Helper()
	page, next, err := s.Chains(ChainQuery{Limit: MaxPage})
	if err != nil || next != "" {
		t.Fatal(next, err)
	}
	return page
}

// A chain that ends, or is flushed, while a list is read is in the list, and no
// younger than it was when the list was asked for: in whichever transaction of the
// list that happens.
func TestListWhileAChainIsFlushed(t *testing.T) {
	t.Parallel()
	lists := map[string]func(*Store) uint64{
		"chains": func(s *Store) (n uint64) {
			for _, sum := range must2(s.Chains(ChainQuery{Chain: "c"})) {
				n += sum.Segments
			}
			return n
		},
		"runs": func(s *Store) uint64 { return 3 * uint64(len(must2(s.Runs(RunQuery{SinceMS: 1})))) },
	}
	for what, list := range lists {
		for name, last := range map[string]*events.Event{"ends": seal("c", "z", 2004), "flushed": step("c", "z", 2004)} {
			for transaction := 1; transaction <= 3; transaction++ {
				t.Run(fmt.Sprint(what, " ", name, " in transaction ", transaction), func(t *testing.T) {
					t.Parallel()
					s := openStore(t, testConfig(t))
					for i := range uint64(5) { // so that the file need not grow below the reader
						mustAppend(t, s, batchOf("other", i*100+1, 100))
					}
					s.flush.pending = 4
					give(t, s, testStream, step("c", "a", 2001), step("c", "b", 2002), runSealed("c", "d", 2003))
					dropGlances(s)
					begun := 0
					s.viewing = func() {
						if begun++; begun == transaction {
							give(t, s, testStream, last)
						}
					}
					if n := list(s); n < 3 {
						t.Errorf("a chain of 3 segments is listed with %d", n)
					}
					s.viewing = nil
				})
			}
		}
	}
}

// runSealed is a run seal, after which the chain goes on.
func runSealed(chain, id string, seq uint64) *events.Event {
	zero := strings.Repeat("0", 64)
	return decoded(testKey(chain).Subject(events.VerbSeal),
		fmt.Sprintf(`{"v":1,"event_id":%q,"more":true,"kind":{"kind":"run_sealed","run_id":"pr%s","run_bundle_digest":"%s"}}`, id, zero, zero), seq)
}
