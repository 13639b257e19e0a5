package emitter

import (
	"context"
	"fmt"
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
	spare := &batch{}
	for {
		b := s.hand.take(spare)
		if b == nil || !s.store(live, working, b) {
			return
		}
		spare = b
	}
}

// store makes one batch durable. Every step is repeated until it succeeds or
// the session is over, so nothing overtakes it.
func (s *session) store(live, working context.Context, b *batch) bool {
	for _, l := range b.lost {
		if !s.persist(live, func() error { return s.recordLost(working, l) }) {
			return false
		}
	}
	if len(b.events) == 0 {
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
	s.durable(b, given, effects)
	return true
}

// durable tells the world, in this order: a receipt and an acknowledgement
// both follow the commit, and either may be lost.
func (s *session) durable(b *batch, given *events.Batch, effects []events.Effect) {
	last := b.events[len(b.events)-1]
	s.in.last = mark{stream: s.id, seq: last.StreamSeq, Applied: Applied{Sum: last.Sum, BrokerMS: last.BrokerMS}}
	s.in.stats.applied.Store(last.StreamSeq)
	s.in.stats.count(b, effects)
	if b.ack != nil {
		_ = ack(b.ack) // covers everything before it; the next one repairs a lost one
	}
	if !s.in.cfg.NoReceipts {
		s.receipts(given, effects)
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
