package verifier

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
)

// RunDomain is the engine domain of bundles that seal a run; its chain node says
// how the run ended.
const RunDomain = "evidence-run"

// outcomes are the words that a run can end with, and open.
var outcomes = []string{"open", "succeeded", "failed", "cancelled", "abandoned"}

// outcome takes how a run ended from the evidence, when the first claim, which
// says so, re-derives, and compares it with what the caller expects.
func (t *trial) outcome() {
	if result := t.content.Result; result != nil && result.Domain == RunDomain && len(t.content.Claims) > 0 &&
		t.content.Claims[0].Verdict == ClaimRederived && t.exit != ExitEnvelope && t.exit != ExitSemantic {
		t.content.Outcome = recordedOutcome(t.content.Bundle)
	}
	want, got := t.o.ExpectOutcome, t.content.Outcome
	switch {
	case want == "":
		t.note("expected_outcome", StatusNotApplicable, "no outcome was expected")
	case got == "":
		t.fail("expected_outcome", ExitPolicy, Finding{Code: CodeExpectedOutcome, Detail: "expected was " + quoted(want) + ", and no outcome of a run is established"})
	case got != want:
		t.fail("expected_outcome", ExitPolicy, Finding{Code: CodeExpectedOutcome, Detail: "the run ended as " + got + ", expected was " + quoted(want)})
	}
}

// recordedOutcome reads the outcome of the chain node; "" for none of the words.
func recordedOutcome(b *bundle.Bundle) string {
	for _, node := range b.Closure.Get("graph").Get("nodes").Items() {
		if node.Get("record").Get("id").Text() != "chain" {
			continue
		}
		for _, pair := range node.Get("attributes").Items() {
			var words []string
			for _, word := range pair.Items() {
				words = append(words, word.Text())
			}
			if len(words) == 2 && words[0] == "outcome" && slices.Contains(outcomes, words[1]) {
				return words[1]
			}
		}
	}
	return ""
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

func (t *trial) degraded() bool {
	return t.o.IntegrityOnly || t.content.Result == nil || t.content.Result.Degraded()
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
	case t.content.Outcome == "open":
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

// empty says that the file packages no evidence at all.
func (t *trial) empty() bool {
	nodes := t.content.Bundle.Closure.Get("graph").Get("nodes")
	return nodes.Kind() == bundle.Array && nodes.Len() == 0
}

func (t *trial) sentence() string {
	if t.decisive != nil {
		said := fmt.Sprintf("%s: %s", t.decisive.Code, t.decisive.Detail)
		if t.count > 1 {
			said += fmt.Sprintf(" (and %d more)", t.count-1)
		}
		return said
	}
	lead := ""
	switch {
	case t.content.Outcome != "":
		lead = t.content.Outcome + ": "
	case t.content.Result != nil && t.content.Result.Recorded.Refused && t.content.Result.Answer == engine.AnswerRederives:
		lead = "refusal: "
	}
	return lead + t.established() + ", signature " + string(t.report.Signature.State)
}

// established says how much of the content holds, and why not more. Nothing has
// failed.
func (t *trial) established() string {
	result := t.content.Result
	switch {
	case result == nil:
		return "the file is intact, and nothing checked what it says"
	case t.empty():
		return "the file packages no evidence, so nothing it says is established"
	case result.Reason != nil:
		return fmt.Sprintf("%s: %s; the file is intact, and nothing it says is established", result.Taxonomy, sentence(result.Reason.Detail))
	}
	var parts []string
	if n := len(t.content.Claims); n > 0 {
		held := t.claimsThat(ClaimRederived)
		parts = append(parts, fmt.Sprintf("%d of %s re-derived", held, counted(uint64(n), "claim")))
	}
	switch result.Answer {
	case engine.AnswerRederives:
		parts = append(parts, "the answer re-derives")
	case engine.AnswerTied:
		parts = append(parts, "the ranking has a tie that is not reproducible")
	}
	if n := t.claimsThat(ClaimUnverified); n > 0 {
		parts = append(parts, counted(uint64(n), "claim")+" not established")
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
