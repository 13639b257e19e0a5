package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chaind/chaind/bundle"
)

// Domain is a field in which questions can be answered, and re-answered, from
// packaged evidence.
type Domain struct {
	Name     string    // engine.domain
	Version  string    // engine.tessera_version: names router and grammars, not the program
	Grammars []Grammar // asked in this order

	// Route answers a question. An error says that the evidence cannot be
	// evaluated at all; a question that it does not answer is a refusal.
	Route func(question string, g *Graph, kb []Record) (*Answer, error)

	// CheckAction compares the action section, an object, with the one that
	// the decision yields, and returns what differs. Nil: the domain has no
	// actions, and any is a finding.
	CheckAction func(action bundle.Value, d *Decision, g *Graph) ([]Finding, error)

	// DraftAction returns the canonical action section for a kind of action that
	// follows from a decision. It fails with ErrNoAction or ErrActionWithheld. Nil:
	// the domain has no actions.
	DraftAction func(kind string, d *Decision) ([]byte, error)
}

// Shapes lists the ids of the grammars: engine.claim_shapes.
func (d *Domain) Shapes() []string {
	ids := make([]string, len(d.Grammars))
	for i := range d.Grammars {
		ids[i] = d.Grammars[i].ID
	}
	return ids
}

// ReferenceVersion is the engine version of all files that Tessera published.
const ReferenceVersion = "0.0.0"

// Registry lists the domains that can be re-derived. A name may occur more
// than once, with different versions or grammars.
type Registry []*Domain

// Find returns the domain that a bundle was sealed by, or the reason why its
// content is not evaluable here.
func (r Registry) Find(b *bundle.Bundle) (*Domain, *Finding) {
	return r.find(b.Engine.Get("domain").Text(), b.Engine.Get("tessera_version").Text(), sealedShapes(b))
}

// find returns the domain with a name, version and list of shapes, or the
// reason why there is none.
func (r Registry) find(name, version string, shapes []string) (*Domain, *Finding) {
	var known, versions []string
	var sameVersion []*Domain
	for _, d := range r {
		known = appendNew(known, d.Name)
		if d.Name != name {
			continue
		}
		versions = appendNew(versions, d.Version)
		if d.Version == version {
			sameVersion = append(sameVersion, d)
		}
	}
	for _, d := range sameVersion {
		if slices.Equal(d.Shapes(), shapes) {
			return d, nil
		}
	}
	switch {
	case len(versions) == 0:
		return nil, notEvaluable(UnknownDomain, "the domain %s is unknown here; known: %s", bundle.Quote(name), strings.Join(known, ", "))
	case len(sameVersion) == 0:
		return nil, notEvaluable(OtherVersion, "sealed under engine version %s of domain %s; installed: %s", bundle.Quote(version), bundle.Quote(name), strings.Join(versions, ", "))
	}
	return nil, notEvaluable(OtherShapes, "sealed with the claim shapes [%s]; installed under the same version: [%s]", bundle.QuoteList(shapes), bundle.QuoteList(sameVersion[0].Shapes()))
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

func notEvaluable(code Code, format string, args ...any) *Finding {
	return &Finding{Code: code, Where: "engine", Detail: fmt.Sprintf(format, args...)}
}

// Code, Finding: as package bundle has them; the codes below are of the
// content rather than of the envelope.
type (
	Code    = bundle.Code
	Finding = bundle.Finding
)

// Codes of a content that was not re-derived.
const (
	UnknownDomain Code = "unknown_domain"
	OtherVersion  Code = "other_engine_version"
	OtherShapes   Code = "other_claim_shapes"
	NoGraph       Code = "no_rederivable_graph"
)

// Codes of findings about the content.
const (
	InvalidMode       Code = "invalid_mode" // grounded, refused, refusal and claims do not go together
	OtherDomain       Code = "other_domain" // the result names another domain than the engine section
	WrongClosureKind  Code = "wrong_closure_kind"
	DanglingReference Code = "dangling_reference"
	MoreFindings      Code = "more_findings"
	ReexecutionFailed Code = "reexecution_failed"
	ClaimUnsupported  Code = "claim_unsupported" // recorded as verified, does not re-derive
	ClaimAltered      Code = "claim_altered"     // recorded as unverified, re-derives
	SupportAltered    Code = "support_altered"   // quotes its record differently
	AnswerMode        Code = "answer_mode"       // refusal and grounded answer swapped
	AnswerRefusal     Code = "answer_refusal"
	AnswerClaims      Code = "answer_claims"
	AnswerMetadata    Code = "answer_metadata"
	AnswerDerived     Code = "answer_derived" // only render strings, all_verified or extra members
	RankingTie        Code = "ranking_tie"    // equal but for a tie that is not reproducible
	ActionMalformed   Code = "action_malformed"
	ActionUnknown     Code = "action_unknown"
)

// Codes of findings about a chain.
const (
	UpstreamsMissing  Code = "upstreams_missing"
	UpstreamMalformed Code = "upstream_malformed"
	UpstreamFails     Code = "upstream_fails"
	NotACitation      Code = "not_a_citation"
	CitesUnusable     Code = "cites_unusable_upstream"
	CitesNoClaim      Code = "cites_no_claim"
	CitedTextAltered  Code = "cited_text_altered"
	CitesUnverified   Code = "cites_unverified_claim"
	CitesUnderived    Code = "cites_underived_claim"
	OtherCorpus       Code = "other_corpus"
)
