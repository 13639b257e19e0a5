package business

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/text"
)

const (
	// Name is the name of the domain.
	Name = "business"

	// Version is the engine version of the bundles that we write.
	Version = "chaind-business-1"

	hits = 5 // of a lookup
)

// New returns the domain under an engine version: Version, or
// engine.ReferenceVersion for the bundles of the reference. Router and grammars
// are the same.
func New(version string) *engine.Domain {
	return &engine.Domain{Name: Name, Version: version, Grammars: grammars(), Route: route}
}

func route(question string, g *engine.Graph, kb []engine.Record) (*engine.Answer, error) {
	b := engine.Derived(g, open)
	r, err := b.read(question)
	if err != nil {
		return nil, err
	}
	switch {
	case len(r.named) >= 2:
		reason := fmt.Sprintf("names %d entities (%s) — multi-step", len(r.named), strings.Join(names(r.named), ", "))
		return routed("multi", reason)(b.reason(question, r))
	case asksForRanking(question):
		return routed("multi", "asks for a ranking — multi-step")(b.reason(question, r))
	case len(r.named) == 1:
		reason := fmt.Sprintf("names one entity (%s) — cross-source composition", r.named[0].name)
		return routed("entity", reason)(b.compose(r))
	}
	about, err := r.aboutSeveral()
	if err != nil {
		return nil, err
	}
	if about {
		candidates := strings.Join(slices.Compact(r.candidates()), " and ")
		reason := fmt.Sprintf("ambiguous entity reference (%s) — refuse to guess, as cross-source composition does", candidates)
		return routed("entity", reason)(b.compose(r))
	}
	return engine.Lookup(question, kb, hits, engine.Route{Kind: "lookup", Reason: "no entity named — lexical lookup"})
}

// routed gives an answer the route that led to it.
func routed(kind, reason string) func(*engine.Answer, error) (*engine.Answer, error) {
	return func(a *engine.Answer, err error) (*engine.Answer, error) {
		if err != nil {
			return nil, err
		}
		a.Route = engine.Route{Kind: kind, Reason: reason}
		return a, nil
	}
}

func asksForRanking(question string) bool {
	lower := engine.Lower(question)
	for _, word := range []string{"highest", "largest", "biggest", "greatest", "maximum", "most", "top"} {
		if text.HasWord(lower, word) {
			return true
		}
	}
	return false
}

// refusal is an answer that gives its reason and no claims.
func refusal(format string, args ...any) (*engine.Answer, error) {
	return &engine.Answer{Refusal: fmt.Sprintf(format, args...)}, nil
}
