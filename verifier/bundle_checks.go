package verifier

import (
	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
)

// Codes that only reports about trust bundles have. The others are those of the
// rooms below: bundle.Code for the envelope, engine.Code for the content.
const (
	CodeNotCanonical    Code = "not_canonical"     // warning: layout, order or escapes differ from the canonical text
	CodeWithheld        Code = "withheld"          // warning: parts of the evidence are withheld
	CodeClaimWithheld   Code = "claim_withheld"    // warning: a claim rests on withheld evidence
	CodeClaimUnverified Code = "claim_unverified"  // warning: recorded as not verified, and does not re-derive
	CodeNotExecuted     Code = "content_unchecked" // warning: nothing checked the content, as the caller wished
	CodeMidway          Code = "declared_midway"   // warning: complete by an earlier rule, under which a declaration before the end was enough
	CodeExpectedOutcome Code = "expected_outcome_mismatch"
)

// bundleChecks lists the checks of a trust bundle in the order of a report,
// with what a passed one has shown.
var bundleChecks = []check{
	{name: "options", pass: "they agree"},
	{name: "read", pass: "without an error"},
	{name: "format", pass: "the file is a trust bundle, read strictly"},
	{name: "bytes", pass: "byte for byte the canonical text"},
	{name: "sections", pass: "no member that the manifest does not cover"},
	{name: "manifest", pass: "a leaf for each part, and no other"},
	{name: "leaves"},
	{name: "root"},
	{name: "signature"},
	{name: "trust"},
	{name: "withheld", pass: "nothing"},
	{name: "content", pass: "result and evidence have the form that execution needs"},
	{name: "engine"},
	{name: "result", pass: "grounded or refused, and of the sealed domain"},
	{name: "evidence", pass: "whatever is named is there"},
	{name: "upstreams"},
	{name: "claims"},
	{name: "answer"},
	{name: "action"},
	{name: "expected_head", pass: "as expected"},
	{name: "expected_outcome", pass: "as expected"},
}

// envelopeCheck names the check that an envelope's finding belongs to.
func envelopeCheck(code bundle.Code) string {
	switch code {
	case bundle.UnexpectedMember:
		return "sections"
	case bundle.LeafMismatch:
		return "leaves"
	case bundle.RootMismatch:
		return "root"
	}
	return "manifest"
}

// contentCheck names the check that a structural finding belongs to. Codes that
// are not listed are those of a domain's actions.
func contentCheck(code engine.Code) string {
	switch code {
	case engine.InvalidMode, engine.OtherDomain:
		return "result"
	case engine.WrongClosureKind, engine.DanglingReference, engine.MoreFindings:
		return "evidence"
	case engine.ReexecutionFailed:
		return "answer"
	case engine.UpstreamsMissing, engine.UpstreamMalformed, engine.UpstreamFails, engine.NotACitation, engine.CitesUnusable,
		engine.CitesNoClaim, engine.CitedTextAltered, engine.CitesUnverified, engine.CitesUnderived, engine.OtherCorpus:
		return "upstreams"
	}
	return "action"
}

// close sums up. stopped says why the checks without a word of their own did
// not run; "": all ran.
func (t *trial) close(stopped string) *Report {
	r := t.report
	r.Checks = make([]Check, len(bundleChecks))
	halted := false
	for i, c := range bundleChecks {
		row, known := t.rows[c.name]
		switch {
		case known:
			halted = halted || stopped != "" && row.Status == StatusFail
		case halted || c.pass == "":
			row = Check{c.name, StatusSkipped, stopped}
		default:
			row = Check{c.name, StatusPass, c.pass}
		}
		r.Checks[i] = row
	}
	r.Errors, r.Warnings = t.errors.sorted(), t.warnings.sorted()
	t.conclude()
	return r
}
