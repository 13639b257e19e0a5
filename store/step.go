package store

import (
	"encoding/binary"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// Nearly every event is a step that becomes the next segment of a chain, under an
// id that nobody has held. Its entry is written here member by member, straight from
// the event, where the general path fills an entry and lets the codec write it: a
// seventh of what applying an event takes otherwise.
//
// It is safe because it only writes. What it writes and keeps is what the general path
// would, byte by byte, which a test compares over all that an event can hold; what is
// not such a step goes the general way; and entries are read in one way, the general one.

// Places in the lists of words.
const (
	wordAppended = 1 // in verdicts
	wordStep     = 3 // in verbs
	wordEnd      = 1 // in phases
)

// plainStep gives the step of an event whose entry is one of those; nil: it is not.
func (s *Store) plainStep(e *events.Event, effect *events.Effect, known *holder, bound bool) *segments.StepExecuted {
	if effect.Verdict != events.Appended || effect.Segment == nil || *known != (holder{}) ||
		e.ID == "" || e.Scope != nil && !bound || !nothingElse(e) || s.kept(&e.Preimage) != nil {
		return nil
	}
	step, _ := effect.Segment.Kind.(*segments.StepExecuted)
	return step
}

// nothingElse: the event has no member that a finished step does without.
func nothingElse(e *events.Event) bool {
	return e.Verb == events.VerbStep && e.Phase == events.PhaseEnd && e.StepID == "" && e.StepIndex == 0 &&
		e.Reason == "" && e.Anchors == nil && e.Outcome == "" && e.EventCount == nil &&
		e.ProducerHead == nil && e.ProducerSignature == nil && !e.More
}

// recordStep is record for a plain step.
func (w *writer) recordStep(ep *Epoch, c *chain, e *events.Event, s *segments.Segment, step *segments.StepExecuted) error {
	w.n.arrivals++
	w.scratch = appendStep(w.scratch[:0], e, s, step, c.next.no, ep.Number)
	if err := w.gather(w.n.arrivals, w.scratch); err != nil {
		return err
	}
	const lists = 1 << listSegments
	c.next.pending = append(c.next.pending, pend{w.n.arrivals, lists})
	c.next.last.over(w.n.arrivals, ep.Number, e.StreamSeq, lists)
	w.s.hold(c, c.state.LastEventID, holder{held: true, sum: e.Sum, arrival: w.n.arrivals})
	return nil
}

// appendStep appends the entry of a plain step. The members are those of entry.fields.
func appendStep(b []byte, e *events.Event, s *segments.Segment, step *segments.StepExecuted, chain uint64, epoch uint32) []byte {
	b = binary.AppendUvarint(append(b, wordAppended), chain)
	b = append(appendText(b, e.ID), wordStep)
	b = appendOptional(append(b, e.Sum[:]...), e.ProducerSeq)
	b = binary.AppendUvarint(b, uint64(epoch))
	b = binary.AppendUvarint(b, e.StreamSeq)
	b = binary.AppendUvarint(b, e.BrokerMS)
	b = append(b, 0, 0, 0) // known: not held, not rejected, no arrival
	b = appendOptional(b, e.AtMS)
	b = append(b, 0, 1, kindStep) // scope, digest stated, kind
	b = appendStepKind(b, step)
	b = binary.AppendUvarint(append(b, 1), s.Seq) // a segment
	if b = append(b, 0); s.Prev != nil {
		b[len(b)-1] = 1
		b = append(b, s.Prev[:]...)
	}
	b = appendOptional(b, s.EmittedAtMS)
	return append(b, wordEnd,
		0, 0, 0, // step id and index of an attempt, reason
		0, 0, // anchors, preimages
		0, 0, 0, 0, 0) // outcome, event count, head, signature, more: of seals
}

func appendStepKind(b []byte, step *segments.StepExecuted) []byte {
	b = binary.AppendUvarint(appendText(b, step.StepID), uint64(step.StepIndex))
	if b = append(b, 0); step.EntryID != nil {
		b[len(b)-1] = 1
		b = appendText(b, *step.EntryID)
	}
	if step.RequestFingerprints == nil {
		b = append(b, 0)
	} else {
		b = binary.AppendUvarint(b, uint64(len(step.RequestFingerprints))+1)
	}
	for _, f := range step.RequestFingerprints {
		b = appendText(b, f)
	}
	return append(appendText(b, step.SourceLine), step.ParsedExprDigest[:]...)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendOptional(b []byte, n *uint64) []byte {
	if n == nil {
		return append(b, 0)
	}
	return binary.AppendUvarint(append(b, 1), *n)
}
