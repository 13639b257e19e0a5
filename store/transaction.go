package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/chaind/chaind/events"
	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
)

// request is a call that waits for its part in a transaction.
type request struct {
	op   func(*writer) error
	done chan error // room for one
}

// refusal is an error of an operation that has changed nothing: the others in
// its transaction go on.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// do runs op in a write transaction and returns after the commit. Calls that
// come while a transaction runs wait and then share the next one: the first to
// get the token leads, and the others find their work done.
func (s *Store) do(ctx context.Context, op func(*writer) error) error {
	if s.readOnly {
		return ErrReadOnly
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	r := &request{op: op, done: make(chan error, 1)}
	s.queueMu.Lock()
	if s.closing {
		s.queueMu.Unlock()
		return ErrClosed
	}
	s.queue = append(s.queue, r)
	s.queueMu.Unlock()
	for {
		select {
		case err := <-r.done:
			return err
		case s.token <- struct{}{}:
			s.lead()
			<-s.token
		case <-ctx.Done():
			if s.withdraw(r) {
				return ctx.Err()
			}
			return <-r.done // it runs already, so its outcome counts
		}
	}
}

func (s *Store) withdraw(r *request) bool {
	s.queueMu.Lock()
	defer s.queueMu.Unlock()
	i := slices.Index(s.queue, r)
	if i < 0 {
		return false
	}
	s.queue = slices.Delete(s.queue, i, i+1)
	return true
}

// lead runs what waits, under the token.
func (s *Store) lead() {
	s.queueMu.Lock()
	group := s.queue
	s.queue = nil
	if len(group) > maxGroup {
		s.queue = slices.Clone(group[maxGroup:])
		group = group[:maxGroup]
	}
	s.queueMu.Unlock()
	if len(group) == 0 {
		return
	}
	err := s.transact(group)
	var failed *opError
	if errors.As(err, &failed) && len(group) > 1 {
		// One of them cannot be done; nobody else shall suffer.
		for i := range group {
			answer(group[i:i+1], s.transact(group[i:i+1]))
		}
		return
	}
	answer(group, err)
}

// answer tells a group that its transaction failed; after one that went well
// transact has done so.
func answer(group []*request, err error) {
	if err == nil {
		return
	}
	for _, r := range group {
		r.done <- opCause(err)
	}
}

// opError is the error of one operation within a group.
type opError struct{ error }

func opCause(err error) error {
	if failed, ok := err.(*opError); ok {
		return failed.error
	}
	return err
}

// transact runs a group in one transaction. When it returns nil, every request
// has been answered; otherwise none has, and nothing that readers see has changed.
//
// What a crash leaves behind: before the meta page is written, the database as
// it was; after it, the whole transaction. In between bbolt has written pages
// that no meta page refers to, which the next transaction reuses. Memory is
// changed after the commit only (publish); an error anywhere makes memory be
// read anew from the database, as after a crash.
func (s *Store) transact(group []*request) (err error) {
	defer func() { s.noteWrite(err) }()
	if s.fatal != nil {
		return s.fatal
	}
	if s.stale {
		if err := s.recover(); err != nil {
			return err
		}
	}
	s.stale = true // until everything has gone well
	refused := make([]error, len(group))
	if err := s.run(group, refused); err != nil {
		return err
	}
	s.stale = false
	for i, r := range group {
		r.done <- refused[i]
	}
	return nil
}

func (s *Store) run(group []*request, refused []error) (err error) {
	defer s.guard(&err)()
	tx, err := s.db.Begin(true)
	if err != nil {
		return sealOff("begin transaction", err)
	}
	defer tx.Rollback() // after a commit this does nothing
	w := &s.w
	w.reset(s, tx)
	for i, r := range group {
		err := r.op(w)
		if refusal, ok := err.(refusal); ok {
			refused[i] = refusal.error
		} else if err != nil {
			return &opError{err}
		}
	}
	if err := w.finish(); err != nil {
		return err
	}
	growGently(s.db, tx)
	if err := s.commit(tx); err != nil {
		return err
	}
	s.publish(w)
	return nil
}

func (s *Store) commit(tx *bbolt.Tx) error {
	if hook := s.testingOnly.beforeCommit; hook != nil {
		if err := hook(); err != nil {
			return err
		}
	}
	commit := tx.Commit
	if hook := s.testingOnly.commit; hook != nil {
		commit = func() error { return hook(tx) }
	}
	tx64 := uint64(tx.ID())
	if err := s.durable.commit(tx64, commit); err != nil {
		return s.commitFailed(err)
	}
	if s.tx = tx64; s.w.life != nil {
		s.life, s.begun = *s.w.life, true
	}
	s.raiseMark()
	if hook := s.testingOnly.afterCommit; hook != nil {
		return hook()
	}
	return nil
}

// commitFailed tells a disk that is full or read-only, which was found while
// writing and leaves nothing behind, from everything else. After a failed fsync the kernel may
// have dropped the pages and say nothing the next time: what a later commit
// would build on is not known, so this process writes no more, and the next one
// writes everything anew (see leaveUnsynced).
func (s *Store) commitFailed(err error) error {
	if leavesNothing(err) {
		return sealOff("commit", err)
	}
	s.fatal = fmt.Errorf("commit: %w: %v", ErrBroken, err)
	s.leaveUnsynced(err)
	return s.fatal
}

// leavesNothing: the commit was refused while it was written, before anything refers to it.
func leavesNothing(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) && path.Op != "sync" && isRefused(path.Err)
}

// isRefused: nothing of the write was done, and it may be tried again.
func isRefused(err error) bool { return isDiskFull(err) || errors.Is(err, syscall.EROFS) }

func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// noteWrite keeps how the last write went. An operation that could not be done
// says nothing about the disk, and its caller has the error.
func (s *Store) noteWrite(err error) {
	var failed *opError
	if errors.As(err, &failed) {
		return
	}
	s.mu.Lock()
	s.writeErr = err
	s.mu.Unlock()
}

// reset prepares the writer for a transaction.
func (w *writer) reset(s *Store, tx *bbolt.Tx) {
	if w.arena == nil {
		w.arena = new(arena)
		w.view = newView(tx)
		w.buckets = make(map[*table]*bbolt.Bucket)
		w.created = make(map[events.Key]*chain)
		w.epochs = make(map[string]*Epoch)
	}
	w.s, w.tx, w.n = s, tx, s.n
	w.horizon, w.lastTable, w.lastBucket = math.MaxUint64, nil, nil
	w.arena.reset()
	w.gathered.reset()
	clear(w.buckets)
	clear(w.created)
	clear(w.epochs)
	clear(w.touched)
	w.touched = w.touched[:0]
	w.asides, w.takenUp = nil, nil
	w.life, w.ids, w.newJobs, w.newRejections = nil, nil, false, false
}

// publish lets readers see the committed transaction.
func (s *Store) publish(w *writer) {
	s.mu.Lock()
	for key, c := range w.created {
		s.chains[key] = c
	}
	known := len(s.dirty)
	for _, c := range w.touched {
		c.publish(s)
	}
	// A chain may have been looked at, for a redelivery, long before its first entry came.
	slices.SortFunc(s.dirty[known:], func(a, b dirtyMark) int { return cmp.Compare(a.first, b.first) })
	s.publishAsides(w)
	for name, ep := range w.epochs {
		s.epochs[name] = ep
	}
	w.epochs = make(map[string]*Epoch) // what was in it belongs to the readers now
	w.entry = entry{}                  // it holds on to its event
	s.n = w.n
	s.evict()
	s.mu.Unlock()
	s.trimDirty()
	if w.newJobs {
		signal(s.jobsAdded)
	}
	if w.newRejections {
		signal(s.rejectionsAdded)
	}
	if hook := s.testingOnly.published; hook != nil {
		hook(len(w.touched), s.recent.Len())
	}
}

func (c *chain) publish(s *Store) {
	wasDirty := len(c.view.pending) != 0 && !c.flushed
	c.view, c.glance = c.next, nil
	if c.watched.until.Load() > s.n.arrivals && c.state != nil {
		c.glance = look(c.view.key, c.state, &c.view.last)
	}
	if c.counted = c.state != nil; c.counted {
		c.attempts = c.state.UnderWay()
	}
	c.touched, c.flushed = false, false
	if first := c.firstPending(); first != 0 && !wasDirty {
		s.dirty = append(s.dirty, dirtyMark{c, first})
	}
	if first := c.firstPending(); first == 0 && c.next.last.fixedArrival != 0 {
		s.forget(c)
	}
}

// forget drops a chain that the database knows all about.
func (s *Store) forget(c *chain) {
	if c.recent != nil {
		s.recent.Remove(c.recent)
		c.recent = nil
	}
	c.state, c.counted = nil, false
	s.forgetIDs(c)
	if c.firstPending() == 0 {
		delete(s.chains, *c.next.key)
	}
}

// evict keeps the number of states in memory within bounds. A chain with
// pending entries stays known, and its state comes back by replay.
func (s *Store) evict() {
	for s.recent.Len() > s.cfg.CachedChains {
		s.forget(s.recent.Back().Value.(*chain))
	}
}

// trimDirty drops stale marks from the front.
func (s *Store) trimDirty() {
	i := 0
	for i < len(s.dirty) && s.dirty[i].stale() {
		i++
	}
	s.dirty = s.dirty[i:]
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// view runs fn in a read transaction. fn must copy what it keeps, and must not
// wait for anybody: pages freed meanwhile cannot be used again.
func (s *Store) view(fn func(*view) error) (err error) {
	s.open.RLock()
	defer s.open.RUnlock()
	if s.closed {
		return ErrClosed
	}
	defer s.guard(&err)()
	tx, err := s.begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	v := newView(tx)
	var n counters
	found, err := v.read(tableMeta, metaCounters, &n)
	if err != nil || !found {
		return errors.Join(err, missingCounters(found))
	}
	v.horizon, v.replays = n.arrivals, &s.replays
	if s.viewing != nil {
		s.viewing()
	}
	return fn(v)
}

// guard turns a fault while reading the mapped file, or bbolt's panic over a
// page that cannot be, into an error: one bad page must not end the process.
// Use: defer s.guard(&err)().
func (s *Store) guard(err *error) func() {
	old := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(old)
		if r := recover(); r != nil {
			*err = &CorruptError{Bucket: "page", Detail: fmt.Sprintf("reading the file failed: %v", r)}
			s.cfg.Logger.Error("database page unreadable", "err", fmt.Sprint(r), "stack", string(debug.Stack()))
		}
	}
}

// sealOff keeps bbolt's errors behind ours; those of the system stay visible.
func sealOff(doing string, err error) error {
	var path *fs.PathError
	var errno syscall.Errno
	if errors.As(err, &path) || errors.As(err, &errno) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if errors.Is(err, bbolterrors.ErrInvalidMapping) { // it was to grow, and could not be mapped again
		return fmt.Errorf("%s: %w: %v", doing, ErrBroken, err)
	}
	return fmt.Errorf("%s: %v", doing, err)
}
