package verifier

import (
	"fmt"
	"strings"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
)

// judge is one verification: the options, what was read, and what is said
// about it. Findings of strict mode gather in the facts; reference mode has its
// single error in its own list.
type judge struct {
	o      *Options
	facts  *facts
	env    *segments.Envelope
	report *Report

	errors   *findings
	warnings *findings
	notes    map[string]Check // what is known about checks beyond findings
}

func (j *judge) fail(code Code, format string, args ...any) {
	j.errors.add(Finding{Code: code, Detail: fmt.Sprintf(format, args...)})
}

func (j *judge) warn(code Code, format string, args ...any) {
	j.warnings.add(Finding{Code: code, Detail: fmt.Sprintf(format, args...)})
}

func (j *judge) note(check string, status Status, format string, args ...any) {
	j.notes[check] = Check{check, status, fmt.Sprintf(format, args...)}
}

// strictly makes the checks of section 16 that need the whole bundle; those of
// single segments were made as they passed.
func (j *judge) strictly(deviations []segments.Deviation) {
	for _, d := range deviations {
		j.errors.add(deviated(d))
	}
	j.scope()
	j.head()
	j.plan()
	j.runs()
	j.hints()
	j.signature()
	j.expectations()
}

func deviated(d segments.Deviation) Finding {
	offset := d.Offset
	return Finding{Code: Code(d.Code), Path: d.Path, Offset: &offset, Detail: fmt.Sprintf(
		"%s at %s, byte %d: an honest emitter does not write this", strings.ReplaceAll(d.Code, "_", " "), quoted(d.Path), d.Offset)}
}

func (j *judge) scope() {
	scope, loc := &j.env.Scope, j.o.Location
	if scope.SchemaVersion != segments.ScopeSchemaVersion {
		j.fail(CodeScopeVersion, "scope has schema version %d, known is %d", scope.SchemaVersion, segments.ScopeSchemaVersion)
	}
	if loc == nil {
		j.note("location", StatusNotApplicable, "no storage location is known")
		return
	}
	j.place("prompt hash", scope.PromptHash, loc.PromptHash)
	j.place("session", scope.ExecuteSessionID, loc.Session)
	if loc.Tenant != nil {
		j.place("tenant", scope.TenantID, *loc.Tenant)
	}
	name, isHead := headOfName(loc.FileName)
	if head := j.bestHead(); isHead && (head == nil || *head != name) {
		j.fail(CodeHeadFileName, "the file is named after head %s, which is not the head of the chain", name)
	}
}

func (j *judge) place(what, said, stored string) {
	if said != stored {
		j.fail(CodeScopeMismatch, "the bundle says %s %s, it was stored under %s", what, quoted(said), quoted(stored))
	}
}

// headOfName takes the head out of the name of a sidecar file.
func headOfName(name string) (segments.Digest, bool) {
	digits, ok := strings.CutSuffix(name, ".evidence.json")
	if !ok {
		return segments.Digest{}, false
	}
	head, err := segments.ParseDigest(digits)
	return head, err == nil
}

// bestHead is the computed head, or the declared one where links are broken.
func (j *judge) bestHead() *segments.Digest {
	if head := j.facts.head(); head != nil {
		return head
	}
	return j.env.Head
}

func (j *judge) head() {
	declared, computed := j.env.Head, j.facts.head()
	switch {
	case j.facts.walk.Count == 0:
		j.fail(CodeEmptyChain, "the chain has no segments")
		for _, name := range []string{"head", "numbering", "order", "topology"} {
			j.note(name, StatusSkipped, "there are no segments")
		}
	case declared == nil:
		j.fail(CodeHeadMissing, "the bundle does not declare its head")
	case computed == nil:
		j.note("head", StatusSkipped, "a link is broken, so no head can be computed")
	case *declared != *computed:
		err := errHead(*declared, *computed)
		j.fail(CodeHeadMismatch, "%s", err.Detail)
	default:
		j.note("head", StatusPass, "%s", computed)
	}
}

func (j *judge) plan() {
	order := &j.facts.order
	if j.facts.overrun() {
		err := errOverrun(order)
		j.fail(CodeTopoMismatch, "%s", err.Detail)
		j.note("steps", StatusSkipped, "the steps cannot be compared with the plan")
		return
	}
	if order.First == nil {
		j.fail(CodeCompMissing, "no plan was committed")
		for _, name := range []string{"topology", "steps"} {
			j.note(name, StatusSkipped, "no plan was committed")
		}
		return
	}
	for _, p := range []*segments.Progress{order.First, order.Last} {
		if p != nil && p.Broken != nil {
			j.errors.add(missedStep(p))
		}
	}
	j.note("topology", StatusPass, "%d executed, all in the order of the plan", order.Steps)
	names, total := order.Missing(maxFindings)
	if total == 0 {
		return
	}
	finding := missingSteps(names, total)
	if j.o.RequireSteps {
		j.errors.add(finding)
		return
	}
	j.warnings.add(finding)
}

func missedStep(p *segments.Progress) Finding {
	seq := p.Broken.Seq
	return Finding{Code: CodeTopoMismatch, Seq: &seq, StepID: clip(p.Broken.StepID), Detail: fmt.Sprintf(
		"step %s (segment seq %d) does not follow the committed plan of %d steps", quoted(p.Broken.StepID), seq, len(p.Topo))}
}

func missingSteps(names []string, total int) Finding {
	shown := make([]string, len(names))
	for i, name := range names {
		shown[i] = quoted(name)
	}
	detail := fmt.Sprintf("%d planned but not executed: %s", total, strings.Join(shown, ", "))
	if total > len(names) {
		detail += ", …"
	}
	return Finding{Code: CodeStepsMissing, StepID: clip(names[0]), Detail: detail}
}

func (j *judge) runs() {
	seals := j.facts.order.Seals
	if seals == 0 {
		j.note("run_ids", StatusNotApplicable, "no run is sealed")
		j.warn(CodeUnsealed, "the chain seals no run")
	} else {
		j.note("sealed", StatusPass, "%d sealed", seals)
	}
	asked := j.o.asked()
	if asked == "" {
		j.note("run_seal", StatusNotApplicable, "no run was asked for")
		return
	}
	if j.facts.wanted == nil {
		j.fail(CodeRunNotSealed, "no seal names run %s", quoted(asked))
	}
	j.snapshot(asked)
}

// snapshot compares the seal of the asked run with its snapshot.
func (j *judge) snapshot(asked string) {
	if j.o.Artifact == nil {
		j.warn(CodeArtifactAbsent, "the digest of run %s was not recomputed: its snapshot is not at hand", quoted(asked))
		j.note("run_seal", StatusSkipped, "the seal is there; without the run snapshot its digest was not recomputed")
		return
	}
	if j.facts.wanted == nil {
		return
	}
	if detail := sealFault(&j.env.Scope, j.o.Artifact, *j.facts.wanted); detail != "" {
		j.fail(CodeRunSealMismatch, "%s", detail)
	} else if asked == segments.RunID(*j.facts.wanted) {
		j.strange(asked)
	}
	j.note("run_seal", StatusPass, "%s", j.facts.wanted)
}

// strange looks at what a seal that holds does not cover: whose snapshot it says
// it is. The session is left out: the format's vectors have a tampered one warned of
// as a place that does not fit, and as nothing else.
func (j *judge) strange(asked string) {
	doc, scope := j.o.Artifact, &j.env.Scope
	for _, c := range []struct{ what, says, want string }{
		{"run", doc.RunID, asked}, {"prompt hash", doc.PromptHash, scope.PromptHash},
	} {
		if c.says != "" && c.says != c.want {
			j.warn(CodeArtifactOther, "the run's snapshot says that it is of %s %s, not %s; the seal does not cover that", c.what, quoted(c.says), quoted(c.want))
		}
	}
}

// hints looks at what is neither hashed nor signed.
func (j *judge) hints() {
	if j.facts.lastMS == nil {
		j.note("times", StatusNotApplicable, "no segment claims a time")
	}
	a := &j.env.Anchors
	if a.PlanCommitRef == nil && a.TraceID == nil && a.PlanCallIndex == nil {
		j.note("anchors", StatusNotApplicable, "there are none")
		return
	}
	j.warn(CodeAnchors, "anchors are neither hashed nor signed; anybody may have written them")
}

func (j *judge) signature() {
	sig, trust := j.env.Signature, j.o.Trust
	if sig == nil {
		j.unsigned()
		return
	}
	head := j.env.Head
	if head == nil {
		head = j.facts.head()
	}
	e := examine(sig, &j.env.Scope, head).strictly(sig)
	j.report.Signature = e.describe(sig, trust)
	if e.weak != nil {
		j.fail(CodeWeakPublicKey, "%v", e.weak)
	}
	if e.fault != "" {
		j.fail(CodeSignatureInvalid, "%s", e.fault)
	}
	j.trust(e)
}

// unsigned says nothing where the caller's policy says more.
func (j *judge) unsigned() {
	o := j.o
	j.report.Signature.State = keys.Judge(nil, o.Trust)
	j.note("signature", StatusNotApplicable, "there is none")
	switch {
	case o.RequireSigned:
		j.fail(CodeSignatureNeeded, "a signature is required and there is none")
	case j.report.Signature.State.Refused(o.Trust != nil, o.AllowUnsigned):
		j.fail(CodeSignatureNeeded, "there is a list of trusted keys and no signature")
	default:
		j.note("trust", StatusSkipped, "there is no signature; nobody vouches for this chain")
		j.warn(CodeUnsigned, "there is no signature")
	}
}

func (j *judge) trust(e examined) {
	if j.o.Trust == nil {
		j.note("trust", StatusNotApplicable, "nobody said which keys to trust")
		return
	}
	id := j.report.Signature.KeyID
	switch j.report.Signature.State {
	case keys.StateInvalid:
		j.note("trust", StatusSkipped, "the signature does not hold, so it shows no signer")
		if _, listed := j.o.Trust.Lookup(e.claim.Key); e.weak == nil && (!e.named || !listed) {
			j.fail(CodeUntrustedKey, "the key that the signature names is not in the list of trusted keys")
		}
	case keys.StateUntrusted:
		j.fail(CodeUntrustedKey, "%s", untrustedBy(id))
	case keys.StateRevoked:
		j.fail(CodeRevokedKey, "%s", revokedBy(id))
	case keys.StateRetired:
		j.warn(CodeRetiredKey, "signed by key %s, which the list holds as retired: fine for old evidence only", id)
	default:
		j.note("trust", StatusPass, "signed by trusted key %s", id)
	}
}

// expectations compares with what the caller knows from elsewhere.
func (j *judge) expectations() {
	j.expectHead()
	want := j.o.ExpectPlan
	if want == "" {
		j.note("expected_plan", StatusNotApplicable, "no plan was expected")
		return
	}
	j.note("expected_plan", StatusPass, "as expected")
	first, last := j.facts.firstPlan, j.facts.lastPlan
	if first != want {
		j.fail(CodeExpectedPlan, "the first committed plan is %s, expected was %s", quoted(first), quoted(want))
	}
	if last != want && last != first {
		j.fail(CodeExpectedPlan, "the last committed plan is %s, expected was %s", quoted(last), quoted(want))
	}
	if first == want && last == want && j.facts.strange > 0 {
		j.warn(CodeOtherPlans, "between commits to the expected plan there are %d to others, the first of them to %s", j.facts.strange, quoted(j.facts.stranger))
	}
}

func (j *judge) expectHead() {
	want, got := j.o.ExpectHead, j.facts.head()
	switch {
	case want == nil:
		j.note("expected_head", StatusNotApplicable, "no head was expected")
	case got == nil:
		j.fail(CodeExpectedHead, "the chain gives no head, expected was %s", want)
	case *want != *got:
		j.fail(CodeExpectedHead, "the chain gives head %s, expected was %s", got, want)
	default:
		j.note("expected_head", StatusPass, "as expected")
	}
}
