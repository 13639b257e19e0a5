package events

import (
	"slices"

	"github.com/chaind/chaind/segments"
)

func (p *Preimage) present() bool {
	return p.Text != nil || p.Comp != nil || p.Parsed != nil || p.Artifact != nil
}

// preimage reads what the digests were computed from, keeping the raw text.
func (p *parser) preimage(e *Event) {
	if p.peek() != '{' {
		p.value()
		p.verdict.add(rankShape, "preimage is not an object")
		return
	}
	for p.enter(); p.next(); {
		p.preimageMember(e)
	}
}

func (p *parser) preimageMember(e *Event) {
	home := VerbIntent
	switch string(p.name) {
	case "text":
		e.Preimage.Text = p.preimageText()
	case "comp":
		home, e.Preimage.Comp = VerbCommit, p.raw("preimage.comp", '{')
	case "parsed":
		home, e.Preimage.Parsed = VerbStep, p.raw("preimage.parsed", 0)
	case "artifact":
		home, e.Preimage.Artifact = VerbSeal, p.raw("preimage.artifact", '{')
	default:
		name := quoted(p.name)
		p.value()
		p.verdict.add(rankUnknown, "unknown name "+name+" in preimage")
		return
	}
	if e.Verb != home {
		p.verdict.add(rankShape, "preimage does not fit the verb")
	}
}

func (p *parser) preimageText() *string {
	raw := p.value()
	if raw[0] != '"' {
		p.verdict.add(rankShape, "preimage.text is not a string")
		return nil
	}
	s := p.unquote(raw)
	return &s
}

// raw keeps a value's text as it stands. Its numbers follow the evidence
// format, but one that binary64 cannot hold has no canonical form.
func (p *parser) raw(member string, opening byte) []byte {
	v := p.value()
	if opening != 0 && v[0] != opening {
		p.verdict.add(rankShape, member+" is not an object")
		return nil
	}
	if outOfRange(v) {
		p.verdict.add(rankShape, member+" holds a number outside binary64")
	}
	return v
}

// buildKind makes the segment payload (or the attempt) and compares it with
// the preimage as far as the event alone allows.
func (p *parser) buildKind(e *Event) {
	k := &p.kind
	switch e.Verb {
	case VerbIntent:
		e.DigestStated = k.seen&kIntentDigest != 0
		e.Kind = &segments.IntentBound{IntentDigest: k.intentDigest, IntentLen: k.intentLen}
	case VerbCommit:
		p.buildCommit(e)
	case VerbStep:
		p.buildStep(e)
	case VerbSeal:
		p.buildSeal(e)
	}
	if e.Scope == nil || !e.needsScope() {
		return
	}
	switch fault := e.complete(e.Scope); {
	case fault == nil:
	case fault.Class == RunIDMismatch:
		p.verdict.add(rankRunID, fault.Detail)
	default:
		p.verdict.add(rankDigest, fault.Detail)
	}
}

func (p *parser) buildCommit(e *Event) {
	k := &p.kind
	kind := &segments.CompCommitted{PlanCommitIDHex: k.planID, CompSemanticSHA256: k.compDigest, StepTopo: k.topo}
	e.Kind, e.DigestStated = kind, k.seen&kCompDigest != 0
	if e.Preimage.Comp != nil {
		p.checkComp(e, kind)
	}
	if k.seen&kPlanID == 0 {
		kind.PlanCommitIDHex = kind.CompSemanticSHA256.String()
	}
	if kind.PlanCommitIDHex != kind.CompSemanticSHA256.String() {
		p.verdict.add(rankDigest, "plan_commit_id_hex is not the comp's digest")
	}
}

// checkComp computes the plan digest, for a stated digest or plan id to agree
// with, and compares the topologies.
func (p *parser) checkComp(e *Event, kind *segments.CompCommitted) {
	digest, err := p.planDigest(e, kind)
	if err != nil {
		p.verdict.add(rankShape, "preimage.comp has no plan digest")
		return
	}
	if e.DigestStated && digest != kind.CompSemanticSHA256 {
		p.verdict.add(rankDigest, "preimage.comp does not give comp_semantic_sha256")
	}
	kind.CompSemanticSHA256 = digest
	if topo, ok := compTopo(e.Preimage.Comp); !ok || !slices.Equal(topo, kind.StepTopo) {
		p.verdict.add(rankTopo, "step_topo is not the comp's bind.topo")
	}
}

// planDigest gives the comp's digest in the spelling that the event states;
// today's when it states none or another digest.
func (p *parser) planDigest(e *Event, kind *segments.CompCommitted) (today segments.Digest, err error) {
	named := p.kind.seen&kPlanID != 0
	for i, digest := range planDigests {
		d, err := digest(e.Preimage.Comp)
		if err != nil {
			return segments.Digest{}, err
		}
		if i == 0 {
			today = d
		}
		switch {
		case e.DigestStated && d == kind.CompSemanticSHA256,
			!e.DigestStated && (!named || kind.PlanCommitIDHex == d.String()):
			return d, nil
		}
	}
	return today, nil
}

func (p *parser) buildStep(e *Event) {
	k := &p.kind
	e.DigestStated = k.seen&kParsedDigest != 0
	if e.Preimage.Parsed != nil {
		d := segments.ParsedDigest(e.Preimage.Parsed)
		if e.DigestStated && d != k.parsedDigest {
			p.verdict.add(rankDigest, "preimage.parsed does not give parsed_expr_digest")
		}
		k.parsedDigest = d
	}
	if e.Phase != PhaseEnd {
		e.StepID, e.StepIndex = k.stepID, k.stepIndex
		return
	}
	kind := &e.room.step
	*kind = segments.StepExecuted{
		StepID: k.stepID, StepIndex: k.stepIndex, RequestFingerprints: k.fingerprints,
		SourceLine: k.sourceLine, ParsedExprDigest: k.parsedDigest,
	}
	if k.seen&kEntryID != 0 {
		e.room.entryID = k.entryID
		kind.EntryID = &e.room.entryID
	}
	e.Kind = kind
}

func (p *parser) buildSeal(e *Event) {
	k := &p.kind
	kind := &segments.RunSealed{RunID: k.runID, RunBundleDigest: k.runDigest}
	e.Kind, e.DigestStated = kind, k.seen&kRunDigest != 0
	if k.seen&kStepID != 0 {
		kind.StepID = pointer(k.stepID)
	}
	if k.seen&kResourceIndex != 0 {
		kind.ResourceIndex = pointer(k.resourceIndex)
	}
	if e.Preimage.Artifact != nil {
		if _, err := segments.DecodeSealDocument(e.Preimage.Artifact); err != nil {
			p.verdict.add(rankShape, "preimage.artifact is no run snapshot")
		}
	}
	p.checkRunID(e)
}

// checkRunID compares a stated or computed digest with the run id.
func (p *parser) checkRunID(e *Event) {
	if kind, ok := e.Kind.(*segments.RunSealed); ok && e.DigestStated {
		if fault := runIDFault(kind.RunID == segments.RunID(kind.RunBundleDigest)); fault != nil {
			p.verdict.add(rankRunID, fault.Detail)
		}
	}
}

// compTopo reads bind.topo of a comp, which is a valid JSON object.
func compTopo(comp []byte) ([]string, bool) {
	bind, ok := memberOf(comp, "bind")
	if !ok || bind[0] != '{' {
		return nil, false
	}
	list, ok := memberOf(bind, "topo")
	if !ok || list[0] != '[' {
		return nil, false
	}
	topo := []string{}
	c := cursor{text: list}
	for c.pos++; c.item(); {
		v := c.value()
		if v[0] != '"' {
			return nil, false
		}
		topo = append(topo, string(c.plain(v)))
	}
	return topo, true
}

// memberOf gives the text of a member of a valid JSON object.
func memberOf(object []byte, name string) ([]byte, bool) {
	c := cursor{text: object}
	for c.enter(); c.next(); {
		found := string(c.name) == name
		if v := c.value(); found {
			return v, true
		}
	}
	return nil, false
}
