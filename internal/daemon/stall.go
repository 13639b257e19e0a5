package daemon

import (
	"sync"
	"time"
)

// stall tells for how long something that is worked off in order has been
// waiting: from the look that first found it behind, until what was outstanding
// then is done. Steady work that keeps up never gets old.
type stall struct {
	mu     sync.Mutex
	since  time.Time
	target uint64
}

// age looks at the work: done of total. 0: nothing waits.
func (s *stall) age(done, total uint64, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if done >= total {
		s.since, s.target = time.Time{}, 0
		return 0
	}
	if s.since.IsZero() || done >= s.target {
		s.since, s.target = now, total
	}
	return max(0, now.Sub(s.since)) // a clock that went back makes nothing old
}
