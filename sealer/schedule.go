package sealer

import (
	"context"
	"fmt"
	"time"

	"github.com/chaind/chaind/store"
)

// schedule decides which job runs next. All its fields belong to the goroutine
// of run; workers only send to done.
type schedule struct {
	s       *Sealer
	cursor  uint64 // jobs up to this ID have been begun at least once
	more    bool   // there may be jobs beyond the cursor
	fetched []store.SealJob
	busy    map[uint64]struct{} // IDs of running jobs
	done    chan uint64         // IDs of jobs that ended, one way or the other
}

func newSchedule(s *Sealer) *schedule {
	return &schedule{s: s, more: true, busy: make(map[uint64]struct{}), done: make(chan uint64, s.cfg.Workers)}
}

func (c *schedule) run(ctx context.Context) {
	for ctx.Err() == nil {
		pause := c.start(ctx)
		var timer <-chan time.Time
		if pause > 0 {
			timer = c.s.cfg.After(pause)
		}
		select {
		case <-ctx.Done():
		case <-timer:
		case <-c.s.cfg.Store.SealJobsAdded():
			c.more = true
		case id := <-c.done:
			delete(c.busy, id)
		}
	}
	for len(c.busy) > 0 {
		delete(c.busy, <-c.done)
	}
}

// start begins as many jobs as there are free workers and returns how long to
// wait for a failed one to come due; 0: until something else happens.
func (c *schedule) start(ctx context.Context) (pause time.Duration) {
	for len(c.busy) < c.s.cfg.Workers {
		job, wait, err := c.next()
		if c.s.noteList(err) != nil {
			return FirstPause
		}
		if job == nil {
			return wait
		}
		c.busy[job.ID] = struct{}{}
		go func() {
			c.s.work(ctx, job)
			c.done <- job.ID
		}()
	}
	return 0
}

// next picks a failed job that is due, or else a new one. Without either it
// tells how long until the next failed one comes due (0: there is none).
func (c *schedule) next() (job *store.SealJob, wait time.Duration, err error) {
	id, wait, failing := c.s.due(c.busy)
	if id != 0 {
		job, err := c.refetch(id)
		if job != nil || err != nil {
			return job, 0, err
		}
	}
	if failing >= maxFailing {
		return nil, wait, nil
	}
	if len(c.fetched) == 0 && c.more {
		if c.fetched, err = c.s.cfg.Store.SealJobs(c.cursor, pageJobs); err != nil {
			return nil, 0, err
		}
		c.more = len(c.fetched) > 0
	}
	if len(c.fetched) == 0 {
		return nil, wait, nil
	}
	job, c.fetched = &c.fetched[0], c.fetched[1:]
	c.cursor = job.ID
	return job, 0, nil
}

// refetch gets a failed job again; nil when it is gone.
func (c *schedule) refetch(id uint64) (*store.SealJob, error) {
	list, err := c.s.cfg.Store.SealJobs(id-1, 1)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 || list[0].ID != id {
		c.s.forget(id)
		return nil, nil
	}
	return &list[0], nil
}

// due returns the failed job that came due first and is not running, or how
// long it is until one comes due.
func (s *Sealer) due(busy map[uint64]struct{}) (id uint64, wait time.Duration, failing int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var first *failure
	for at, f := range s.failing {
		if _, running := busy[at]; !running && (first == nil || f.due.Before(first.due)) {
			first, id = f, at
		}
	}
	if first == nil {
		return 0, 0, len(s.failing)
	}
	if wait = first.due.Sub(s.cfg.Now()); wait > 0 {
		return 0, wait, len(s.failing)
	}
	return id, 0, len(s.failing)
}

// work runs one job and records how it went.
func (s *Sealer) work(ctx context.Context, job *store.SealJob) {
	sealed, err := s.seal(ctx, job)
	if err == nil {
		err = s.finish(ctx, job, sealed)
	}
	switch {
	case err == nil:
		s.forget(job.ID)
	case ctx.Err() != nil:
		// Stopped, not failed: the job is still in the store.
	default:
		s.fail(ctx, job, err)
	}
}

func (s *Sealer) finish(ctx context.Context, job *store.SealJob, sealed Sealed) error {
	if err := s.cfg.Store.FinishSeal(ctx, job, sealed.Result); err != nil {
		return fmt.Errorf("finish seal: %w", err)
	}
	s.log.Debug("sealed", "tenant", job.Key.Tenant, "chain", job.Key.Chain, "outcome", string(sealed.Outcome),
		"class", sealed.Result.Class, "path", sealed.Result.Path, "bytes", sealed.Result.Bytes, "standing", string(sealed.Standing))
	if s.cfg.OnSealed != nil {
		s.cfg.OnSealed(sealed)
	}
	return nil
}

// fail counts a failure here, for the pause, and in the store, for whoever
// looks after a restart.
func (s *Sealer) fail(ctx context.Context, job *store.SealJob, err error) {
	s.mu.Lock()
	f := s.failing[job.ID]
	now := s.cfg.Now()
	if f == nil {
		f = &failure{since: now}
		s.failing[job.ID] = f
	}
	pause := min(FirstPause<<min(f.count, 16), LongestPause)
	f.count++
	f.err, f.due = err, now.Add(pause)
	count := f.count
	s.mu.Unlock()

	attrs := []any{"tenant", job.Key.Tenant, "chain", job.Key.Chain, "attempt", count, "pause", pause, "err", err}
	if err := s.cfg.Store.FailSeal(ctx, job, err.Error()); err != nil {
		attrs = append(attrs, "record_err", err)
	}
	s.log.Warn("seal failed, will try again", attrs...)
}

func (s *Sealer) forget(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.failing, id)
}

// noteList remembers whether the list of jobs could be read.
func (s *Sealer) noteList(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && s.broken == nil {
		s.brokenAt = s.cfg.Now()
		s.log.Warn("list of seal jobs cannot be read, will try again", "err", err)
	}
	s.broken = err
	return err
}
