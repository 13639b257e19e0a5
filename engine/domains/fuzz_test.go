package domains_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/business"
	"github.com/chaind/chaind/engine/devex"
	"github.com/chaind/chaind/engine/domains"
	"github.com/chaind/chaind/engine/enginetest"
	"github.com/chaind/chaind/engine/naive"
)

// small are the corpora of the computed vectors, sealed with any question.
func small(tb testing.TB) map[string]map[string]any {
	out := map[string]map[string]any{}
	for name, d := range map[string]*engine.Domain{
		business.Name: business.New(business.Version),
		devex.Name:    devex.New(devex.Name, devex.Version),
	} {
		g, kb, _ := enginetest.Cases(tb, name)
		draft, _, err := engine.NewDraft(d, "?", g, kb)
		if err != nil {
			tb.Fatal(err)
		}
		out[name] = naive.MustParse(write(tb, draft))
	}
	return out
}

// holds asks a question of a corpus, and demands that what is written passes,
// or is degraded when a claim of the answer is not verified.
func holds(tb testing.TB, b *bundle.Bundle, q engine.Question) {
	tb.Helper()
	draft, decision, err := engine.Ask(b, domains.All(), q)
	if err != nil {
		return
	}
	var file bytes.Buffer
	if _, err := bundle.Write(&file, draft, nil); err != nil {
		tb.Fatal(err)
	}
	want := engine.Pass
	for _, c := range decision.Claims {
		if !c.Verified {
			want = engine.Degraded
		}
	}
	if j := judge(tb, file.String()); j.Verdict() != want {
		tb.Errorf("%q: %s, want %s: %s", q.Text, j.Verdict(), want, j.Cause())
	}
}

// FuzzQuestion: any question of the small corpora is answered or refused, and
// the bundle of it re-derives.
func FuzzQuestion(f *testing.F) {
	corpora := map[string]*bundle.Bundle{}
	for name, doc := range small(f) {
		corpora[name] = enginetest.Parse(f, naive.File(doc))
		_, _, cases := enginetest.Cases(f, name)
		for _, c := range cases {
			f.Add(c.Question, name == devex.Name)
		}
	}
	f.Fuzz(func(t *testing.T, question string, dev bool) {
		question = strings.ToValidUTF8(question, "\uFFFD")
		if len(question) > 1<<12 {
			return
		}
		if dev {
			holds(t, corpora[devex.Name], engine.Question{Text: question})
			holds(t, corpora[devex.Name], engine.Question{Text: question, Action: "incident"})
			holds(t, corpora[devex.Name], engine.Question{Text: question, Action: "pr_summary"})
			return
		}
		holds(t, corpora[business.Name], engine.Question{Text: question})
	})
}

// FuzzEvidence: any text at any place of the evidence, and of a recorded claim,
// neither breaks the engine nor makes an answer that does not re-derive.
func FuzzEvidence(f *testing.F) {
	corpora := small(f)
	f.Add("What is the total of Grünwald?", uint16(7), "NaN", "net order value: EUR 1.00", false)
	f.Add("Why did R-200 fail?", uint16(40), "ERROR x: \"", `Recurring failure: "a" appears in 'b' and 'c'`, true)
	f.Fuzz(func(t *testing.T, question string, place uint16, text, claim string, dev bool) {
		if len(question)+len(text)+len(claim) > 1<<12 {
			return
		}
		name := business.Name
		if dev {
			name = devex.Name
		}
		doc := naive.Clone(corpora[name])
		valid := func(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
		paths := naive.Paths(doc["evidence_closure"])
		path := append([]any{"evidence_closure"}, paths[int(place)%len(paths)]...)
		if _, ok := naive.At(doc, path...).(string); ok {
			naive.Put(doc, valid(text), path...)
		}
		evidence := naive.At(doc, "evidence_closure", "graph", "nodes", int(place)%5, "record").(map[string]any)
		naive.Put(doc, []any{map[string]any{"text": valid(claim), "verified": true, "support": []any{support(evidence)}}}, "result", "claims")
		naive.Seal(doc)
		b, err := bundle.Parse(naive.File(doc))
		if err != nil {
			return
		}
		_, _ = engine.Judge(b, domains.All())
		holds(t, b, engine.Question{Text: valid(question)})
	})
}

// support is a record in the form that claims cite it in.
func support(record map[string]any) map[string]any {
	origin := naive.Clone(record["origin"].(map[string]any))
	locator := origin["locator"].(map[string]any)
	locator["render"] = "x"
	return map[string]any{"id": record["id"], "source": origin["source"], "ingested_at": origin["ingested_at"], "locator": locator, "text": record["text"]}
}

func TestSeedsExist(t *testing.T) {
	for _, target := range []string{"FuzzQuestion", "FuzzEvidence"} {
		if seeds, err := os.ReadDir(filepath.Join("testdata/fuzz", target)); err != nil || len(seeds) == 0 {
			t.Errorf("%s has no seeds: %v", target, err)
		}
	}
}
