package sidecar

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/chaind/chaind/segments"
)

// chainBundle is a trust bundle of a chain, with a root of its own.
func chainBundle(chain string) Bundle {
	b := trustBundle(testBundleText + " of " + chain)
	b.Chain, b.Root = chain, segments.Sum([]byte(chain))
	return b
}

// Cases F03 and F05: chains and tenants whose names differ in case, or in what
// other programs replace, have evidence of their own; names that would have to be
// changed to be file names are refused.
func TestF03F05NamesStayApart(t *testing.T) {
	t.Parallel()
	apart := []string{"Run-1", "run-1", "RUN-1", "a_b", "a-b", "ab", "CON", "_CON", "con", "NUL", "-", "_", "__"}
	for backEnd, make := range backEnds {
		t.Run(backEnd, func(t *testing.T) {
			t.Parallel()
			b := make(t)
			s := openSidecars(t, b)
			for _, chain := range apart {
				if _, err := s.WriteBundle(t.Context(), chainBundle(chain)); err != nil {
					t.Fatalf("%s: %v", chain, err)
				}
				if chain == "_" {
					continue // no tenant's name
				}
				e, _ := testEvidence(Place{Tenant: chain, PromptHash: testPrompt, Session: testSession}, chain, false, runID(1))
				write(t, s, e)
			}
			for _, chain := range apart {
				want := chainBundle(chain)
				pointer, roots, err := s.BundleRoots(t.Context(), testPlace, chain)
				if err != nil || len(roots) != 1 || pointer == nil || *pointer != want.Root {
					t.Errorf("bundle of chain %s: %v, %v, %v", chain, pointer, roots, err)
				}
				if chain == "_" {
					continue
				}
				place := Place{Tenant: chain, PromptHash: testPrompt, Session: testSession}
				_, text := testEvidence(place, chain, false, runID(1))
				if found, err := s.ReadRun(t.Context(), place, runID(1)); err != nil || string(found.Bytes) != string(text) {
					t.Errorf("evidence of tenant %s is another's: %v", chain, err)
				}
			}
			before := fmt.Sprint(names(t, b, ""))
			for _, chain := range []string{"a:b", "a/b", `a\b`, "a b", "a.b", "..", "", "\u00e9", "a%3Ab", "a\x00b", strings.Repeat("a", 65)} {
				if _, err := s.WriteBundle(t.Context(), chainBundle(chain)); !errors.Is(err, ErrName) {
					t.Errorf("chain %q: %v", chain, err)
				}
				e, _ := testEvidence(testPlace, "x", false, runID(1))
				if e.Place.Tenant = chain; chain == "" {
					continue
				}
				if _, err := s.Write(t.Context(), e); !errors.Is(err, ErrName) {
					t.Errorf("tenant %q: %v", chain, err)
				}
			}
			if after := fmt.Sprint(names(t, b, "")); after != before {
				t.Errorf("a refused name left\n%s", after)
			}
		})
	}
}
