package store

import (
	"errors"
	"fmt"

	"github.com/chaind/chaind/events"
)

// Reasons that the store itself gives for epochs and lost ranges.
const (
	WhyFirstSeen  = "first_seen"
	WhyRecreated  = "recreated"
	WhyRolledBack = "rolled_back"
	WhyGap        = "gap"
)

var (
	errNoSequence   = errors.New("event without a stream sequence")
	errUnattributed = errors.New("event without a chain and without a fault")
)

// appendBatch applies a batch in stream order.
func (w *writer) appendBatch(b *events.Batch) ([]events.Effect, error) {
	if len(b.Events) == 0 {
		return nil, nil
	}
	ep, err := w.epoch(b.Stream)
	if err != nil {
		return nil, err
	}
	effects := make([]events.Effect, len(b.Events))
	for i, e := range b.Events {
		if ep, err = w.deliver(ep, e, &effects[i]); err != nil {
			return nil, fmt.Errorf("append stream sequence %d: %w", e.StreamSeq, err)
		}
	}
	return effects, nil
}

// deliver applies one event, whatever its sequence says:
//
//	next one         the normal case
//	further on       what lies between will not come any more, since a stream
//	                 is delivered in order: it is recorded as lost
//	applied before   a redelivery when the store knows these very bytes; then
//	                 nothing changes, not even a count. Otherwise the broker gave
//	                 the sequence to another message: a new epoch begins
func (w *writer) deliver(ep *Epoch, e *events.Event, effect *events.Effect) (*Epoch, error) {
	switch {
	case e.StreamSeq == 0:
		return nil, errNoSequence
	case e.StreamSeq <= ep.Applied:
		found, err := w.redelivered(ep, e, effect)
		if found || err != nil {
			return ep, err
		}
		lost, err := w.lostIn(ep.Number, e.StreamSeq, e.StreamSeq)
		if err != nil {
			return nil, err
		}
		first := false
		if len(lost) != 0 {
			if first, err = w.takeLate(ep, e); err != nil {
				return nil, err
			}
		}
		if first {
			break // given up too early: it is taken now, and the record of the loss stays
		}
		if ep, err = w.beginEpoch(ep.Stream, e.StreamSeq-1, WhyRolledBack); err != nil {
			return nil, err
		}
	case e.StreamSeq > ep.Applied+1:
		if err := w.recordLost(ep, ep.Applied+1, e.StreamSeq-1, WhyGap); err != nil {
			return nil, err
		}
	}
	if err := w.apply(ep, e, effect); err != nil {
		return nil, err
	}
	ep.Applied = max(ep.Applied, e.StreamSeq)
	return ep, nil
}

// apply lets an event have its effect.
func (w *writer) apply(ep *Epoch, e *events.Event, effect *events.Effect) error {
	if !e.Attributed {
		return w.rejectStray(ep, e, effect)
	}
	c, err := w.chain(e.Key)
	if err != nil {
		return w.quarantine(ep, e, c, effect, err)
	}
	known, err := w.lookup(c, e.ID)
	if err != nil {
		return w.quarantine(ep, e, c, effect, inChain(err, e.Key))
	}
	bound := c.state.Scope != nil
	*effect = c.state.Apply(e, known.known())
	if c.next.last.beyond(ep.Number, e.StreamSeq) && (effect.Verdict == events.Appended || effect.Verdict == events.Finished) {
		if err := w.miss(ep, e, missedOutOfOrder, w.n.arrivals+1, WhyOutOfOrder); err != nil {
			return err
		}
	}
	if step := w.s.plainStep(e, effect, &known, bound); step != nil {
		return w.recordStep(ep, c, e, effect.Segment, step)
	}
	return w.record(ep, c, e, effect, known, bound)
}

// record makes durable what the state machine said of an event. bound: the chain was
// bound to a scope before.
func (w *writer) record(ep *Epoch, c *chain, e *events.Event, effect *events.Effect, known holder, bound bool) error {
	w.n.arrivals++
	ent := &w.entry
	ent.take(e, effect, known, c.next.no, ep.Number)
	ent.Arrival = w.n.arrivals
	if bound {
		ent.scope = nil // equal to the one the chain is bound to, or it were rejected
	}
	if err := w.accompany(c, ep, e, ent, effect); err != nil {
		return inChain(err, e.Key)
	}
	if err := w.append(ent); err != nil {
		return err
	}
	lists := ent.lists()
	c.next.pending = append(c.next.pending, pend{ent.Arrival, lists})
	c.next.last.advance(ent, lists)
	if e.ID != "" && effect.Verdict != events.Duplicate {
		w.s.hold(c, c.state.LastEventID, ent.after()) // the state's copy: e.ID holds on to the whole payload
	}
	if effect.Verdict == events.Finished {
		return w.fix(c, ent)
	}
	return nil
}

// accompany writes what belongs to an entry and stands in other tables.
func (w *writer) accompany(c *chain, ep *Epoch, e *events.Event, ent *entry, effect *events.Effect) error {
	switch effect.Verdict {
	case events.Duplicate, events.Attempted:
		return nil
	case events.Rejected:
		ent.class = effect.Fault.Class
		id, err := w.reject(ep, e, effect)
		ent.rejection = id
		return err
	}
	if kept := w.s.kept(&e.Preimage); kept != nil {
		ent.preimages = true
		if err := w.write(tablePreimages, key64(ent.Arrival), kept); err != nil {
			return err
		}
	}
	if effect.Segment == nil {
		return nil
	}
	return w.indexRun(c, effect.Segment)
}

// redelivered recognises an event whose effect is durable already and says
// again what it was. Rejected events do not hold their id: they are known by
// their place in the stream.
func (w *writer) redelivered(ep *Epoch, e *events.Event, effect *events.Effect) (bool, error) {
	if found, err := w.rejectedBefore(ep, e, effect); found || err != nil {
		return found, err
	}
	if !e.Attributed || e.ID == "" {
		return false, nil
	}
	no, err := w.exists(e.Key)
	if err == nil && !no {
		return false, nil
	}
	var c *chain
	var known holder
	if err == nil {
		c, err = w.chain(e.Key)
	}
	if err == nil {
		known, err = w.lookup(c, e.ID)
	}
	if err != nil { // it cannot be told whether it had its effect: both are on record then
		return true, w.quarantine(ep, e, c, effect, inChain(err, e.Key))
	}
	if !known.held || known.sum != e.Sum {
		return false, nil
	}
	*effect = events.Effect{Verdict: events.Duplicate, Head: c.state.Head, AfterEnd: c.state.Outcome != events.Open}
	return true, nil
}

// exists tells whether there is such a chain, without making it.
func (w *writer) exists(key events.Key) (bool, error) {
	if w.s.chains[key] != nil || w.created[key] != nil {
		return true, nil
	}
	no, err := w.chainNumber(key)
	return no != 0, err
}
