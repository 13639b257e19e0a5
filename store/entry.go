package store

import (
	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// entry is one journal value: an event that had an effect on a chain, as it
// was applied. It holds all that applying it again needs, so that the state of
// a chain is its last stored state plus the entries since. Preimages are not
// in it: what they prove was checked when the event came, and the digests that
// were computed from them are filled in.
type entry struct {
	Origin  // Arrival is the key, not part of the value
	verdict events.Verdict
	chain   uint64 // chain number
	known   holder // what the store knew of the event id at the time

	scope       *segments.Scope // nil: none given, or the one the chain was bound to
	kind        segments.Kind
	stated      bool
	atMS        *uint64
	seq         uint64 // of the segment, when verdict and kind make one
	prev        *segments.Digest
	emittedAtMS *uint64
	segment     bool

	phase     events.Phase
	stepID    string
	stepIndex uint32
	reason    string
	anchors   *segments.Anchors
	preimages bool // there is a value in the preimage table

	outcome           events.Outcome
	eventCount        *uint64
	producerHead      *segments.Digest
	producerSignature *segments.Signature
	more              bool

	class     events.Class // rejected
	rejection uint64       // rejection ID
}

// holder is what an event id stands for in its chain.
type holder struct {
	held     bool
	sum      segments.Digest // payload digest of the event that holds the id
	rejected bool            // an event with this id was rejected
	arrival  uint64          // of the holder, or of the last rejected event while the id is free
}

func (h *holder) known() events.Known {
	k := events.Known{Rejected: h.rejected}
	if h.held {
		sum := h.sum
		k.Sum = &sum
	}
	return k
}

func (h *holder) fields(c *codec) {
	c.bool(&h.held)
	if h.held {
		c.digest(&h.sum)
	}
	c.bool(&h.rejected)
	c.uint(&h.arrival)
}

// after is what the id stands for once the entry has been applied.
func (e *entry) after() holder {
	switch e.verdict {
	case events.Duplicate:
		return e.known
	case events.Rejected:
		h := holder{held: e.known.held, sum: e.known.sum, rejected: true, arrival: e.Arrival}
		if h.held {
			h.arrival = e.known.arrival
		}
		return h
	}
	return holder{held: true, sum: e.Sum, rejected: e.known.rejected, arrival: e.Arrival}
}

func (o *Origin) fields(c *codec) {
	text(c, &o.EventID)
	word(c, &o.Verb, verbs)
	c.digest(&o.Sum)
	c.optUint(&o.ProducerSeq)
	c.uint32(&o.Epoch)
	c.uint(&o.StreamSeq)
	c.uint(&o.BrokerMS)
}

func (e *entry) fields(c *codec) {
	word(c, &e.verdict, verdicts)
	c.uint(&e.chain)
	e.Origin.fields(c)
	e.known.fields(c)
	c.optUint(&e.atMS)
	if present(c, &e.scope) {
		c.scope(e.scope)
	}
	switch e.verdict {
	case events.Duplicate:
	case events.Rejected:
		text(c, &e.class)
		c.uint(&e.rejection)
	default:
		e.contentFields(c)
	}
}

func (e *entry) contentFields(c *codec) {
	c.bool(&e.stated)
	c.kind(&e.kind)
	c.bool(&e.segment)
	if e.segment {
		c.uint(&e.seq)
		c.optDigest(&e.prev)
		c.optUint(&e.emittedAtMS)
	}
	word(c, &e.phase, phases)
	text(c, &e.stepID)
	c.uint32(&e.stepIndex)
	text(c, &e.reason)
	if present(c, &e.anchors) {
		c.anchors(e.anchors)
	}
	c.bool(&e.preimages)
	e.sealFields(c)
}

func (e *entry) sealFields(c *codec) {
	word(c, &e.outcome, outcomes)
	c.optUint(&e.eventCount)
	c.optDigest(&e.producerHead)
	if present(c, &e.producerSignature) {
		text(c, &e.producerSignature.PublicKeyHex)
		text(c, &e.producerSignature.SignatureHex)
	}
	c.bool(&e.more)
}

// take makes e the journal's copy of an event and its effect.
func (e *entry) take(ev *events.Event, eff *events.Effect, known holder, chain uint64, epoch uint32) {
	*e = entry{
		Origin: Origin{EventID: ev.ID, Verb: ev.Verb, Sum: ev.Sum, ProducerSeq: ev.ProducerSeq,
			Epoch: epoch, StreamSeq: ev.StreamSeq, BrokerMS: ev.BrokerMS},
		verdict: eff.Verdict, chain: chain, known: known, scope: ev.Scope, atMS: ev.AtMS,
	}
	switch eff.Verdict {
	case events.Duplicate, events.Rejected:
		e.scope = nil
		return
	}
	e.kind, e.stated = ev.Kind, ev.DigestStated
	if s := eff.Segment; s != nil {
		e.segment, e.kind, e.stated = true, s.Kind, true
		e.seq, e.prev, e.emittedAtMS = s.Seq, s.Prev, s.EmittedAtMS
	}
	e.phase, e.stepID, e.stepIndex, e.reason = ev.Phase, ev.StepID, ev.StepIndex, ev.Reason
	e.anchors, e.outcome, e.more = ev.Anchors, ev.Outcome, ev.More
	e.eventCount, e.producerHead, e.producerSignature = ev.EventCount, ev.ProducerHead, ev.ProducerSignature
}

// event is the event to apply again, and what was known of its id.
func (e *entry) event(key events.Key) (*events.Event, events.Known) {
	ev := &events.Event{
		Message: events.Message{Subject: key.Subject(e.Verb), StreamSeq: e.StreamSeq, BrokerMS: e.BrokerMS},
		Sum:     e.Sum, Key: key, Attributed: true, Verb: e.Verb,
		ID: e.EventID, Scope: e.scope, AtMS: e.atMS, ProducerSeq: e.ProducerSeq,
		Kind: e.kind, DigestStated: e.stated, Phase: e.phase, StepID: e.stepID, StepIndex: e.stepIndex,
		Reason: e.reason, Anchors: e.anchors, Outcome: e.outcome, EventCount: e.eventCount,
		ProducerHead: e.producerHead, ProducerSignature: e.producerSignature, More: e.more,
	}
	if e.verdict == events.Rejected && e.class != events.Conflict {
		ev.Fault = &events.Fault{Class: e.class}
	}
	return ev, e.known.known()
}

// record is the segment that the entry made.
func (e *entry) record() SegmentRecord {
	return SegmentRecord{Origin: e.Origin,
		Segment: segments.Segment{Seq: e.seq, Prev: e.prev, Kind: e.kind, EmittedAtMS: e.emittedAtMS}}
}
