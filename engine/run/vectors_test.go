package run_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/naive"
	"github.com/chaind/chaind/engine/run"
	"github.com/chaind/chaind/events"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the frozen bundles and digests anew")

// TestEventVectors seals every chain of the event vectors: each re-derives, its
// summary says what the state machine says, and the whole of them is frozen in
// one digest.
func TestEventVectors(t *testing.T) {
	t.Parallel()
	var files, earlier []string
	verdicts := map[string]int{}
	for _, name := range []string{"small", "large"} {
		h := vectorChains(t, name)
		for _, key := range h.keys {
			c := h.byKey[key]
			text := write(t, c.chain(), run.QuestionRun, run.DefaultKeep)
			files = append(files, text)
			earlier = append(earlier, writeVersion(t, run.Version1, c.chain()))
			if err := naive.Check(naive.MustParse(text)); err != nil {
				t.Errorf("%s: %v", key.Chain, err)
			}
			j := judge(t, text)
			verdicts[string(j.Verdict())]++
			checkVector(t, c, text, j)
		}
	}
	if verdicts["PASS"] < 10 || verdicts["DEGRADED"] < 10 || len(verdicts) != 2 {
		t.Errorf("verdicts: %v", verdicts)
	}
	frozen(t, "testdata/vectors.sha256", digestOf(earlier)+"\n")
	frozen(t, "testdata/vectors-2.sha256", digestOf(files)+"\n")
}

func checkVector(t *testing.T, c *history, text string, j *engine.Judgement) {
	t.Helper()
	s := c.fixed
	if s == nil {
		s = c.state
	}
	if j.Taxonomy != engine.ReDerived || j.Answer != engine.AnswerRederives || j.Failed() {
		t.Errorf("%s: %s, %s", s.Key.Chain, j.Verdict(), j.Cause())
	}
	coverage, _ := s.Coverage()
	conformity, _ := s.Conformity()
	got := summarize(t, text)
	want := &run.Summary{
		Word: string(s.Outcome), Tenant: s.Key.Tenant, PromptHash: s.Key.PromptHash, Session: s.Key.Session, Chain: s.Key.Chain,
		Outcome: run.Outcome(s.Outcome), Reason: s.Reason, Conformity: run.Conformity(conformity), Coverage: run.Coverage(coverage),
		Segments: s.Segments, RunIDs: s.RunIDs, Unmet: got.Unmet,
	}
	if s.Head == nil {
		want.Word = "empty"
	} else {
		want.Head = s.Head.String()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", s.Key.Chain, diff)
	}
	sound := s.Outcome != events.Open && conformity != events.Nonconforming && coverage == events.Complete &&
		s.ProducerHead != events.HeadDiffers && s.ProducerSignature != events.SignatureInvalid && s.Head != nil
	foreign := func(unmet string) bool { return strings.Contains(unmet, "are of no executed step") }
	sound = sound && !slices.ContainsFunc(got.Unmet, foreign) // some snapshots of the vectors have requests of their own
	if pass := j.Verdict() == engine.Pass; pass != sound {
		t.Errorf("%s: %s for %s, %s, %s: %q", s.Key.Chain, j.Verdict(), s.Outcome, conformity, coverage, got.Unmet)
	}
}

// frozen compares a text with a file that only -update writes.
func frozen(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s differs from what is made now:\n%s", path, cmp.Diff(strings.Split(string(want), ","), strings.Split(got, ",")))
	}
}

// TestQuestions: the fixed questions are answered from the same evidence, never
// without what does not hold, and anything else is refused.
func TestQuestions(t *testing.T) {
	t.Parallel()
	h := vectorChains(t, "small")
	for _, key := range h.keys {
		whole := summarize(t, write(t, h.byKey[key].chain(), run.QuestionRun, run.DefaultKeep))
		for _, q := range run.Questions() {
			text := write(t, h.byKey[key].chain(), q, run.DefaultKeep)
			j := judge(t, text)
			if j.Failed() || j.Recorded.Refused || !strings.HasPrefix(j.Recorded.Claims[0].Text, "Outcome: ") {
				t.Errorf("%s, %s: %s", key.Chain, q, j.Cause())
			}
			var unmet []string
			for _, c := range j.Recorded.Claims {
				if !c.Verified {
					unmet = append(unmet, c.Text)
				}
			}
			if !slices.Equal(unmet, whole.Unmet) {
				t.Errorf("%s, %s: does not hold %q, want %q", key.Chain, q, unmet, whole.Unmet)
			}
		}
	}
	c := h.byKey[h.keys[0]].chain()
	for _, q := range []string{"", "Who did it?", " " + run.QuestionRun, strings.ToLower(run.QuestionSteps)} {
		j := judge(t, write(t, c, q, run.DefaultKeep))
		if !j.Recorded.Refused || j.Failed() || !strings.Contains(j.Recorded.Refusal, run.QuestionRun) {
			t.Errorf("%q is answered: %+v", q, j.Recorded)
		}
	}
}
