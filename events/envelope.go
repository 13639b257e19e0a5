package events

import (
	"github.com/chaind/chaind/segments"
)

// Members of the envelope, to tell which were there.
const (
	hasV = 1 << iota
	hasEventID
	hasKind
	hasPhase
	hasOutcome
	hasReason
	hasEventCount
	hasProducerHead
	hasProducerSignature
	hasMore
	hasPreimage
)

const onlySeals = hasOutcome | hasEventCount | hasProducerHead | hasProducerSignature | hasMore

// envelope reads the whole payload, which is an object, into e and leaves the
// fault that counts in the parser's verdict.
func (p *parser) envelope(e *Event) {
	seen := 0
	p.peek()
	for p.enter(); p.next(); {
		seen |= p.member(e)
	}
	if p.repeated {
		p.verdict.add(rankDuplicate, "a name stands twice in one object")
		return
	}
	p.checkEnvelope(e, seen)
	p.finishKind(e, seen)
	p.checkScope(e)
}

// member reads the value of the envelope's member p.name and says which it was.
func (p *parser) member(e *Event) int {
	switch string(p.name) {
	case "v":
		if n, ok := p.integer("v", maxSafeInteger); ok && n != 1 {
			p.verdict.add(rankShape, "v is not 1")
		}
		return hasV
	case "event_id":
		p.eventID(e)
		return hasEventID
	case "scope":
		e.Scope = p.scope()
	case "at_ms":
		e.AtMS = p.countInto(&e.room.atMS, "at_ms")
	case "producer_seq":
		e.ProducerSeq = p.countInto(&e.room.producerSeq, "producer_seq")
	case "kind":
		p.readKind(e)
		return hasKind
	case "preimage":
		p.preimage(e)
		return hasPreimage
	case "anchors":
		e.Anchors = p.anchors()
	default:
		return p.verbMember(e)
	}
	return 0
}

// verbMember reads the members that belong to one verb.
func (p *parser) verbMember(e *Event) int {
	switch string(p.name) {
	case "phase":
		e.Phase = Phase(p.oneOf("phase", string(PhaseEnd), string(PhaseBegin), string(PhaseFailed)))
		return hasPhase
	case "outcome":
		e.Outcome = Outcome(p.oneOf("outcome", string(Succeeded), string(Failed), string(Cancelled), string(Abandoned)))
		return hasOutcome
	case "reason":
		e.Reason, _ = p.string("reason")
		return hasReason
	case "event_count":
		e.EventCount = p.count("event_count")
		return hasEventCount
	case "producer_head":
		if d, ok := p.digest("producer_head"); ok {
			e.ProducerHead = &d
		}
		return hasProducerHead
	case "producer_signature":
		e.ProducerSignature = p.signature()
		return hasProducerSignature
	case "more":
		e.More, _ = p.bool("more")
		return hasMore
	}
	p.unknown("the envelope")
	return 0
}

func (p *parser) eventID(e *Event) {
	raw := p.value()
	if raw[0] != '"' {
		p.verdict.add(rankID, "event_id is not a string")
		return
	}
	if e.ID = p.unquote(raw); !ValidEventID(e.ID) {
		p.verdict.add(rankID, "event_id is not 1 to 128 of A-Z, a-z, 0-9, _ . : -")
	}
}

func (p *parser) oneOf(member string, values ...string) string {
	s, ok := p.string(member)
	if !ok {
		return ""
	}
	for _, v := range values {
		if s == v {
			return v
		}
	}
	p.verdict.add(rankShape, member+" is none of its values")
	return ""
}

func (p *parser) checkEnvelope(e *Event, seen int) {
	if seen&hasEventID == 0 {
		p.verdict.add(rankID, "event_id is missing")
	}
	if seen&hasV == 0 {
		p.verdict.add(rankShape, "v is missing")
	}
	if e.Verb != VerbSeal && seen&onlySeals != 0 {
		p.verdict.add(rankShape, "outcome, event_count, producer_head, producer_signature and more belong to seals")
	}
	if e.Verb != VerbStep && seen&hasPhase != 0 {
		p.verdict.add(rankShape, "phase belongs to steps")
	}
	if seen&hasReason != 0 && e.Verb != VerbSeal && e.Phase != PhaseFailed {
		p.verdict.add(rankShape, "reason belongs to seals and failed attempts")
	}
	if seen&hasProducerSignature != 0 && seen&hasProducerHead == 0 {
		p.verdict.add(rankShape, "producer_signature without the producer_head that it signs")
	}
	p.defaults(e)
}

func (p *parser) defaults(e *Event) {
	switch {
	case e.Verb == VerbStep && e.Phase == "":
		e.Phase = PhaseEnd
	case e.Verb == VerbSeal && e.Outcome == "":
		e.Outcome = Succeeded
	}
}

func (p *parser) signature() *segments.Signature {
	if !p.object("producer_signature") {
		return nil
	}
	s, seen := &segments.Signature{}, 0
	for p.next() {
		switch string(p.name) {
		case "public_key_hex":
			s.PublicKeyHex, _ = p.string("producer_signature.public_key_hex")
			seen |= 1
		case "signature_hex":
			s.SignatureHex, _ = p.string("producer_signature.signature_hex")
			seen |= 2
		default:
			p.unknown("producer_signature")
		}
	}
	if seen != 3 {
		p.verdict.add(rankShape, "producer_signature lacks public_key_hex or signature_hex")
	}
	return s
}

func (p *parser) anchors() *segments.Anchors {
	if !p.object("anchors") {
		return nil
	}
	a := &segments.Anchors{}
	for p.next() {
		switch string(p.name) {
		case "plan_commit_ref":
			a.PlanCommitRef = p.optional("anchors.plan_commit_ref")
		case "trace_id":
			if a.TraceID = p.optional("anchors.trace_id"); a.TraceID != nil && !isUUID(*a.TraceID) {
				p.verdict.add(rankShape, "anchors.trace_id is not a hyphenated lower-case UUID")
			}
		case "plan_call_index":
			a.PlanCallIndex = p.count("anchors.plan_call_index")
		default:
			p.unknown("anchors")
		}
	}
	return a
}

func (p *parser) optional(member string) *string {
	s, ok := p.string(member)
	if !ok {
		return nil
	}
	return &s
}

// isUUID accepts the 8-4-4-4-12 form in lower case.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if s[i] != '-' {
				return false
			}
		} else if !isHexByte(s[i]) {
			return false
		}
	}
	return true
}
