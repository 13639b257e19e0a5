package verifier

import (
	"cmp"
	"slices"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
)

// Report is all that a verification found. Texts taken from elsewhere are raw in
// Scope, Plan, RunSeal.RunID, Finding.StepID, Finding.Path, Finding.Where, Signature.PublicKey,
// Signature.Comment and Content: pass them through [Escape] before printing them. Every
// Detail and the Summary have been.
type Report struct {
	Kind Kind
	Mode Mode

	Verdict  Verdict
	Summary  string // one sentence
	ExitCode int

	DeclaredHead *segments.Digest // nil: absent or not decoded
	ComputedHead *segments.Digest // nil: no segments, a broken link, or not decoded
	Segments     uint64           // segments read
	Scope        *segments.Scope  // nil: not decoded
	Plan         string           // plan commit id of the last commit; "": none
	Signature    Signature
	SealCount    uint64
	Seals        []RunSeal // the first ones

	Checks    []Check
	Errors    []Finding // sorted by code, then by position
	Warnings  []Finding
	Reference *Outcomes // reference mode only
	Content   *Content  // trust bundles that could be read only
}

// Signature is what became of the signature.
type Signature struct {
	State     keys.State // "" when the file did not decode
	PublicKey string     // as the file writes it; "" when unsigned
	KeyID     string     // see keys.PublicKey.ID; "" when it is no key
	Comment   string     // of the trust list's entry
}

// RunSeal is one run_sealed segment.
type RunSeal struct {
	Seq    uint64
	RunID  string
	Digest segments.Digest
}

// Status says what became of a check.
type Status string

const (
	StatusPass          Status = "pass"
	StatusWarn          Status = "warn" // ran; what it found does not reject
	StatusFail          Status = "fail"
	StatusSkipped       Status = "skipped"        // could not run, see the detail
	StatusNotApplicable Status = "not_applicable" // there was nothing to check or nobody asked
)

// Check is one check of a mode's fixed list.
type Check struct {
	Name   string
	Status Status
	Detail string
}

// Finding is one error or warning.
type Finding struct {
	Code   Code
	Detail string  // one sentence, safe for a terminal
	Seq    *uint64 // stored seq of the segment; nil: no single segment
	Index  *uint64 // its position in the array
	StepID string
	Path   string // JSON pointer; "": none
	Offset *int64 // bytes into the file
	More   uint64 // further findings of this code that are not listed
	Where  string // of a trust bundle: leaf, or path such as result.claims[0]; "": none
}

// Codes lists the distinct codes of findings, sorted.
func Codes(findings []Finding) []Code {
	codes := make([]Code, 0, len(findings))
	for _, f := range findings {
		codes = append(codes, f.Code)
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// findings collects errors or warnings, a bounded number of each code.
type findings struct {
	listed []Finding
	counts map[Code]uint64
}

func (f *findings) add(finding Finding) {
	if f.counts == nil {
		f.counts = make(map[Code]uint64)
	}
	f.counts[finding.Code]++
	if f.counts[finding.Code] <= maxFindings {
		f.listed = append(f.listed, finding)
	}
}

// sorted gives the list by code, in order of discovery within a code, with the
// number of findings left out noted on the last one of the code.
func (f *findings) sorted() []Finding {
	list := slices.Clone(f.listed)
	slices.SortStableFunc(list, func(a, b Finding) int { return cmp.Compare(a.Code, b.Code) })
	for i := range list {
		last := i+1 == len(list) || list[i+1].Code != list[i].Code
		if n := f.counts[list[i].Code]; last && n > maxFindings {
			list[i].More = n - maxFindings
		}
	}
	return list
}
