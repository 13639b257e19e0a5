package events

import (
	"math/bits"

	"github.com/chaind/chaind/segments"
)

// Members of kind, whatever the tag.
const (
	kTag = 1 << iota
	kIntentDigest
	kIntentLen
	kPlanID
	kCompDigest
	kTopo
	kStepID
	kStepIndex
	kEntryID
	kFingerprints
	kSourceLine
	kParsedDigest
	kRunID
	kResourceIndex
	kRunDigest
)

// kindNames in the order of the bits above.
var kindNames = [...]string{
	"kind", "intent_digest", "intent_len", "plan_commit_id_hex", "comp_semantic_sha256", "step_topo",
	"step_id", "step_index", "entry_id", "request_fingerprints", "source_line", "parsed_expr_digest",
	"run_id", "resource_index", "run_bundle_digest",
}

// kindRule says which members a tag may have, which it must have, and which
// of these a preimage stands in for.
type kindRule struct {
	tag                             string
	allowed, required, fromPreimage int
}

func ruleFor(verb Verb) kindRule {
	switch verb {
	case VerbIntent:
		all := kTag | kIntentDigest | kIntentLen
		return kindRule{segments.TagIntentBound, all, all, kIntentDigest}
	case VerbCommit:
		all := kTag | kPlanID | kCompDigest | kTopo
		return kindRule{segments.TagCompCommitted, all, all, kPlanID | kCompDigest}
	case VerbStep:
		all := kTag | kStepID | kStepIndex | kEntryID | kFingerprints | kSourceLine | kParsedDigest
		return kindRule{segments.TagStepExecuted, all, all &^ kEntryID, kParsedDigest}
	default:
		all := kTag | kRunID | kStepID | kResourceIndex | kRunDigest
		return kindRule{segments.TagRunSealed, all, all &^ (kStepID | kResourceIndex), kRunDigest}
	}
}

func ruleForTag(tag string) (kindRule, bool) {
	for _, verb := range [...]Verb{VerbIntent, VerbCommit, VerbStep, VerbSeal} {
		if rule := ruleFor(verb); rule.tag == tag {
			return rule, true
		}
	}
	return kindRule{}, false
}

// kindFields are the members of kind as read; the tag may come last.
type kindFields struct {
	seen int // members that were there, in whatever shape
	tag  string

	intentDigest, compDigest, parsedDigest, runDigest segments.Digest
	intentLen, stepIndex                              uint32
	planID, stepID, entryID, sourceLine, runID        string
	topo, fingerprints                                []string
	room                                              []string // for fingerprints
	resourceIndex                                     uint64
}

func (p *parser) readKind(e *Event) {
	if !p.object("kind") {
		return
	}
	p.kind.room = e.room.fingerprints[:0]
	for p.next() {
		p.kind.seen |= p.kindMember(&p.kind)
	}
}

// kindMember reads the value of kind's member p.name; bit 0: unknown.
func (p *parser) kindMember(k *kindFields) int {
	switch string(p.name) {
	case "kind":
		k.tag, _ = p.string("kind.kind")
		return kTag
	case "step_id":
		k.stepID, _ = p.string("kind.step_id")
		return kStepID
	case "step_index":
		k.stepIndex, _ = p.u32("kind.step_index")
		return kStepIndex
	case "entry_id":
		k.entryID, _ = p.string("kind.entry_id")
		return kEntryID
	case "request_fingerprints":
		k.fingerprints = p.strings(k.room, "kind.request_fingerprints")
		return kFingerprints
	case "source_line":
		k.sourceLine, _ = p.string("kind.source_line")
		return kSourceLine
	case "parsed_expr_digest":
		k.parsedDigest, _ = p.digest("kind.parsed_expr_digest")
		return kParsedDigest
	}
	return p.rarerMember(k)
}

func (p *parser) rarerMember(k *kindFields) int {
	switch string(p.name) {
	case "intent_digest":
		k.intentDigest, _ = p.digest("kind.intent_digest")
		return kIntentDigest
	case "intent_len":
		k.intentLen, _ = p.u32("kind.intent_len")
		return kIntentLen
	case "plan_commit_id_hex":
		k.planID, _ = p.string("kind.plan_commit_id_hex")
		return kPlanID
	case "comp_semantic_sha256":
		k.compDigest, _ = p.digest("kind.comp_semantic_sha256")
		return kCompDigest
	case "step_topo":
		k.topo = p.strings([]string{}, "kind.step_topo")
		return kTopo
	case "run_id":
		k.runID, _ = p.string("kind.run_id")
		return kRunID
	case "resource_index":
		k.resourceIndex, _ = p.integer("kind.resource_index", maxSafeInteger)
		return kResourceIndex
	case "run_bundle_digest":
		k.runDigest, _ = p.digest("kind.run_bundle_digest")
		return kRunDigest
	}
	p.unknown("kind")
	return 0
}

func (p *parser) u32(member string) (uint32, bool) {
	n, ok := p.integer(member, 1<<32-1)
	return uint32(n), ok
}

// finishKind checks the members of kind against its tag, verb and preimage,
// and builds the segment payload.
func (p *parser) finishKind(e *Event, seen int) {
	if seen&hasKind == 0 {
		p.checkNoKind(e, seen)
		return
	}
	k, rule := &p.kind, ruleFor(e.Verb)
	if k.tag != rule.tag {
		p.foreignKind(k)
		return
	}
	p.foreignMembers(k.seen &^ rule.allowed)
	if missing := rule.needs(e) &^ k.seen; missing != 0 {
		p.verdict.add(rankShape, "kind lacks "+kindNames[bits.TrailingZeros(uint(missing))])
	}
	if p.verdict.rank < rankScope {
		return
	}
	p.buildKind(e)
}

// foreignKind notes what is wrong with a kind of another verb.
func (p *parser) foreignKind(k *kindFields) {
	if own, ok := ruleForTag(k.tag); ok {
		p.foreignMembers(k.seen &^ own.allowed)
	}
	p.verdict.add(rankShape, "kind.kind does not fit the verb")
}

// needs gives the members that the event's kind cannot do without.
func (r kindRule) needs(e *Event) int {
	switch {
	case e.Verb == VerbStep && e.Phase != PhaseEnd:
		return kTag | kStepID | kStepIndex
	case e.Preimage.present():
		return r.required &^ r.fromPreimage
	}
	return r.required
}

func (p *parser) checkNoKind(e *Event, seen int) {
	switch {
	case e.Verb != VerbSeal:
		p.verdict.add(rankShape, "kind is missing")
	case e.More:
		p.verdict.add(rankShape, "a seal that more seals follow has no kind")
	case e.Preimage.present():
		p.verdict.add(rankShape, "preimage without the kind that it explains")
	}
}

func (p *parser) foreignMembers(extra int) {
	if extra != 0 {
		p.verdict.add(rankUnknown, "kind has "+kindNames[bits.TrailingZeros(uint(extra))]+", which its tag does not know")
	}
}
