package business_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/business"
	"github.com/chaind/chaind/engine/enginetest"
)

// TestComputedVectors: every question of the computed vectors, from umlauts to
// equal totals, gives the claims, verdicts, support and route computed there.
func TestComputedVectors(t *testing.T) {
	g, kb, cases := enginetest.Cases(t, "business")
	if len(cases) != 18 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		d, err := business.New(engine.ReferenceVersion).Decide(c.Question, g, kb)
		if err != nil {
			t.Errorf("%s: %v", c.Question, err)
			continue
		}
		if diff := cmp.Diff(c, enginetest.Decided(d)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.Question, diff)
		}
	}
}
