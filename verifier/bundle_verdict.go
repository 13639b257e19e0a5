package verifier

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/run"
)

// outcomes are the words that a caller may expect of a run.
var outcomes = []run.Outcome{run.Open, run.Succeeded, run.Failed, run.Cancelled, run.Abandoned}

// summarize reads what the run amounts to, which means something only when
// nothing has failed.
func (t *trial) summarize() {
	result := t.content.Result
	if result == nil || result.Taxonomy != engine.ReDerived || result.Domain != run.Name || t.exit == ExitEnvelope || t.exit == ExitSemantic {
		return
	}
	if summary, err := run.SummarizeGraph(result.Closure.Graph, result.Version); err == nil {
		t.content.Run = summary
	}
	if t.midway() {
		t.warn("engine", Finding{Code: CodeMidway, Where: "engine", Detail: fmt.Sprintf("%s: domain %s under engine version %s, by which a declaration of the producer before the end was enough for a complete intake; nothing that it declared covers the end", result.Taxonomy, result.Domain, result.Version)})
	}
}

// midway says that the run is complete only as an earlier version of its domain
// had it.
func (t *trial) midway() bool { return t.content.Run != nil && t.content.Run.Midway }

// expectations compares the run with what the caller knows from elsewhere.
func (t *trial) expectations() {
	t.summarize()
	t.expectHead()
	want, run := t.o.ExpectOutcome, t.content.Run
	switch {
	case want == "":
		t.note("expected_outcome", StatusNotApplicable, "no outcome was expected")
	case run == nil:
		t.fail("expected_outcome", ExitPolicy, Finding{Code: CodeExpectedOutcome, Detail: "expected was " + quoted(want) + ", and no outcome of a run is established"})
	case run.Word != want || !outcomeHolds(run):
		t.fail("expected_outcome", ExitPolicy, Finding{Code: CodeExpectedOutcome, Detail: "the run is " + quoted(run.Word) + ", expected was " + quoted(want)})
	}
}

// outcomeHolds says that the evidence bears out how the chain node says that the
// run ended. Of an open run there is nothing to bear out.
func outcomeHolds(s *run.Summary) bool {
	return s.Outcome == run.Open || holds(s, "Outcome: ")
}

// holds says that the claim of a shape, known by its label, is established.
func holds(s *run.Summary, label string) bool {
	return !slices.ContainsFunc(s.Unmet, func(claim string) bool { return strings.HasPrefix(claim, label) })
}

func (t *trial) expectHead() {
	want, run := t.o.ExpectHead, t.content.Run
	switch {
	case want == nil:
		t.note("expected_head", StatusNotApplicable, "no head was expected")
	case run == nil || run.Head == "" || !holds(run, "Chain: "):
		t.fail("expected_head", ExitEnvelope, Finding{Code: CodeExpectedHead, Detail: "no head of a run is established, expected was " + want.String()})
	case run.Head != want.String():
		t.fail("expected_head", ExitEnvelope, Finding{Code: CodeExpectedHead, Detail: "the run has head " + quoted(run.Head) + ", expected was " + want.String()})
	}
}

// conclude derives verdict, summary and exit code of a trust bundle.
func (t *trial) conclude() {
	r := t.report
	r.ExitCode = t.exit
	if t.decisive == nil && t.degraded() {
		r.ExitCode = ExitDegraded
	}
	r.Verdict = t.word()
	r.Summary = Escape(t.sentence())
}

// degraded also looks at what a run bundle's question leaves aside: a refused
// question must not hide that the run is open or its record incomplete.
func (t *trial) degraded() bool {
	return t.content.Result == nil || t.content.Result.Degraded() || t.empty() || t.content.Run != nil && len(t.content.Run.Unmet) > 0
}

func (t *trial) word() Verdict {
	switch t.report.ExitCode {
	case ExitPass:
		return Pass
	case ExitSemantic:
		return Fail
	case ExitPolicy:
		return Unmet
	case ExitNotRun, ExitUsage:
		return NotRun
	case ExitEnvelope:
		return t.envelopeWord()
	}
	switch {
	case t.empty():
		return Empty
	case t.o.IntegrityOnly:
		return Unchecked
	case t.content.Run != nil && t.content.Run.Outcome == run.Open:
		return Unsealed
	}
	return Degraded
}

// envelopeWord tells a file that holds but is not signed as was asked from one
// that is broken.
func (t *trial) envelopeWord() Verdict {
	for _, f := range t.errors.listed {
		if f.Code != CodeUntrustedKey && f.Code != CodeRevokedKey && f.Code != CodeSignatureNeeded {
			return Broken
		}
	}
	return Untrusted
}

// empty says that the file packages no evidence at all, or a run in which
// nothing happened.
func (t *trial) empty() bool {
	if t.content.Run != nil && t.content.Run.Segments == 0 {
		return true
	}
	nodes := t.content.Bundle.Closure.Get("graph").Get("nodes")
	return nodes.Kind() == bundle.Array && nodes.Len() == 0
}

func (t *trial) sentence() string {
	if t.decisive != nil {
		if failing := t.failing(); t.exit == ExitSemantic && failing != "" {
			return failing
		}
		said := fmt.Sprintf("%s: %s", t.decisive.Code, t.decisive.Detail)
		if t.count > 1 {
			said += fmt.Sprintf(" (and %d more)", t.count-1)
		}
		return said
	}
	lead := ""
	switch {
	case t.content.Run != nil:
		lead = t.content.Run.Word + ": "
	case t.refused():
		lead = "refusal: "
	}
	return lead + t.established() + ", signature " + string(t.report.Signature.State)
}

// maxIndexes is how many claims a summary names.
const maxIndexes = 20

// failing names the claims that fail, and says whether anything else does; "":
// no claim does.
func (t *trial) failing() string {
	var indexes []string
	for i := range t.content.Claims {
		if v := t.content.Claims[i].Verdict; v == ClaimUnsupported || v == ClaimAltered {
			indexes = append(indexes, fmt.Sprint(i))
		}
	}
	if len(indexes) == 0 {
		return ""
	}
	said := fmt.Sprintf("%d of %s do not re-derive: %s", len(indexes), counted(uint64(len(t.content.Claims)), "claim"), strings.Join(indexes[:min(len(indexes), maxIndexes)], ", "))
	if len(indexes) > maxIndexes {
		said += ", …"
	}
	if others := t.count - len(indexes); others > 0 {
		said += fmt.Sprintf("; and %s", counted(uint64(others), "other fault"))
	}
	return said
}

// refused says that the evidence yields a refusal, as the file records.
func (t *trial) refused() bool {
	result := t.content.Result
	return result != nil && result.Recorded.Refused && result.Answer == engine.AnswerRederives
}

// established says how much of the content holds, and why not more. Nothing has
// failed.
func (t *trial) established() string {
	result := t.content.Result
	switch {
	case result == nil:
		return "the file is intact, and nothing checked what it says"
	case t.empty():
		return "the file packages no evidence of anything, so nothing it says is established"
	case result.Reason != nil:
		return fmt.Sprintf("%s: %s; the file is intact, and nothing it says is established", result.Taxonomy, sentence(result.Reason.Detail))
	}
	var parts []string
	if n := len(t.content.Claims); n > 0 {
		held := t.claimsThat(ClaimRederived)
		parts = append(parts, fmt.Sprintf("%d of %s re-derived", held, counted(uint64(n), "claim")))
	}
	switch {
	case t.refused():
		parts = append(parts, "the question is not one that this evidence answers")
	case result.Answer == engine.AnswerRederives:
		parts = append(parts, "the answer re-derives")
	case result.Answer == engine.AnswerTied:
		parts = append(parts, "the ranking has a tie that is not reproducible")
	}
	if n := t.claimsThat(ClaimUnverified); n > 0 {
		first := slices.IndexFunc(t.content.Claims, func(c ClaimReport) bool { return c.Verdict == ClaimUnverified })
		parts = append(parts, counted(uint64(n), "claim")+" not established, first "+quoted(t.content.Claims[first].Text))
	}
	if t.midway() {
		parts = append(parts, "complete only as "+result.Version+" has it, which asked for no declaration that covers the end")
	}
	if r := t.content.Run; r != nil && len(r.Unmet) > 0 && t.claimsThat(ClaimUnverified) == 0 {
		parts = append(parts, "and left aside, what is not established: "+quoted(r.Unmet[0]))
	}
	if n := len(t.content.Withheld); n > 0 {
		parts = append(parts, counted(uint64(n), "item")+" withheld")
	}
	return strings.Join(parts, ", ")
}

func (t *trial) claimsThat(v ClaimVerdict) int {
	n := 0
	for i := range t.content.Claims {
		if t.content.Claims[i].Verdict == v {
			n++
		}
	}
	return n
}
