package engine

import "github.com/chaind/chaind/bundle"

// Taxonomy says how far the content of a bundle could be re-executed.
type Taxonomy string

// The taxonomies.
const (
	ReDerived     Taxonomy = "RE-DERIVED"     // claims and answer were re-executed; Result says how it went
	IntegrityOnly Taxonomy = "INTEGRITY-ONLY" // the file does not package what a re-execution needs
	NotEvaluable  Taxonomy = "NOT-EVALUABLE"  // this engine lacks the domain, version or grammars
)

// Verdict sums a bundle up.
type Verdict string

// The verdicts, from best to worst.
const (
	Pass     Verdict = "PASS"
	Degraded Verdict = "DEGRADED" // nothing failed, but not everything was established
	Fail     Verdict = "FAIL"     // the content does not follow from the evidence
	Tampered Verdict = "TAMPERED" // integrity or signature broken, or no bundle at all
)

// AnswerState is the outcome of answering the recorded question again.
type AnswerState string

// The answer states.
const (
	AnswerNotPerformed AnswerState = "not-performed"
	AnswerRederives    AnswerState = "re-derives"
	AnswerDiffers      AnswerState = "differs"
	AnswerTied         AnswerState = "ranking-tie" // equal but for a tie of scores that is not reproducible
)

// Result is what re-execution found in one bundle.
type Result struct {
	Domain    string   // as sealed
	Version   string   // engine version, as sealed
	Installed []string // versions of that domain that are known here
	Taxonomy  Taxonomy
	Reason    *Finding  // why it was not re-derived; nil for ReDerived
	Recorded  *Decision // the result section, as the file has it: not a verdict of ours
	Withheld  []string  // as bundle.Withheld
	Closure   *Closure  // the evidence that was executed; nil unless ReDerived

	Structural  []Finding
	Claims      []ClaimCheck // empty when the step did not run
	Answer      AnswerState
	AnswerCause *Finding   // for AnswerDiffers and AnswerTied
	Upstreams   []Upstream // of a chain; empty when the step did not run
}

// ClaimCheck is the re-execution of one recorded claim.
type ClaimCheck struct {
	Index     int
	Text      string
	Recorded  bool     // the verdict that the file states
	Rederived bool     // ours
	Evaluated bool     // false: it rests on withheld evidence; Rederived is false then
	Cause     *Finding // why the claim fails; nil: it does not
}

// Upstream is an embedded bundle of a chain and its own verdict.
type Upstream struct {
	Root      string // as it states it, or "upstream[i]"
	Verdict   Verdict
	Cause     string     // "" for Pass
	Judgement *Judgement // nil when it is no bundle
}

// Failures lists everything that makes the content fail: structural findings,
// then causes of claims, then that of the answer.
func (r *Result) Failures() []Finding {
	out := append([]Finding(nil), r.Structural...)
	for i := range r.Claims {
		if r.Claims[i].Cause != nil {
			out = append(out, *r.Claims[i].Cause)
		}
	}
	if r.Answer == AnswerDiffers && r.AnswerCause != nil {
		out = append(out, *r.AnswerCause)
	}
	return out
}

// Failed says that Failures is not empty or that the answer differs.
func (r *Result) Failed() bool {
	if len(r.Structural) > 0 || r.Answer == AnswerDiffers {
		return true
	}
	for i := range r.Claims {
		if r.Claims[i].Cause != nil {
			return true
		}
	}
	return false
}

// Degraded says that something was not established: not re-derived, withheld,
// a claim that does not re-derive and does not say so, a tied ranking.
func (r *Result) Degraded() bool {
	if r.Taxonomy != ReDerived || len(r.Withheld) > 0 || r.Answer == AnswerTied {
		return true
	}
	for i := range r.Claims {
		if !r.Claims[i].Rederived {
			return true
		}
	}
	return false
}

// Judgement is everything found about one bundle, envelope and content.
type Judgement struct {
	Integrity *bundle.Integrity
	Signature bundle.SignatureCheck
	*Result
}

// Verdict sums the judgement up. A broken envelope outweighs a failed content,
// which outweighs a degraded one.
func (j *Judgement) Verdict() Verdict {
	switch {
	case len(j.Integrity.Findings) > 0 || j.Signature.Finding != nil:
		return Tampered
	case j.Failed():
		return Fail
	case j.Degraded():
		return Degraded
	}
	return Pass
}

// Cause names what stands between the bundle and a pass; "" for Pass.
func (j *Judgement) Cause() string {
	verdict := j.Verdict()
	failures := j.Failures()
	switch {
	case verdict == Pass:
		return ""
	case j.Reason != nil:
		return j.Reason.Detail
	case len(failures) > 0:
		return failures[0].Detail
	case len(j.Integrity.Findings) > 0:
		return j.Integrity.Findings[0].Detail
	case j.Signature.Finding != nil:
		return j.Signature.Finding.Detail
	case j.AnswerCause != nil:
		return j.AnswerCause.Detail
	}
	return string(verdict)
}

// Judge checks integrity and signature of a bundle and re-executes its
// content. A broken envelope does not stop the rest. The error is a
// *bundle.FormatError: there is nothing to judge.
func Judge(b *bundle.Bundle, known Registry) (*Judgement, error) {
	integrity, err := b.CheckIntegrity()
	if err != nil {
		return nil, err
	}
	signature, err := b.CheckSignature()
	if err != nil {
		return nil, err
	}
	result, err := Rederive(b, known)
	if err != nil {
		return nil, err
	}
	return &Judgement{Integrity: integrity, Signature: signature, Result: result}, nil
}
