package verifier

import (
	"errors"
	"slices"
	"strings"

	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/run"
	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
)

// Mode says by whose rules a bundle is judged.
type Mode string

const (
	Strict    Mode = "strict"
	Reference Mode = "reference"
)

// These errors are returned by [Options.Validate].
var (
	ErrArtifactWithoutRun = errors.New("a run snapshot needs the run id that it is for")
	ErrSignaturePolicy    = errors.New("a signature cannot be both required and optional")
	ErrUnknownMode        = errors.New("mode is neither strict nor reference")
	ErrUnknownOutcome     = errors.New("an outcome is open, succeeded, failed, cancelled or abandoned")
)

// Options say how to judge. The zero value is strict mode, unpinned, with
// nothing expected.
type Options struct {
	Mode Mode // "" is Strict

	// Trust is the list of trusted keys; nil: unpinned. Section 10.
	Trust *keys.TrustList
	// RequireSigned makes a missing signature an error, list or no list.
	RequireSigned bool
	// AllowUnsigned forgives a missing signature, and nothing else, although
	// there is a trust list.
	AllowUnsigned bool
	// RequireSteps makes steps_missing an error (strict mode).
	RequireSteps bool

	// RunID asks whether this run is sealed; compared as text, exactly as
	// given. Blank asks nothing.
	RunID string
	// Artifact is the run snapshot of RunID. nil: the seal must exist and the
	// report says artifact_absent.
	Artifact *segments.SealDocument

	// ExpectHead is the head that the chain, or the run of a trust bundle, must
	// have; nil: any.
	ExpectHead *segments.Digest
	// ExpectPlan is the plan commit id that the first and the last commit must
	// have, 64 lower-case hexadecimal digits; "": any. Commits to others between
	// them are a warning, other_plans.
	ExpectPlan string
	// ExpectOutcome is how the run of a trust bundle must have ended: open,
	// succeeded, failed, cancelled or abandoned; "": any. An evidence bundle has
	// no outcome, so that it is refused as bad_options.
	ExpectOutcome string
	// IntegrityOnly leaves the content of a trust bundle alone. The report says
	// that nothing checked it, and the exit code is 3 at best.
	IntegrityOnly bool
	// Domains are those that the content of a trust bundle can be executed in;
	// nil: all that this program has.
	Domains engine.Registry

	// Location is where the bundle was stored; nil: unknown. Strict mode.
	Location *Location

	// Progress is called now and then, from the calling goroutine.
	Progress func(Progress)
}

// Progress tells how far a verification got.
type Progress struct {
	Segments uint64 // of an evidence bundle; a trust bundle counts bytes alone
	Bytes    int64  // read from the input
}

// Validate refuses options that contradict each other.
func (o *Options) Validate() error {
	switch {
	case o.Mode != "" && o.Mode != Strict && o.Mode != Reference:
		return ErrUnknownMode
	case o.Artifact != nil && o.asked() == "":
		return ErrArtifactWithoutRun
	case o.RequireSigned && o.AllowUnsigned:
		return ErrSignaturePolicy
	case o.ExpectOutcome != "" && !slices.Contains(outcomes, run.Outcome(o.ExpectOutcome)):
		return ErrUnknownOutcome
	}
	return nil
}

// forEvidence names an option that only evidence bundles can answer to; "": none
// is set.
func (o *Options) forEvidence() string {
	for _, option := range []struct {
		set  bool
		name string
	}{
		{o.Mode == Reference, "reference mode"},
		{o.asked() != "", "a run id"},
		{o.ExpectPlan != "", "an expected plan"},
		{o.RequireSteps, "that every step was executed"},
	} {
		if option.set {
			return option.name
		}
	}
	return ""
}

// forBundles names an option that only trust bundles can answer to; "": none is
// set.
func (o *Options) forBundles() string {
	switch {
	case o.ExpectOutcome != "":
		return "an expected outcome"
	case o.IntegrityOnly:
		return "integrity alone"
	}
	return ""
}

// asked is the run id that is asked for; "": none.
func (o *Options) asked() string {
	if strings.TrimSpace(o.RunID) == "" {
		return ""
	}
	return o.RunID
}

// Location is what the place of a stored bundle says about its content
// (section 13).
type Location struct {
	Tenant     *string // nil: the place does not tell
	PromptHash string
	Session    string
	// FileName is the last part of the path. When it is 64 hexadecimal digits
	// and ".evidence.json" the digits must be the head. "": unknown.
	FileName string
}

// LocationOf reads a slash-separated path that ends in
// [tenants/{tenant}/]execute/{prompt_hash}/{session}/evidence/[{class}/]{file},
// or returns nil.
func LocationOf(path string) *Location {
	parts := strings.Split(path, "/")
	at := -1
	for i := range parts {
		if parts[i] == "execute" && i+4 < len(parts) && parts[i+3] == "evidence" {
			at = i
		}
	}
	if at < 0 || len(parts) > at+6 {
		return nil
	}
	loc := &Location{PromptHash: parts[at+1], Session: parts[at+2], FileName: parts[len(parts)-1]}
	if at >= 2 && parts[at-2] == "tenants" {
		loc.Tenant = &parts[at-1]
	}
	return loc
}
