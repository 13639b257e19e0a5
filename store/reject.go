package store

import (
	"encoding/binary"

	"github.com/chaind/chaind/events"
)

// rejection is a value of the rejection table.
type rejection struct {
	events.Rejection
	arrival uint64 // of the journal entry; 0: the chain is not known, or damaged
}

func (r *rejection) fields(c *codec) {
	text(c, &r.Subject)
	c.optBytes(&r.Payload)
	c.uint(&r.StreamSeq)
	c.uint(&r.BrokerMS)
	c.bool(&r.Attributed)
	c.key(&r.Key)
	text(c, &r.EventID)
	text(c, &r.Class)
	text(c, &r.Detail)
	c.digest(&r.Sum)
	c.optDigest(&r.Existing)
	c.bool(&r.AfterEnd)
	c.uint32(&r.Epoch)
	c.uint(&r.arrival)
}

// effect is what the rejection was answered with.
func (r *rejection) effect() events.Effect {
	return events.Effect{Verdict: events.Rejected, Fault: &events.Fault{Class: r.Class, Detail: r.Detail},
		Existing: r.Existing, AfterEnd: r.AfterEnd}
}

// rejectStray rejects an event whose chain is not known.
func (w *writer) rejectStray(ep *Epoch, e *events.Event, effect *events.Effect) error {
	if e.Fault == nil {
		return errUnattributed
	}
	*effect = events.Effect{Verdict: events.Rejected, Fault: e.Fault}
	_, err := w.reject(ep, e, effect)
	return err
}

// reject stores the record of a rejected event and returns its ID.
func (w *writer) reject(ep *Epoch, e *events.Event, effect *events.Effect) (uint64, error) {
	w.n.rejections++
	w.newRejections = true
	r := rejection{Rejection: events.Rejection{
		Message: e.Message, Key: e.Key, Attributed: e.Attributed, EventID: e.ID,
		Class: effect.Fault.Class, Detail: effect.Fault.Detail, Sum: e.Sum,
		Existing: effect.Existing, AfterEnd: effect.AfterEnd, Epoch: ep.Number,
	}}
	r.Payload = r.Payload[:min(len(r.Payload), maxRejectedPayload)]
	if e.Attributed && r.Class != events.ChainDamaged {
		r.arrival = w.n.arrivals
	}
	id := key64(w.n.rejections)
	if err := w.write(tableRejections, id, &r); err != nil {
		return 0, err
	}
	return w.n.rejections, w.put(tableSeen, seenKey(ep.Number, e.StreamSeq), id)
}

// rejectedBefore finds the rejection of this very delivery. A sequence at or
// below the base of the current epoch had its effect in an earlier one.
func (w *writer) rejectedBefore(ep *Epoch, e *events.Event, effect *events.Effect) (bool, error) {
	var r *rejection
	for at := ep; at != nil && r == nil; {
		id, err := w.get(tableSeen, seenKey(at.Number, e.StreamSeq))
		if err == nil && id != nil {
			r, err = w.rejection(binary.BigEndian.Uint64(id))
		}
		if err == nil && e.StreamSeq <= at.Base {
			at, err = w.epochBefore(at)
		} else {
			at = nil
		}
		if err != nil {
			return false, err
		}
	}
	if r == nil || r.Sum != e.Sum || r.Subject != e.Subject {
		return false, nil
	}
	*effect = r.effect()
	if !e.Attributed || r.Class == events.ChainDamaged {
		return true, nil
	}
	c, err := w.chain(e.Key)
	if err != nil {
		return true, w.keepOut(e, c, err) // it is on record already
	}
	effect.Head = c.state.Head
	return true, nil
}

// epochBefore is the epoch that one of the same stream replaced; nil: none.
func (v *view) epochBefore(ep *Epoch) (*Epoch, error) {
	for n := ep.Number - 1; n > 0; n-- {
		before := new(Epoch)
		found, err := v.read(tableEpochs, key64(uint64(n)), before)
		if err == nil && !found {
			err = missing(tableEpochs, key64(uint64(n)), "the epoch")
		}
		if err != nil {
			return nil, err
		}
		if before.Stream == ep.Stream {
			return before, nil
		}
	}
	return nil, nil
}

// rejection reads the rejection of an ID, which must exist.
func (v *view) rejection(id uint64) (*rejection, error) {
	r := new(rejection)
	found, err := v.read(tableRejections, key64(id), r)
	if err == nil && !found {
		err = missing(tableRejections, key64(id), "the rejection")
	}
	r.ID = id
	return r, err
}
