package emitter

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/chaind/chaind/events"
)

// commit makes batches durable, one after the other, until the session is
// over. An Append that runs when ctx ends may still finish, within StopTimeout,
// and is then acknowledged; what has been gathered behind it stays
// unacknowledged in the stream, and comes again.
func (s *session) commit(ctx, live context.Context) {
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		sleep(working, s.in.cfg.StopTimeout)
		cancel()
	})()
	t := s.startTelling()
	defer t.stop()
	for {
		b := s.hand.take(<-t.spare)
		if b == nil || !s.store(live, working, b, t) {
			return
		}
	}
}

// telling tells the world about durable batches while the next one is with the
// Appender. It is safe since all that it says follows the commit, in stream
// order, and may be lost: an acknowledgement that comes late covers less, and
// a receipt is written from a batch that nobody uses until it is spare again.
type telling struct {
	durable chan told
	spare   chan *batch // not in use by anybody
	ended   sync.WaitGroup
}

// told is a durable batch and what became of its events.
type told struct {
	b       *batch
	given   *events.Batch
	effects []events.Effect
}

// startTelling begins with two spare batches: a third one is being gathered.
func (s *session) startTelling() *telling {
	t := &telling{durable: make(chan told), spare: make(chan *batch, 2)}
	t.spare <- &batch{}
	t.spare <- &batch{}
	t.ended.Go(func() {
		for d := range t.durable {
			s.tell(d)
			t.spare <- d.b
		}
	})
	return t
}

// stop waits until everything has been told.
func (t *telling) stop() {
	close(t.durable)
	t.ended.Wait()
}

// store makes one batch durable. Every step is repeated until it succeeds or
// the session is over, so nothing overtakes it.
func (s *session) store(live, working context.Context, b *batch, t *telling) bool {
	for _, l := range b.lost {
		if !s.persist(live, func() error { return s.recordLost(working, l) }) {
			return false
		}
	}
	if len(b.events) == 0 {
		t.spare <- b
		return true
	}
	given := &events.Batch{Stream: s.id, Events: b.events}
	var effects []events.Effect
	if !s.persist(live, func() (err error) {
		effects, err = s.in.cfg.Appender.Append(working, given)
		return err
	}) {
		return false
	}
	last := b.events[len(b.events)-1]
	s.in.last = mark{stream: s.id, seq: last.StreamSeq, Applied: Applied{Sum: last.Sum, BrokerMS: last.BrokerMS}}
	s.in.stats.applied.Store(last.StreamSeq)
	s.in.stats.count(b, effects)
	t.durable <- told{b, given, effects}
	return true
}

// tell acknowledges a durable batch and sends its receipts; either may be lost.
func (s *session) tell(d told) {
	if d.b.ack != nil {
		_ = ack(d.b.ack) // covers everything before it; the next one repairs a lost one
	}
	if !s.in.cfg.NoReceipts {
		s.receipts(d.given, d.effects)
	}
}

func (s *session) receipts(given *events.Batch, effects []events.Effect) {
	if err := s.in.receipts.write(given, effects, s.in.cfg.JS.Conn().Publish); err != nil {
		s.in.stats.failed(fmt.Errorf("publish receipt: %w", err))
	}
}

func (s *session) recordLost(ctx context.Context, l lostRange) error {
	if err := s.in.cfg.Ledger.RecordLost(ctx, s.id, l.from, l.to, l.why); err != nil {
		return fmt.Errorf("record lost messages: %w", err)
	}
	s.in.stats.lost.Add(l.to - l.from + 1)
	s.in.stats.applied.Store(l.to)
	s.in.cfg.Logger.Error("messages are lost", "stream", s.id.Name, "from", l.from, "to", l.to, "why", l.why)
	return nil
}

// persist repeats f until it succeeds; false: the session is over.
func (s *session) persist(live context.Context, f func() error) bool {
	for wait := time.Duration(0); sleep(live, wait); wait = nextBackoff(wait) {
		err := f()
		if err == nil {
			return true
		}
		s.in.stats.appendFailed(err)
		if fatal := s.in.cfg.Fatal; fatal != nil && fatal(err) {
			s.fail(&fatalError{fmt.Errorf("append batch: %w", err)})
			return false
		}
		s.in.cfg.Logger.Warn("batch is not durable yet", "err", err, "retry", nextBackoff(wait))
	}
	return false
}
