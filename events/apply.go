package events

import (
	"slices"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
)

// Apply lets the chain take the event, which must be attributed to it, and
// says what it did. Known is what the store holds about the event's id in this
// chain; the zero value when the id is unreadable or new. Apply fills in the
// digests of e.Kind that were left out and puts the segment into e, where the
// effect has it: an event must not be applied by two goroutines at once, and
// applying it again overwrites the segment of the effect before. Nothing of e is
// kept by the state except copies.
//
// Of the event it reads Sum, Verb, Fault, ID, Scope, AtMS (BrokerMS without
// it), ProducerSeq, Kind, DigestStated, Phase, StepID, Reason, Preimage.Text
// and .Artifact, Anchors, Outcome, EventCount, ProducerHead,
// ProducerSignature, More and StreamSeq; the payload is not looked at. An
// event whose Kind is complete may be applied again without its preimage.
func (s *State) Apply(e *Event, known Known) Effect {
	s.witness(e)
	ended := s.Outcome != Open
	if e.ID != "" && known.Sum != nil && *known.Sum == e.Sum {
		s.Duplicates++
		return s.effect(Duplicate, ended)
	}
	if !ended && e.ID != "" {
		s.Facts.see(e, known.Sum != nil || known.Rejected)
	}
	if fault := s.judge(e, known); fault != nil {
		return s.reject(fault, known, ended)
	}
	if ended {
		s.Late++
		return s.effect(Late, ended)
	}
	s.bind(e)
	s.Facts.Unnumbered = s.Facts.Unnumbered || e.ProducerSeq == nil
	switch {
	case e.Verb == VerbSeal:
		return s.seal(e)
	case e.Kind == nil:
		return s.attempt(e)
	}
	return s.append(e)
}

// witness notes that the event was answered, whatever the answer.
func (s *State) witness(e *Event) {
	if s.FirstStreamSeq == 0 {
		s.FirstStreamSeq = e.StreamSeq
	}
	s.LastStreamSeq = e.StreamSeq
	s.LastEventID = clone(e.ID)
	s.LastSeq = kept(s.LastSeq, e.ProducerSeq)
}

// kept copies an optional number to where the last one stood, so that a state
// neither holds on to its events nor needs memory for each.
func kept(room, n *uint64) *uint64 {
	if n == nil {
		return nil
	}
	if room == nil {
		room = new(uint64)
	}
	*room = *n
	return room
}

// judge finds the fault that counts: what the bytes alone show up to their
// shapes, then conflict, then scope, digests, topology and run id, where the
// chain may know more than the bytes.
func (s *State) judge(e *Event, known Known) *Fault {
	switch {
	case e.Fault != nil && !e.Fault.Class.AfterConflict():
		return e.Fault
	case known.Sum != nil:
		return &Fault{Conflict, "the event id is held by other payload bytes"}
	case e.Fault != nil && e.Fault.Class == ScopeContradiction:
		return e.Fault
	case e.Scope != nil && s.Scope != nil && !sameScope(e.Scope, s.Scope):
		return &Fault{ScopeContradiction, "the scope differs from the one that the chain is bound to"}
	case e.Scope == nil && e.needsScope():
		if fault := s.complete(e); fault != nil {
			return fault
		}
	}
	return e.Fault
}

// complete computes a digest that only the chain's scope gives. A preimage
// that nothing can be computed from yet is not taken on trust.
func (s *State) complete(e *Event) *Fault {
	if s.Scope == nil {
		return &Fault{DigestMismatch, "the preimage gives no digest before the chain has a scope"}
	}
	return e.complete(s.Scope)
}

func (s *State) reject(fault *Fault, known Known, ended bool) Effect {
	s.Rejected++
	effect := s.effect(Rejected, ended)
	effect.Fault = fault
	if fault.Class == Conflict {
		effect.Existing = known.Sum
	}
	return effect
}

func (s *State) effect(v Verdict, afterEnd bool) Effect {
	return Effect{Verdict: v, AfterEnd: afterEnd, Head: s.Head}
}

// bind takes what any event that takes effect may bring along.
func (s *State) bind(e *Event) {
	if s.Scope == nil && e.Scope != nil {
		s.Scope = cloneScope(e.Scope, &s.Key)
	}
	if e.Anchors != nil {
		s.Anchors = segments.Anchors{
			PlanCommitRef: cloneOptional(e.Anchors.PlanCommitRef),
			TraceID:       cloneOptional(e.Anchors.TraceID),
			PlanCallIndex: e.Anchors.PlanCallIndex,
		}
	}
	s.LastAtMS = e.atMS()
}

func (e *Event) atMS() uint64 {
	if e.AtMS != nil {
		return *e.AtMS
	}
	return e.BrokerMS
}

func (s *State) attempt(e *Event) Effect {
	tally, _ := s.step(e.StepID)
	if e.Phase == PhaseFailed {
		s.tell(tally, &tally.Failed)
	} else {
		s.tell(tally, &tally.Begun)
	}
	return s.effect(Attempted, false)
}

func (s *State) append(e *Event) Effect {
	segment := s.link(e)
	effect := s.effect(Appended, false)
	effect.Segment = segment
	return effect
}

// link makes the event's kind the chain's next segment, which lies in the event.
func (s *State) link(e *Event) *segments.Segment {
	chain := segments.Builder{Next: s.Segments, Head: s.Head}
	e.room.linkedMS = e.atMS()
	e.room.segment = chain.Append(e.Kind, &e.room.linkedMS)
	s.Segments, s.Head = chain.Next, chain.Head
	switch kind := e.Kind.(type) {
	case *segments.IntentBound:
		s.Order.Intended = s.Order.Intended || s.Segments == 1 && len(s.Steps) == 0
		s.Order.place(rankIntent)
	case *segments.CompCommitted:
		s.Order.commit(kind.StepTopo, s.Steps)
	case *segments.StepExecuted:
		tally, at := s.step(kind.StepID)
		s.tell(tally, &tally.Ended)
		s.Order.step(kind.StepID, at)
	case *segments.RunSealed:
		s.Order.place(rankSeal)
		s.run(kind.RunID)
	}
	return &e.room.segment
}

func (s *State) run(id string) {
	if slices.Contains(s.RunIDs, id) {
		return
	}
	if s.tracked.runs == 0 {
		for _, known := range s.RunIDs {
			s.tracked.runs += len(known)
		}
	}
	if len(s.RunIDs) >= MaxTrackedRuns || s.tracked.runs+len(id) > MaxTrackedBytes {
		s.UntoldRuns++
		return
	}
	s.tracked.runs += len(id)
	s.RunIDs = append(s.RunIDs, clone(id))
}

// seal appends the run seal, when there is one, compares what the producer
// declares, and ends the chain unless more seals follow.
func (s *State) seal(e *Event) Effect {
	s.Seals++
	var segment *segments.Segment
	if e.Kind != nil {
		segment = s.link(e)
	}
	s.Facts.declare(e.EventCount, s.Segments)
	s.compareHead(e)
	verdict := Appended
	if !e.More {
		verdict = Finished
		s.Outcome, s.Reason, s.EndStreamSeq = e.Outcome, clone(e.Reason), e.StreamSeq
		s.Facts.End = Closing{
			Counted: e.EventCount != nil,
			Headed:  e.ProducerHead != nil && (segment != nil || s.Order.Rank < rankSeal),
		}
	}
	effect := s.effect(verdict, false)
	effect.Segment = segment
	return effect
}

// compareHead holds the producer's own head and signature against the chain.
// The last ones given count: a head covers all that came before it. The
// signature is over the producer's head, so it may be valid where that differs.
func (s *State) compareHead(e *Event) {
	if e.ProducerHead == nil {
		return
	}
	s.GivenHead, s.GivenSignature, s.GivenSegments = e.ProducerHead, nil, s.Segments
	s.ProducerHead, s.ProducerSignature = HeadDiffers, ""
	if s.Head != nil && *s.Head == *e.ProducerHead {
		s.ProducerHead = HeadAgrees
	}
	if e.ProducerSignature == nil {
		return
	}
	s.GivenSignature = &segments.Signature{
		PublicKeyHex: clone(e.ProducerSignature.PublicKeyHex),
		SignatureHex: clone(e.ProducerSignature.SignatureHex),
	}
	s.ProducerSignature = SignatureInvalid
	if s.producerSigned(e) {
		s.ProducerSignature = SignatureValid
	}
}

// producerSigned uses what decoding found out: a scope of the event's own is
// the chain's, or the event would have been rejected.
func (s *State) producerSigned(e *Event) bool {
	if e.signed != nil {
		return *e.signed
	}
	scope := s.BoundScope()
	return e.soundlySigned(&scope)
}

// soundlySigned refuses weak and non-canonical keys too, under which a
// signature proves nothing and which the format's own check lets pass.
func (e *Event) soundlySigned(scope *segments.Scope) bool {
	_, err := keys.ParsePublicKey(e.ProducerSignature.PublicKeyHex)
	return err == nil && segments.VerifySignature(e.ProducerSignature, scope, *e.ProducerHead) == nil
}
