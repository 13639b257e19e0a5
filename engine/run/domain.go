package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chaind/chaind/engine"
)

// Names that bundles of this domain are sealed under.
const (
	Name     = "evidence-run"
	Version  = "chaind-run-2" // of what is sealed now
	Version1 = "chaind-run-1" // of what was sealed before; see Compatibility
)

// The questions that the domain answers.
const (
	QuestionRun          = "What does the evidence establish about this run?" // all claims; the one that is sealed by default
	QuestionOutcome      = "How did this run end?"
	QuestionPlan         = "What plan was committed for this run?"
	QuestionSteps        = "Which steps of this run were executed?"
	QuestionRequests     = "How many requests did this run issue?"
	QuestionCompleteness = "Is the record of this run complete?"
)

// questions are the questions and the labels of the claims that answer them.
var questions = []struct {
	text   string
	kind   string // of the route
	labels []string
}{
	{QuestionRun, "run", nil},
	{QuestionOutcome, "outcome", []string{"Outcome: ", "Runs: "}},
	{QuestionPlan, "plan", []string{"Outcome: ", "Intent: ", "Plan: "}},
	{QuestionSteps, "steps", []string{"Outcome: ", "Steps: ", "Attempts: "}},
	{QuestionRequests, "requests", []string{"Outcome: ", "Requests: "}},
	{QuestionCompleteness, "completeness", []string{"Outcome: ", "Chain: ", "Producer: ", labelIntake}},
}

// Questions lists the questions that the domain answers, the default one first.
func Questions() []string {
	out := make([]string, len(questions))
	for i := range questions {
		out[i] = questions[i].text
	}
	return out
}

// Domain is the domain that bundles are sealed under now.
func Domain() *engine.Domain { return versions[0].domain() }

// Domains are all versions of the domain, for a registry, the one that bundles are
// sealed under now first.
func Domains() []*engine.Domain {
	out := make([]*engine.Domain, len(versions))
	for i := range versions {
		out[i] = versions[i].domain()
	}
	return out
}

var errNotPacked = errors.New("the graph is not one that packages a run")

// route answers a question with the claims that it asks for and, so that no
// narrow question hides it, every claim that does not hold.
func (v *version) route(question string, g *engine.Graph, kb []engine.Record) (*engine.Answer, error) {
	e := v.derive(g)
	if len(e.model.faults) > 0 {
		return nil, fmt.Errorf("%w: %s", errNotPacked, e.model.faults[0].detail)
	}
	if !isRecords(kb, g.Nodes) {
		return nil, fmt.Errorf("%w: the kb is not the records of the nodes, in their order", errNotPacked)
	}
	for _, q := range questions {
		if q.text == question {
			return answer(e, g, q.kind, q.labels), nil
		}
	}
	return &engine.Answer{
		Route:   engine.Route{Kind: "refused", Reason: "not one of the questions of this domain"},
		Refusal: "Only these questions are answered: " + strings.Join(Questions(), " "),
	}, nil
}

func answer(e *evidence, g *engine.Graph, kind string, labels []string) *engine.Answer {
	a := &engine.Answer{Route: engine.Route{Kind: kind, Reason: "recomputed from " + plural(len(g.Nodes), "record") + " of one run"}}
	for i := range shapes {
		c := e.claims[shapes[i].label]
		if labels != nil && !slices.Contains(labels, shapes[i].label) && c.holds {
			continue
		}
		claim := engine.Claim{Text: c.text.String()}
		for _, id := range c.cites {
			claim.Support = append(claim.Support, &g.Node(id).Record)
		}
		a.Claims = append(a.Claims, claim)
	}
	return a
}

func isRecords(kb []engine.Record, nodes []engine.Node) bool {
	if len(kb) != len(nodes) {
		return false
	}
	for i := range kb {
		a, b := &kb[i], &nodes[i].Record
		if a.ID != b.ID || a.Source != b.Source || a.IngestedAt != b.IngestedAt || a.Text != b.Text ||
			a.Locator.Kind != b.Locator.Kind || !slices.Equal(a.Locator.Parts, b.Locator.Parts) {
			return false
		}
	}
	return true
}
