package run

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chaind/chaind/engine"
)

// claim is a sentence about a chain, made from its model.
type claim struct {
	text  strings.Builder
	cites []string // record ids, without repeats
	holds bool
}

// newClaim starts with the label and the state, "Outcome: succeeded", and
// cites the chain node, as every claim does.
func newClaim(label, format string, args ...any) *claim {
	c := &claim{cites: []string{kindChain}, holds: true}
	c.text.WriteString(label)
	fmt.Fprintf(&c.text, format, args...)
	return c
}

// say adds to the text.
func (c *claim) say(format string, args ...any) { fmt.Fprintf(&c.text, format, args...) }

// fail adds to the text and makes the claim one that does not hold.
func (c *claim) fail(format string, args ...any) {
	c.holds = false
	c.say(format, args...)
}

func (c *claim) cite(id string) {
	if !slices.Contains(c.cites, id) {
		c.cites = append(c.cites, id)
	}
}

// shape is a claim that every chain has, holding or not.
type shape struct {
	id    string // of its grammar
	label string // that its text starts with, and no other's does
	rests area   // whose faults it does not survive
	make  func(*model) *claim
}

// labelIntake is that of the claim in which the versions of the domain differ.
const labelIntake = "Intake: "

// shapes are the claims in the order of an answer.
var shapes = []shape{
	{"chaind.run.outcome", "Outcome: ", areaChain, (*model).outcome},
	{"chaind.run.chain_intact", "Chain: ", areaSegments | areaShape, (*model).chain},
	{"chaind.run.intent_bound", "Intent: ", areaIntent, (*model).intent},
	{"chaind.run.plan_committed", "Plan: ", areaPlan, (*model).plan},
	{"chaind.run.steps_in_order", "Steps: ", areaParsed, (*model).steps},
	{"chaind.run.attempts", "Attempts: ", areaAttempts, (*model).attempted},
	{"chaind.run.requests_issued", "Requests: ", 0, (*model).requests},
	{"chaind.run.runs_sealed", "Runs: ", areaArtifact, (*model).runs},
	{"chaind.run.producer_agrees", "Producer: ", 0, (*model).producer},
	{"chaind.run.complete_at_intake", labelIntake, areaIntake, (*model).complete},
}

// grammar decides the claims of a shape: the claim is made anew from the whole
// graph, and must come out the same, with the same support, and hold.
func (s *shape) grammar(v *version) engine.Grammar {
	return engine.Grammar{ID: s.id, WholeGraph: true, Judge: func(c *engine.Claim, g *engine.Graph) (engine.Opinion, error) {
		if !strings.HasPrefix(c.Text, s.label) {
			return engine.NoOpinion, nil
		}
		e := v.derive(g)
		if e.model.faulty(s.rests) {
			return engine.Unsupported, nil
		}
		made := e.claims[s.label]
		if !made.holds || c.Text != made.text.String() || !cited(c.Support, made.cites) {
			return engine.Unsupported, nil
		}
		return engine.Supported, nil
	}}
}

// cited says that the records are those with these ids, in any order.
func cited(support []*engine.Record, ids []string) bool {
	if len(support) != len(ids) {
		return false
	}
	for _, r := range support {
		if !slices.Contains(ids, r.ID) {
			return false
		}
	}
	return true
}

// evidence is what router and grammars share of one graph.
type evidence struct {
	model  *model
	claims map[string]*claim // by label; none when the chain node cannot be read
}

func extract(g *engine.Graph) *evidence {
	e := &evidence{read(g), map[string]*claim{}}
	if e.model.headless {
		return e
	}
	for i := range shapes {
		e.claims[shapes[i].label] = shapes[i].make(e.model)
	}
	return e
}
