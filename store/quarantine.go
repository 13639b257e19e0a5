package store

import (
	"errors"

	"github.com/chaind/chaind/events"
)

// quarantined is the sentence with which events of a damaged chain are rejected.
const quarantined = "what the database holds of this chain is damaged; repair the database and publish the event again"

// quarantine gives an event whose chain cannot be read an effect all the same, so
// that one damaged chain does not stop the stream for all: it is rejected as
// chain_damaged, with its bytes, durable like any rejection, and known again when
// it is redelivered. Its id stays free: once the database has been repaired or
// rebuilt, the same event is taken; until then the chain misses it. c is the chain as far as it was found. An
// error that is not about values of one chain is returned as it is.
func (w *writer) quarantine(ep *Epoch, e *events.Event, c *chain, effect *events.Effect, err error) error {
	if err := w.keepOut(e, c, err); err != nil {
		return err
	}
	*effect = events.Effect{Verdict: events.Rejected, Fault: &events.Fault{Class: events.ChainDamaged, Detail: quarantined}}
	id, err := w.reject(ep, e, effect)
	if err != nil {
		return err
	}
	return w.miss(ep, e, missedDamaged, id, WhyDamaged)
}

// keepOut leaves an event out of a chain that cannot be read, as far as the chain was
// found, for the reason given; an error that is not about values of one chain is
// returned as it is.
func (w *writer) keepOut(e *events.Event, c *chain, err error) error {
	if !ofOneChain(err) {
		return err
	}
	if c != nil && c.state == nil && len(c.next.pending) > 0 { // its state cannot be had any more
		if err := w.setAside(c, err); err != nil {
			return err
		}
	} else if c != nil && c.state == nil && c.touched { // by the attempt just now, so it is the last
		c.touched = false
		w.touched = w.touched[:len(w.touched)-1]
		delete(w.created, e.Key)
	}
	w.s.noteDamage(e.Key, err)
	return nil
}

// ofOneChain: the error is about a value, and not about a whole table or the
// file.
func ofOneChain(err error) bool {
	bad, ok := errors.AsType[*CorruptError](err)
	return ok && len(bad.Key) != 0
}

// noteDamage remembers which chains are damaged, for Stats; until the store is
// opened again, and maxDamaged of them.
func (s *Store) noteDamage(key events.Key, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.damaged[key] || len(s.damaged) >= maxDamaged {
		return
	}
	if s.damaged == nil {
		s.damaged = make(map[events.Key]bool)
	}
	s.damaged[key], s.damage = true, err.Error()
	s.cfg.Logger.Error("chain is damaged: its events are rejected", "chain", key.Chain, "err", err)
}
