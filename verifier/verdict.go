package verifier

import (
	"fmt"
	"slices"

	"github.com/chaind/chaind/keys"
)

// Verdict is the word that sums a report up.
type Verdict string

const (
	Pass      Verdict = "PASS"
	Unsealed  Verdict = "UNSEALED"  // nothing failed, but no run is sealed
	Fail      Verdict = "FAIL"      // plan, order or seal do not hold
	Untrusted Verdict = "UNTRUSTED" // the chain holds, its signature is not one that was asked for
	Empty     Verdict = "EMPTY"     // there is nothing to verify
	Broken    Verdict = "BROKEN"    // unreadable, altered or badly signed
	NotRun    Verdict = "NOT-RUN"

	// Of trust bundles only.
	Degraded  Verdict = "DEGRADED"  // nothing failed, but not everything was established
	Unchecked Verdict = "UNCHECKED" // intact, and nothing checked the content, as was asked
	Unmet     Verdict = "UNMET"     // it holds, and is not what the caller expected
)

// conclude derives verdict, summary and exit code from errors and warnings, so
// that the three cannot disagree.
func (r *Report) conclude() {
	r.ExitCode = ExitPass
	for _, f := range r.Errors {
		r.ExitCode = WorstExit(r.ExitCode, f.Code.exit())
	}
	if len(r.Errors) == 0 && slices.Contains(Codes(r.Warnings), CodeUnsealed) {
		r.ExitCode = ExitDegraded
	}
	r.Verdict = r.word()
	r.Summary = r.sentence()
}

func (r *Report) word() Verdict {
	codes := Codes(r.Errors)
	onlyTrust := !slices.ContainsFunc(codes, func(c Code) bool { return !r.concernsTrust(c) })
	switch {
	case r.ExitCode == ExitPass:
		return Pass
	case r.ExitCode == ExitDegraded:
		return Unsealed
	case r.ExitCode == ExitNotRun || r.ExitCode == ExitUsage:
		return NotRun
	case slices.Contains(codes, CodeEmptyChain):
		return Empty
	case onlyTrust:
		return Untrusted
	case r.ExitCode == ExitSemantic:
		return Fail
	}
	return Broken
}

// concernsTrust reports whether an error says who signed and not what is wrong
// with the file. The reference has one name for both.
func (r *Report) concernsTrust(c Code) bool {
	switch c {
	case CodeUntrustedKey, CodeRevokedKey, CodeSignatureNeeded:
		return true
	case CodeSignatureInvalid:
		return r.Signature.State == keys.StateUntrusted || r.Signature.State == keys.StateRevoked
	}
	return false
}

func (r *Report) sentence() string {
	held := counted(r.Segments, "segment") + ", " + counted(r.SealCount, "sealed run") + ", signature " + string(r.Signature.State)
	switch r.Verdict {
	case Pass:
		return held + r.unchecked()
	case Unsealed:
		return held + "; nothing failed, but no run is sealed"
	}
	i := slices.IndexFunc(r.Errors, func(f Finding) bool { return f.Code.exit() == r.ExitCode })
	said := fmt.Sprintf("%s: %s", r.Errors[i].Code, r.Errors[i].Detail)
	if others := len(r.Errors) - 1; others > 0 {
		said += fmt.Sprintf(" (and %d more)", others)
	}
	return said
}

func counted(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// unchecked names what a passing report did not check though it could matter.
func (r *Report) unchecked() string {
	if slices.Contains(Codes(r.Warnings), CodeArtifactAbsent) {
		return "; the run snapshot was not at hand and not checked"
	}
	return ""
}
