package domains_test

import (
	"slices"
	"testing"

	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/enginetest"
	"github.com/chaind/chaind/engine/naive"
)

// redact withholds every node that is not kept, and the knowledge base.
func redact(text string, keep func(doc map[string]any) []string) map[string]any {
	doc := naive.MustParse(text)
	kept := keep(doc)
	nodes := naive.At(doc, "evidence_closure", "graph", "nodes").([]any)
	for i, n := range nodes {
		if id := naive.At(n, "record", "id").(string); !slices.Contains(kept, id) {
			nodes[i] = map[string]any{"redacted": true, "record": map[string]any{"id": id}}
		}
	}
	naive.Put(doc, map[string]any{"redacted": true}, "evidence_closure", "kb")
	return doc
}

// cited are the ids that the claims cite.
func cited(doc map[string]any) []string {
	var out []string
	for _, c := range naive.At(doc, "result", "claims").([]any) {
		for _, s := range naive.At(c, "support").([]any) {
			out = append(out, naive.At(s, "id").(string))
		}
	}
	return out
}

// TestHonestRedaction: where the reference calls an honest redaction a failure,
// since a claim needs more than what it cites, it is degraded here, and such a
// claim never passes.
func TestHonestRedaction(t *testing.T) {
	honest := enginetest.Read(t, "honest.tsb")
	withCustomers := func(doc map[string]any) []string {
		kept := cited(doc)
		for _, n := range naive.At(doc, "evidence_closure", "graph", "nodes").([]any) {
			if naive.At(n, "kind") == "I_Customer" {
				kept = append(kept, naive.At(n, "record", "id").(string))
			}
		}
		return kept
	}
	for name, c := range map[string]struct {
		file      string
		keep      func(map[string]any) []string
		evaluated []bool
		rederived int
	}{
		"superlative":                {ask(t, honest, engine.Question{Text: "Which customer has the greatest total order value in EUR?"}), cited, []bool{false}, 0},
		"comparison, no hops":        {honest, cited, []bool{true, true, false}, 2},
		"comparison, customers kept": {honest, withCustomers, []bool{true, true, true}, 3},
	} {
		j := judge(t, naive.File(redact(c.file, c.keep)))
		if j.Verdict() != engine.Degraded || len(j.Integrity.Findings) > 0 || len(j.Failures()) > 0 || len(j.Claims) != len(c.evaluated) {
			t.Errorf("%s: %s: %s", name, j.Verdict(), j.Cause())
			continue
		}
		rederived := 0
		for i, claim := range j.Claims {
			if claim.Evaluated != c.evaluated[i] {
				t.Errorf("%s: claim %d: %+v", name, i, claim)
			}
			if claim.Rederived {
				rederived++
			}
		}
		if rederived != c.rederived {
			t.Errorf("%s: %d claims re-derived", name, rederived)
		}
	}
}

// TestForgedRedaction: withholding does not cover a forgery of what is visible.
func TestForgedRedaction(t *testing.T) {
	honest := enginetest.Read(t, "honest.tsb")
	for name, c := range map[string]struct {
		edit func(map[string]any)
		code engine.Code
	}{
		"total":   {set("'Nordwind Logistik GmbH': total net order value across 3 order(s): EUR 88,000.00.", "result", "claims", 0, "text"), engine.ClaimUnsupported},
		"support": {set("Sales document 1: EUR 1.00", "result", "claims", 0, "support", 0, "text"), engine.SupportAltered},
		"amount":  {editValue, engine.ClaimUnsupported},
	} {
		doc := redact(honest, cited)
		c.edit(doc)
		naive.Seal(doc)
		if j := judge(t, naive.File(doc)); j.Verdict() != engine.Fail || !slices.Contains(allCodes(j), c.code) || len(j.Integrity.Findings) > 0 {
			t.Errorf("%s: %s, %v", name, j.Verdict(), allCodes(j))
		}
	}
}

// TestPublishedRedaction: the published redaction keeps what is cited and one
// hop around, and everything visible re-derives.
func TestPublishedRedaction(t *testing.T) {
	public := naive.MustParse(enginetest.Read(t, "honest-public.tsb"))
	var kept []string
	for _, n := range naive.At(public, "evidence_closure", "graph", "nodes").([]any) {
		if m := n.(map[string]any); m["redacted"] == nil {
			kept = append(kept, naive.At(n, "record", "id").(string))
		}
	}
	if len(kept) != 27 {
		t.Errorf("%d nodes are kept", len(kept))
	}
	mine := redact(enginetest.Read(t, "honest.tsb"), func(map[string]any) []string { return kept })
	if naive.File(mine) != enginetest.Read(t, "honest-public.tsb") {
		t.Error("the published redaction is another file")
	}
}
