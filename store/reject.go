package store

import (
	"encoding/binary"

	"github.com/chaind/chaind/events"
)

// rejection is a value of the rejection table.
type rejection struct {
	events.Rejection
	epoch   uint32
	arrival uint64 // of the journal entry; 0: the chain is not known
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
	c.uint32(&r.epoch)
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
	r := rejection{epoch: ep.Number, Rejection: events.Rejection{
		Message: e.Message, Key: e.Key, Attributed: e.Attributed, EventID: e.ID,
		Class: effect.Fault.Class, Detail: effect.Fault.Detail, Sum: e.Sum,
		Existing: effect.Existing, AfterEnd: effect.AfterEnd,
	}}
	r.Payload = r.Payload[:min(len(r.Payload), maxRejectedPayload)]
	if e.Attributed {
		r.arrival = w.n.arrivals
	}
	id := key64(w.n.rejections)
	if err := w.write(tableRejections, id, &r); err != nil {
		return 0, err
	}
	return w.n.rejections, w.put(tableSeen, seenKey(ep.Number, e.StreamSeq), id)
}

// rejectedBefore finds the rejection of this very delivery.
func (w *writer) rejectedBefore(ep *Epoch, e *events.Event, effect *events.Effect) (bool, error) {
	id, err := w.get(tableSeen, seenKey(ep.Number, e.StreamSeq))
	if id == nil || err != nil {
		return false, err
	}
	r, err := w.rejection(binary.BigEndian.Uint64(id))
	if err != nil || r.Sum != e.Sum || r.Subject != e.Subject {
		return false, err
	}
	*effect = r.effect()
	if !e.Attributed {
		return true, nil
	}
	c, err := w.chain(e.Key)
	if err != nil {
		return false, err
	}
	effect.Head = c.state.Head
	return true, nil
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
