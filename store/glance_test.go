package store

import (
	"testing"

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
