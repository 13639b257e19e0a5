// Package enginetest reads the published bundles and the computed vectors of
// Tessera's domains for tests. No program imports it.
package enginetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/naive"
)

// Read returns a file of testdata/tessera.
func Read(tb testing.TB, name string) string {
	tb.Helper()
	for dir := "."; ; dir = filepath.Join(dir, "..") {
		text, err := os.ReadFile(filepath.Join(dir, "testdata", "tessera", name))
		if err == nil {
			return string(text)
		}
		if _, root := os.Stat(filepath.Join(dir, "go.mod")); root == nil {
			tb.Fatal(err)
		}
	}
}

// Parse reads a bundle.
func Parse(tb testing.TB, text string) *bundle.Bundle {
	tb.Helper()
	b, err := bundle.Parse(text)
	if err != nil {
		tb.Fatalf("parse bundle: %v", err)
	}
	return b
}

// Corpus returns the evidence of a bundle.
func Corpus(tb testing.TB, text string) (*engine.Graph, []engine.Record) {
	tb.Helper()
	c, err := engine.ReadClosure(Parse(tb, text))
	if err != nil {
		tb.Fatalf("read closure: %v", err)
	}
	return c.Graph, c.KB
}

// Graph builds the evidence whose graph is a plain value, with the records of
// its nodes as knowledge base.
func Graph(tb testing.TB, graph any) (*engine.Graph, []engine.Record) {
	tb.Helper()
	records := []any{}
	nodes, _ := naive.At(graph, "nodes").([]any)
	for _, n := range nodes {
		records = append(records, naive.At(n, "record"))
	}
	doc := map[string]any{
		"format":           map[string]any{"name": "tessera-trust-bundle", "major": naive.Number("1"), "minor": naive.Number("0")},
		"engine":           map[string]any{},
		"result":           map[string]any{},
		"action":           nil,
		"evidence_closure": map[string]any{"kind": bundle.KindFull, "graph": graph, "kb": map[string]any{"records": records}},
	}
	naive.Seal(doc)
	return Corpus(tb, naive.File(doc))
}

// Case is a question of the computed vectors and what the reference's rules
// make of it.
type Case struct {
	Question, Kind, Reason string
	Refusal                string // "": it has claims
	Claims                 []CaseClaim
}

// CaseClaim is a claim with its verdict and the ids of its support, sorted.
type CaseClaim struct {
	Text     string
	Verified bool
	Support  []string
}

// Vectors returns the computed vectors.
func Vectors(tb testing.TB) map[string]any {
	tb.Helper()
	doc, err := naive.Parse(Read(tb, "domains-vectors.json"))
	if err != nil {
		tb.Fatal(err)
	}
	return doc
}

// Cases returns the evidence and the questions that the vectors have of a domain.
func Cases(tb testing.TB, domain string) (*engine.Graph, []engine.Record, []Case) {
	tb.Helper()
	doc := Vectors(tb)
	var cases []Case
	list, _ := naive.At(doc, domain, "cases").([]any)
	for _, item := range list {
		c := Case{Question: text(item, "question"), Kind: text(item, "route", "kind"), Reason: text(item, "route", "reason"), Refusal: text(item, "refusal")}
		claims, _ := naive.At(item, "claims").([]any)
		for _, v := range claims {
			c.Claims = append(c.Claims, CaseClaim{text(v, "text"), naive.At(v, "verified") == true, Texts(naive.At(v, "support"))})
		}
		cases = append(cases, c)
	}
	if len(cases) == 0 {
		tb.Fatalf("no cases of domain %q", domain)
	}
	g, kb := Graph(tb, naive.At(doc, domain, "graph"))
	return g, kb, cases
}

func text(v any, path ...any) string {
	s, _ := naive.At(v, path...).(string)
	return s
}

// Texts returns the strings of a list.
func Texts(v any) []string {
	var out []string
	list, _ := v.([]any)
	for _, item := range list {
		s, _ := item.(string)
		out = append(out, s)
	}
	return out
}

// Decided returns what a decision says, in the form of a Case.
func Decided(d *engine.Decision) Case {
	out := Case{Question: d.Question, Kind: d.Route.Kind, Reason: d.Route.Reason, Refusal: d.Refusal}
	for i := range d.Claims {
		c := CaseClaim{Text: d.Claims[i].Text, Verified: d.Claims[i].Verified}
		for _, r := range d.Claims[i].Support {
			c.Support = append(c.Support, r.ID)
		}
		out.Claims = append(out.Claims, c)
	}
	return out
}
