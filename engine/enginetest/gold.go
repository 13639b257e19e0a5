package enginetest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaind/chaind/engine/naive"
)

// Gold is a question with what its answer must contain.
type Gold struct {
	File, Question string
	Engine         string // how the question is meant to be answered: "route", "compose", …
	Refuse         bool
	Support, Facts []string
}

// Golds returns the gold questions of a domain, in the order of their files.
func Golds(tb testing.TB, domain string) []Gold {
	tb.Helper()
	dir := "testdata/tessera/gold/" + domain
	for range 4 {
		if _, err := os.Stat(dir); err == nil {
			break
		}
		dir = filepath.Join("..", dir)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no gold questions of %q: %v", domain, err)
	}
	var out []Gold
	for _, f := range files {
		doc, err := naive.Parse(Read(tb, filepath.Join("gold", domain, filepath.Base(f))))
		if err != nil {
			tb.Fatalf("%s: %v", f, err)
		}
		out = append(out, Gold{
			File: filepath.Base(f), Question: text(doc, "question"), Engine: text(doc, "engine"), Refuse: text(doc, "kind") == "refuse",
			Support: Texts(doc["expected_support"]), Facts: Texts(doc["expected_facts"]),
		})
	}
	return out
}

// Missing lists what a gold question demands and an answer lacks.
func (g *Gold) Missing(c Case) []string {
	var out []string
	if g.Refuse != (len(c.Claims) == 0) {
		out = append(out, "the right mode")
	}
	var texts, support []string
	for _, claim := range c.Claims {
		texts = append(texts, claim.Text)
		support = append(support, claim.Support...)
		if !claim.Verified {
			out = append(out, "verification of "+claim.Text)
		}
	}
	all := strings.Join(texts, "\n")
	for _, fact := range g.Facts {
		if !strings.Contains(all, fact) {
			out = append(out, "fact "+fact)
		}
	}
	for _, id := range g.Support {
		if !slices.Contains(support, id) {
			out = append(out, "support "+id)
		}
	}
	return out
}
