package business_test

import (
	"testing"

	"github.com/chaind/chaind/engine/business"
	"github.com/chaind/chaind/engine/enginetest"
)

// TestGoldComposed: the gold questions that mean composition, without a router
// in front.
func TestGoldComposed(t *testing.T) {
	graph, _ := enginetest.Corpus(t, enginetest.Read(t, "honest.tsb"))
	composed := 0
	for _, g := range enginetest.Golds(t, "business") {
		if g.Engine != "compose" {
			continue
		}
		composed++
		a, err := business.Compose(g.Question, graph)
		if err != nil {
			t.Errorf("%s: %v", g.File, err)
			continue
		}
		got := enginetest.Case{Refusal: a.Refusal}
		for _, c := range a.Claims {
			claim := enginetest.CaseClaim{Text: c.Text, Verified: true}
			for _, r := range c.Support {
				claim.Support = append(claim.Support, r.ID)
			}
			got.Claims = append(got.Claims, claim)
		}
		if missing := g.Missing(got); len(missing) > 0 {
			t.Errorf("%s lacks %q: %+v", g.File, missing, got)
		}
	}
	if composed < 6 {
		t.Errorf("only %d questions", composed)
	}
}
