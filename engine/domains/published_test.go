package domains_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/domains"
	"github.com/chaind/chaind/engine/enginetest"
)

func judge(tb testing.TB, text string) *engine.Judgement {
	tb.Helper()
	j, err := engine.Judge(enginetest.Parse(tb, text), domains.All())
	if err != nil {
		tb.Fatalf("judge bundle: %v", err)
	}
	return j
}

// ask asks a question of a corpus and returns the file.
func ask(tb testing.TB, corpus string, q engine.Question) string {
	tb.Helper()
	draft, _, err := engine.Ask(enginetest.Parse(tb, corpus), domains.All(), q)
	if err != nil {
		tb.Fatalf("ask %q: %v", q.Text, err)
	}
	return write(tb, draft)
}

func write(tb testing.TB, draft *bundle.Draft) string {
	tb.Helper()
	var out bytes.Buffer
	if _, err := bundle.Write(&out, draft, nil); err != nil {
		tb.Fatal(err)
	}
	return out.String()
}

func unsupported(j *engine.Judgement) []int {
	var out []int
	for _, c := range j.Claims {
		if !c.Rederived {
			out = append(out, c.Index)
		}
	}
	return out
}

// TestPublished: every published bundle gets the verdict that it was published
// with, from a full re-execution.
func TestPublished(t *testing.T) {
	for _, want := range []struct {
		file        string
		verdict     engine.Verdict
		claims      int
		unsupported []int
		answer      engine.AnswerState
		withheld    int
		upstreams   int
	}{
		{"honest.tsb", engine.Pass, 3, nil, engine.AnswerRederives, 0, 0},
		{"rca.tsb", engine.Pass, 8, nil, engine.AnswerRederives, 0, 0},
		{"brief.tsb", engine.Pass, 5, nil, engine.AnswerRederives, 0, 2},
		{"forged.tsb", engine.Fail, 3, []int{0, 2}, engine.AnswerDiffers, 0, 0},
		{"honest-public.tsb", engine.Degraded, 3, nil, engine.AnswerNotPerformed, 337, 0},
	} {
		j := judge(t, enginetest.Read(t, want.file))
		if j.Verdict() != want.verdict || len(j.Integrity.Findings) > 0 || len(j.Structural) > 0 || j.Taxonomy != engine.ReDerived {
			t.Errorf("%s: %s, %s", want.file, j.Verdict(), j.Cause())
		}
		if len(j.Claims) != want.claims || !slices.Equal(unsupported(j), want.unsupported) || j.Answer != want.answer {
			t.Errorf("%s: %d claims, unsupported %v, answer %s", want.file, len(j.Claims), unsupported(j), j.Answer)
		}
		if len(j.Withheld) != want.withheld || len(j.Upstreams) != want.upstreams {
			t.Errorf("%s: %d withheld, %d upstreams", want.file, len(j.Withheld), len(j.Upstreams))
		}
		for _, c := range j.Claims {
			if !c.Evaluated || (c.Cause != nil) != slices.Contains(want.unsupported, c.Index) {
				t.Errorf("%s: claim %d: %+v", want.file, c.Index, c)
			}
		}
		for _, u := range j.Upstreams {
			if u.Verdict != engine.Pass {
				t.Errorf("%s: upstream %s: %s", want.file, u.Root, u.Cause)
			}
		}
	}
}

// TestAskedAgain: asked its recorded question, each corpus gives the published
// file, byte for byte.
func TestAskedAgain(t *testing.T) {
	for _, name := range []string{"honest.tsb", "rca.tsb", "brief.tsb"} {
		file := enginetest.Read(t, name)
		question := enginetest.Parse(t, file).Result.Get("question").Text()
		if got := ask(t, file, engine.Question{Text: question}); got != file {
			t.Errorf("%s: asked again, it gives another file", name)
		}
	}
}
