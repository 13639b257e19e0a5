package run

import (
	"errors"
	"fmt"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
)

// These errors are returned by [Summarize].
var (
	ErrOtherDomain   = errors.New("bundle is of another domain or engine version")
	ErrNotSummarized = errors.New("bundle does not package a whole run")
)

// Summary says in a few words what the evidence of a bundle amounts to. All of
// it is recomputed from the evidence, and worth as much as the verdict on the
// bundle: it means nothing for a bundle that fails.
type Summary struct {
	Word       string // outcome, or "empty" for a run without any segment: the first word of a verdict
	Tenant     string
	PromptHash string
	Session    string
	Chain      string
	Outcome    Outcome
	Reason     string // "": none
	Conformity Conformity
	Coverage   Coverage
	Midway     bool // complete as [Version1] says it: nothing that the producer declared covers the end
	Segments   uint64
	Head       string   // recorded; "" without segments
	RunIDs     []string // distinct run ids of the run seals, in order
	Unmet      []string // texts of the claims that do not hold
}

// Summarize reads the evidence of a run bundle. It checks neither envelope nor
// recorded answer: the error is [ErrOtherDomain], or wraps [ErrNotSummarized]
// when the evidence is not what [Pack] makes, withheld nodes included, or is a
// *bundle.FormatError.
func Summarize(b *bundle.Bundle) (*Summary, error) {
	version := b.Engine.Get("tessera_version").Text()
	if b.Engine.Get("domain").Text() != Name || versionOf(version) == nil {
		return nil, ErrOtherDomain
	}
	closure, err := engine.ReadClosure(b)
	if err != nil {
		return nil, err
	}
	return SummarizeGraph(closure.Graph, version)
}

// SummarizeGraph is [Summarize] for the evidence, read already, of a bundle of this
// domain under an engine version. What was derived from the graph to judge its
// claims is not derived again.
func SummarizeGraph(g *engine.Graph, engineVersion string) (*Summary, error) {
	v := versionOf(engineVersion)
	if v == nil {
		return nil, ErrOtherDomain
	}
	e := v.derive(g)
	if len(e.model.faults) > 0 {
		return nil, fmt.Errorf("%w: %s", ErrNotSummarized, e.model.faults[0].detail)
	}
	return e.summary(), nil
}

func (e *evidence) summary() *Summary {
	m := e.model
	s := &Summary{
		Word: string(m.facts.Outcome), Tenant: m.facts.Scope.TenantID, PromptHash: m.facts.Scope.PromptHash,
		Session: m.facts.Scope.ExecuteSessionID, Chain: m.facts.Name,
		Outcome: m.facts.Outcome, Reason: m.facts.Reason, Conformity: m.conformity(), Segments: uint64(len(m.segments)),
	}
	s.Coverage, _ = m.coverage()
	s.Midway = m.midway && s.Coverage == Complete && !m.coversEnd(len(m.numbers()) > 0)
	if m.facts.Head != nil {
		s.Head = m.facts.Head.String()
	}
	if len(m.segments) == 0 {
		s.Word = "empty"
	}
	s.RunIDs = m.runIDs()
	for i := range shapes {
		if c := e.claims[shapes[i].label]; !c.holds {
			s.Unmet = append(s.Unmet, c.text.String())
		}
	}
	return s
}
