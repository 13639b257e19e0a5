package domains_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/business"
	"github.com/chaind/chaind/engine/devex"
	"github.com/chaind/chaind/engine/domains"
	"github.com/chaind/chaind/engine/enginetest"
	"github.com/chaind/chaind/engine/naive"
)

// TestAskAnew: new questions of packaged evidence give bundles that pass, with
// and without an action, under the version of the corpus and our own.
func TestAskAnew(t *testing.T) {
	for _, c := range []struct {
		corpus string
		q      engine.Question
		want   string // part of the file
	}{
		{"honest.tsb", engine.Question{Text: "What is Müller Logistik's total order value?"}, `"tessera_version":"0.0.0"`},
		{"honest.tsb", engine.Question{Text: "What is the capital of France?", Version: business.Version}, `"tessera_version":"chaind-business-1"`},
		{"forged.tsb", engine.Question{Text: "Compare Müller Logistik and Nordwind Logistik totals."}, `EUR 114,500.00`},
		{"rca.tsb", engine.Question{Text: incidentQuestion, Action: "incident"}, `"labels":["incident"]`},
		{"rca.tsb", engine.Question{Text: "What does PR-201 change?", Action: "pr_summary", Version: devex.Version}, `/issues/PR-201/comments`},
		{"brief.tsb", engine.Question{Text: "zebra quasar"}, `"minor":1`},
		{"brief.tsb", engine.Question{Text: "Why did the run fail?", Version: engine.ChainVersion}, `"tessera_version":"chaind-chain-1"`},
	} {
		file := ask(t, enginetest.Read(t, c.corpus), c.q)
		if err := naive.Check(naive.MustParse(file)); err != nil {
			t.Errorf("%s, %+v: %v", c.corpus, c.q, err)
		}
		if j := judge(t, file); j.Verdict() != engine.Pass || j.Recorded.Question != c.q.Text {
			t.Errorf("%s, %+v: %s: %s", c.corpus, c.q, j.Verdict(), j.Cause())
		}
		if !strings.Contains(file, c.want) {
			t.Errorf("%s, %+v: no %s", c.corpus, c.q, c.want)
		}
	}
}

// TestAskRefused: what cannot be asked, and why.
func TestAskRefused(t *testing.T) {
	honest, rca := enginetest.Read(t, "honest.tsb"), enginetest.Read(t, "rca.tsb")
	dangling := sealed(naive.MustParse(honest), func(doc map[string]any) { naive.Remove(doc, "evidence_closure", "graph", "nodes", 0) })
	foreign := sealed(naive.MustParse(honest), set("9.9.9", "engine", "tessera_version"))
	badAmount := sealed(naive.MustParse(honest), func(doc map[string]any) {
		naive.Put(doc, replaceAll(naive.At(doc, "evidence_closure", "graph"), "24000.00", "24.000,00"), "evidence_closure", "graph")
	})
	brokenChain := sealed(naive.MustParse(enginetest.Read(t, "brief.tsb")), deepForge)
	question := engine.Question{Text: "Compare Müller Logistik and Nordwind Logistik totals."}
	with := func(edit func(*engine.Question)) engine.Question {
		q := question
		edit(&q)
		return q
	}
	for name, c := range map[string]struct {
		file string
		q    engine.Question
		want error // nil: a *ChainError or one about the evidence
	}{
		"tampered":        {strings.Replace(honest, "24000.00", "54000.00", 1), question, engine.ErrUnsound},
		"redacted":        {enginetest.Read(t, "honest-public.tsb"), question, engine.ErrUnsound},
		"dangling":        {dangling, question, engine.ErrUnsound},
		"foreign":         {foreign, question, engine.ErrNoDomain},
		"unknown version": {honest, with(func(q *engine.Question) { q.Version = "business-9" }), engine.ErrNoDomain},
		"no actions":      {honest, with(func(q *engine.Question) { q.Action = "incident" }), engine.ErrNoAction},
		"unknown action":  {rca, engine.Question{Text: incidentQuestion, Action: "rollback"}, engine.ErrNoAction},
		"withheld":        {rca, engine.Question{Text: "Why did run R-1041 fail?", Action: "incident"}, engine.ErrActionWithheld},
		"bad amount":      {badAmount, question, nil},
		"broken chain":    {brokenChain, question, nil},
	} {
		draft, decision, err := engine.Ask(enginetest.Parse(t, c.file), domains.All(), c.q)
		if err == nil || draft != nil || decision != nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if j := judge(t, badAmount); j.Verdict() != engine.Fail || allCodes(j)[0] != engine.ReexecutionFailed {
		t.Errorf("bad amount: %s, %v", j.Verdict(), allCodes(j))
	}
}
