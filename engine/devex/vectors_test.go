package devex_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/devex"
	"github.com/chaind/chaind/engine/enginetest"
)

// TestComputedVectors: every question of the computed vectors, from fix chains to
// ambiguous services, gives the claims, verdicts, support and route computed there.
func TestComputedVectors(t *testing.T) {
	g, kb, cases := enginetest.Cases(t, "devex")
	if len(cases) != 14 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		d, err := devex.New(devex.Name, engine.ReferenceVersion).Decide(c.Question, g, kb)
		if err != nil {
			t.Errorf("%s: %v", c.Question, err)
			continue
		}
		if diff := cmp.Diff(c, enginetest.Decided(d)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.Question, diff)
		}
	}
}
