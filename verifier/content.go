package verifier

import (
	"fmt"
	"slices"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/run"
	"github.com/chaind/chaind/keys"
)

// Content is what a trust bundle says and what became of it. What the file
// records, Result.Recorded above all, is the file's word and no verdict; its
// texts are raw. Claims, Upstreams, Action and Run are ours.
type Content struct {
	Bundle     *bundle.Bundle
	Root       string // recomputed; "": it could not be
	StoredRoot string // as the file states it
	Withheld   []string

	Result    *engine.Result // nil: the content was not looked at, or is malformed
	Claims    []ClaimReport  // one for each recorded claim
	Upstreams []UpstreamReport
	Action    ActionState
	Run       *run.Summary // what a run amounts to; nil: no run, or something fails
}

// ClaimVerdict is what re-execution makes of one claim.
type ClaimVerdict string

// The verdicts on claims. Only the first is one that a reader may build on.
const (
	ClaimRederived    ClaimVerdict = "re-derived"
	ClaimUnsupported  ClaimVerdict = "unsupported"   // recorded as verified; does not follow from the evidence
	ClaimAltered      ClaimVerdict = "altered"       // recorded as not verified, and follows; or misquotes its evidence
	ClaimUnverified   ClaimVerdict = "unverified"    // recorded as not verified, and does not follow
	ClaimWithheld     ClaimVerdict = "withheld"      // rests on withheld evidence
	ClaimNotEvaluable ClaimVerdict = "not-evaluable" // nothing was executed
)

// ClaimReport is one claim and its verdict.
type ClaimReport struct {
	Index    int
	Text     string // raw
	Recorded bool   // what the file says of it
	Verdict  ClaimVerdict
	Cause    string // why it fails; "": it does not
}

// UpstreamReport is one embedded bundle of a chain.
type UpstreamReport struct {
	Root      string // raw
	Verdict   engine.Verdict
	Cause     string     // "" for a pass
	Signature keys.State // "" when it is no bundle
	PublicKey string     // "" when unsigned
}

// ActionState is what became of the action section.
type ActionState string

// The states of an action.
const (
	ActionNone         ActionState = "none"
	ActionRederived    ActionState = "re-derived"
	ActionFails        ActionState = "fails"
	ActionNotEvaluable ActionState = "not-evaluable"
)

// execute runs the content again. What it returns says why checks of the
// content did not run; "": all ran.
func (t *trial) execute() string {
	if n := len(t.content.Withheld); n > 0 {
		t.warn("withheld", Finding{Code: CodeWithheld, Detail: counted(uint64(n), "item") + " withheld; what rests on them was not evaluated, and the answer was not derived again"})
	}
	if t.o.IntegrityOnly {
		t.warn("engine", Finding{Code: CodeNotExecuted, Detail: "nothing checked the content: only the integrity of the file was asked for"})
		return t.unexecuted("nobody asked to execute the content")
	}
	result, err := engine.Rederive(t.content.Bundle, t.registry())
	if err != nil {
		t.fail("content", ExitEnvelope, malformed(err))
		return "result or evidence is malformed"
	}
	t.content.Result = result
	for _, f := range result.Structural {
		t.fail(contentCheck(f.Code), ExitSemantic, told(f))
	}
	if result.Reason != nil {
		reason := told(*result.Reason)
		t.warn("engine", Finding{Code: reason.Code, Where: reason.Where, Detail: string(result.Taxonomy) + ": " + reason.Detail})
		t.action()
		for _, c := range result.Recorded.Claims {
			t.content.Claims = append(t.content.Claims, ClaimReport{len(t.content.Claims), c.Text, c.Verified, ClaimNotEvaluable, ""})
		}
		return t.unexecuted(string(result.Taxonomy) + ": " + reason.Detail)
	}
	t.note("engine", StatusPass, sentence(fmt.Sprintf("%s: domain %s under engine version %s", result.Taxonomy, result.Domain, result.Version)))
	t.upstreams()
	t.claims()
	t.answer()
	t.action()
	t.expectations()
	return ""
}

// unexecuted marks the checks that only execution makes.
func (t *trial) unexecuted(why string) string {
	for _, name := range []string{"evidence", "upstreams", "claims", "answer"} {
		t.note(name, StatusSkipped, why)
	}
	if t.content.Result == nil {
		for _, name := range []string{"content", "result", "action"} {
			t.note(name, StatusSkipped, why)
		}
	}
	t.expectations()
	return ""
}

func (t *trial) upstreams() {
	passed := 0
	for _, u := range t.content.Result.Upstreams {
		out := UpstreamReport{Root: clip(u.Root), Verdict: u.Verdict, Cause: sentence(u.Cause)}
		if u.Judgement != nil {
			out.Signature, out.PublicKey = t.signerOf(&u.Judgement.Signature, u.Judgement.Integrity)
		}
		if u.Verdict == engine.Pass {
			passed++
		}
		t.content.Upstreams = append(t.content.Upstreams, out)
	}
	if t.content.Result.Domain != engine.ChainDomain {
		t.note("upstreams", StatusNotApplicable, "the evidence is not other bundles")
		return
	}
	t.note("upstreams", StatusPass, fmt.Sprintf("%d of %d embedded bundles pass, and the evidence is what they yield", passed, len(t.content.Upstreams)))
}

// signerOf gives the state of an embedded bundle's signature. It does not enter
// the verdict: the list says whom to trust for the outermost bundle.
func (t *trial) signerOf(s *bundle.SignatureCheck, integrity *bundle.Integrity) (keys.State, string) {
	if !s.Signed {
		return keys.StateUnsigned, ""
	}
	claim := keys.Checked{Valid: s.Valid && integrity.Root == integrity.Stored}
	if key, err := keys.ParsePublicKey(s.PublicKey); err == nil {
		claim.Key = key
	}
	return keys.Judge(&claim, t.o.Trust), s.PublicKey
}

func (t *trial) claims() {
	result := t.content.Result
	if len(result.Claims) < len(result.Recorded.Claims) { // an earlier fault left them out
		t.note("claims", StatusSkipped, "the evidence is inconsistent; no claim was evaluated")
		for i, c := range result.Recorded.Claims {
			t.content.Claims = append(t.content.Claims, ClaimReport{i, c.Text, c.Verified, ClaimNotEvaluable, ""})
		}
		return
	}
	held := 0
	for i := range result.Claims {
		c := t.claim(&result.Claims[i])
		if c.Verdict == ClaimRederived {
			held++
		}
		t.content.Claims = append(t.content.Claims, c)
	}
	if len(result.Claims) == 0 {
		t.note("claims", StatusNotApplicable, "the recorded answer has none")
		return
	}
	count := fmt.Sprintf("%d of %d re-derived from the packaged evidence", held, len(result.Claims))
	if t.rows["claims"].Status == StatusWarn {
		t.rows["claims"] = Check{"claims", StatusWarn, count}
	}
	t.note("claims", StatusPass, count)
}

func (t *trial) claim(c *engine.ClaimCheck) ClaimReport {
	out := ClaimReport{Index: c.Index, Text: c.Text, Recorded: c.Recorded, Verdict: ClaimRederived}
	where := fmt.Sprintf("result.claims[%d]", c.Index)
	switch {
	case c.Cause != nil:
		f := told(*c.Cause)
		t.fail("claims", ExitSemantic, f)
		out.Verdict, out.Cause = ClaimAltered, f.Detail
		if c.Cause.Code == engine.ClaimUnsupported {
			out.Verdict = ClaimUnsupported
		}
	case !c.Evaluated:
		out.Verdict = ClaimWithheld
		t.warn("claims", Finding{Code: CodeClaimWithheld, Where: where, Detail: fmt.Sprintf("claim %d rests on withheld evidence and was not evaluated", c.Index)})
	case !c.Rederived:
		out.Verdict = ClaimUnverified
		t.warn("claims", Finding{Code: CodeClaimUnverified, Where: where, Detail: fmt.Sprintf("claim %d is recorded as not verified, and does not re-derive", c.Index)})
	}
	return out
}

func (t *trial) answer() {
	result := t.content.Result
	switch {
	case result.Answer == engine.AnswerRederives:
		t.note("answer", StatusPass, "the packaged evidence yields exactly this answer to the question")
	case result.AnswerCause != nil && result.Answer == engine.AnswerTied:
		t.warn("answer", told(*result.AnswerCause))
	case result.AnswerCause != nil:
		t.fail("answer", ExitSemantic, told(*result.AnswerCause))
	case len(t.content.Withheld) > 0:
		t.note("answer", StatusSkipped, "part of the evidence is withheld")
	default:
		t.note("answer", StatusSkipped, "the evidence is inconsistent")
	}
}

func (t *trial) action() {
	failed := t.rows["action"].Status == StatusFail
	kind := t.content.Bundle.Action.Kind()
	executed := t.content.Result.Taxonomy == engine.ReDerived && t.rows["evidence"].Status != StatusFail &&
		!slices.ContainsFunc(t.content.Result.Structural, func(f engine.Finding) bool { return f.Code == engine.ReexecutionFailed })
	switch {
	case failed:
		t.content.Action = ActionFails
	case kind == bundle.Null || kind == bundle.Absent:
		t.content.Action = ActionNone
		t.note("action", StatusNotApplicable, "there is none")
	case !executed:
		t.content.Action = ActionNotEvaluable
		t.note("action", StatusSkipped, "the content was not executed, so the action was not either")
	default:
		t.content.Action = ActionRederived
		t.note("action", StatusPass, "the packaged evidence yields exactly this action")
	}
}
