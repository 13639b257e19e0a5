package durable

import (
	"errors"
	"os"
	"sync"
)

// crowd is how many files must be under way for their writers to share one sync of the
// file system. Below it each syncs what it wrote: that costs nothing for what
// others have left dirty on the same file system.
const crowd = 8

// errOthers fails a write during which a shared sync failed.
var errOthers = errors.New("a sync that this write shared, or came too late for, failed")

// sharedSync makes the writes of many callers durable by one syncfs: whoever
// comes while one runs waits for the next. It is there only where a syncfs
// reports, to a handle that was open all the time, each write that was lost
// on that file system (Linux 5.8, and see syncsWhole).
//
// Such a report does not say whose write it was, and comes once. So every write
// that was under way when a report came fails, whether it waited for that sync
// or had not come so far yet: a count of reports is taken when a write begins,
// and must be the same when it ends. Being repeated, a write stages its bytes
// anew, as after a failed fsync of its own.
type sharedSync struct {
	whole *os.File // the root, open for the life of the Dir; nil: not possible here
	token chan struct{}
	sync  func(*os.File) error // syncFS, but for tests

	mu       sync.Mutex
	underWay int // files
	reports  uint64
	waiting  []chan error
}

func newSharedSync(root *os.Root) *sharedSync {
	s := &sharedSync{token: make(chan struct{}, 1), sync: syncFS}
	f, err := root.Open(".")
	if err != nil {
		return s
	}
	if !syncsWhole(f) {
		_ = f.Close() // read-only, nothing to lose
		return s
	}
	s.whole = f
	return s
}

func (s *sharedSync) close() error {
	if s.whole == nil {
		return nil
	}
	return s.whole.Close()
}

// begin counts a write of n files; the result is for end.
func (s *sharedSync) begin(n int) (reports uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underWay += n
	return s.reports
}

// end says whether the write of n files that began with reports may have lost
// something.
func (s *sharedSync) end(reports uint64, n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underWay -= n
	return s.compare(reports)
}

// check is what end says, before the end.
func (s *sharedSync) check(reports uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.compare(reports)
}

func (s *sharedSync) compare(reports uint64) error {
	if s.reports != reports {
		return errOthers
	}
	return nil
}

// crowded tells whether to wait for a shared sync.
func (s *sharedSync) crowded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.whole != nil && s.underWay > crowd
}

// wait returns after a sync that began after the call.
func (s *sharedSync) wait() error {
	done := make(chan error, 1)
	s.mu.Lock()
	s.waiting = append(s.waiting, done)
	s.mu.Unlock()
	select {
	case err := <-done:
		return err
	case s.token <- struct{}{}:
	}
	s.lead()
	<-s.token
	return <-done
}

// lead syncs for all who wait, under the token.
func (s *sharedSync) lead() {
	s.mu.Lock()
	group := s.waiting
	s.waiting = nil
	s.mu.Unlock()
	if len(group) == 0 {
		return
	}
	err := s.sync(s.whole)
	if err != nil {
		s.mu.Lock()
		s.reports++
		s.mu.Unlock()
	}
	for _, done := range group {
		done <- err
	}
}
