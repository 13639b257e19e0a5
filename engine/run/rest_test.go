package run_test

import (
	"testing"

	"github.com/chaind/chaind/engine/run"
	"pgregory.net/rapid"
)

// TestCoverageAgreesOnTheRest: of runs with more rejected events than are packaged the
// bundle says what the state machine says, wherever between them a count was declared.
func TestCoverageAgreesOnTheRest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := newScript(t)
		numbered := rapid.Bool().Draw(rt, "numbered")
		s.odd = func(members object) {
			if members["surprise"] == nil {
				oddly(rt, s, members)
			}
			if delete(members, "producer_seq"); numbered { // a hole would be all there is to say
				members["producer_seq"] = s.n - 1
			}
		}
		for range rapid.IntRange(1, 3).Draw(rt, "seals") {
			for range rapid.SampledFrom([]int{0, 1, 60, 101}).Draw(rt, "rejections") {
				s.send("step", object{"surprise": 1})
			}
			seal := s.sealed("succeeded", artifact())
			seal["scope"], seal["more"] = scopeObject(), true
			s.send("seal", seal)
		}
		for range rapid.SampledFrom([]int{0, 1, 101}).Draw(rt, "rejections") {
			s.send("step", object{"surprise": 1})
		}
		s.send("seal", s.bare("failed", ""))
		state := s.history().fixed
		want, why := state.Coverage()
		got := summarize(t, write(t, s.history().chain(), run.QuestionCompleteness, run.DefaultKeep))
		if got.Coverage != run.Coverage(want) {
			rt.Fatalf("the bundle says %s %q, the state %s %v: %+v", got.Coverage, got.Unmet, want, why, state.Facts)
		}
	})
}
