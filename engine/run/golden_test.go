package run_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/naive"
	"github.com/chaind/chaind/engine/run"
)

// TestFrozen holds the bundles of the scenarios against frozen files: texts,
// attributes and shapes must never change under one engine version.
func TestFrozen(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if _, _, err := run.WriteVersion(&out, run.Version1, s.chain(t), run.QuestionRun, s.keep, theOperator); err != nil {
				t.Fatal(err)
			}
			frozen(t, filepath.Join("testdata", s.name+".tsb"), out.String())
			if err := naive.Check(naive.MustParse(out.String())); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFrozenVerdicts re-derives the frozen files, whatever is written today.
func TestFrozenVerdicts(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios {
		raw, err := os.ReadFile(filepath.Join("testdata", s.name+".tsb"))
		if err != nil {
			t.Fatal(err)
		}
		j := judge(t, string(raw))
		if j.Taxonomy != engine.ReDerived || string(j.Verdict()) != s.verdict || j.Answer != engine.AnswerRederives || !j.Signature.Valid {
			t.Errorf("%s: %s %s, %s", s.name, j.Taxonomy, j.Verdict(), j.Cause())
		}
		if got := strings.Join(failing(j), " "); got != s.unmet {
			t.Errorf("%s: %q do not hold, want %q", s.name, got, s.unmet)
		}
		if got := summarize(t, string(raw)); got.Word != s.word || len(got.Unmet) != len(strings.Fields(s.unmet)) {
			t.Errorf("%s: %+v", s.name, got)
		}
	}
}

// TestNothingOfResultsIsKept: by default neither intent nor results enter a
// bundle (case of the package doc: what is never packaged).
func TestNothingOfResultsIsKept(t *testing.T) {
	t.Parallel()
	for keep, want := range map[run.Keep][2]bool{
		run.DefaultKeep: {false, false}, {Intents: true}: {true, false}, {Parsed: true}: {false, true}, {}: {false, false},
	} {
		text := write(t, honest(t).chain(), run.QuestionRun, keep)
		got := [2]bool{strings.Contains(text, theIntent), strings.Contains(text, `\"step\":\"pick\"`)}
		if got != want || strings.Contains(text, "secret") {
			t.Errorf("%+v: intent and expressions are kept: %v", keep, got)
		}
		if plans := strings.Contains(text, `"id":"plan:`); plans != keep.Plans {
			t.Errorf("%+v: plan kept: %v", keep, plans)
		}
		if j := judge(t, text); j.Verdict() != engine.Pass {
			t.Errorf("%+v: %s", keep, j.Cause())
		}
	}
}

// TestSummarizeRefuses: what is no whole run bundle has no summary.
func TestSummarizeRefuses(t *testing.T) {
	t.Parallel()
	other, err := os.ReadFile("../../bundle/testdata/e1.tsb")
	if err != nil {
		t.Fatal(err)
	}
	whole := write(t, honest(t).chain(), run.QuestionRun, run.DefaultKeep)
	withheld := edited(whole, func(doc map[string]any) {
		naive.Put(doc, map[string]any{"redacted": true, "record": map[string]any{"id": "segment:3"}}, "evidence_closure", "graph", "nodes", 4)
	})
	for name, text := range map[string]string{"other domain": string(other), "withheld": withheld} {
		b, err := bundle.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := run.Summarize(b); err == nil || s != nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
}
