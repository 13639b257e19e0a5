package run_test

import (
	"fmt"
	"testing"

	"github.com/chaind/chaind/engine/naive"
	"github.com/chaind/chaind/engine/run"
	"pgregory.net/rapid"
)

// TestAnyStreamRederives: whatever events come in whatever order, the bundle of
// their chain re-derives, says what the state machine says, has the same bytes
// when made again, and holds a naive reading's envelope.
func TestAnyStreamRederives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := newScript(t)
		s.mute = rapid.Bool().Draw(rt, "mute")
		for range rapid.IntRange(1, 14).Draw(rt, "events") {
			act(rt, s)
		}
		h := s.history()
		if h == nil {
			return
		}
		keep := run.Keep{Plans: rapid.Bool().Draw(rt, "plans"), Artifacts: true, Intents: rapid.Bool().Draw(rt, "intents"), Parsed: rapid.Bool().Draw(rt, "parsed")}
		question := rapid.SampledFrom(run.Questions()).Draw(rt, "question")
		text := write(t, h.chain(), question, keep)
		if text != write(t, h.chain(), question, keep) {
			rt.Error("the same chain gives other bytes")
		}
		if err := naive.Check(naive.MustParse(text)); err != nil {
			rt.Error(err)
		}
		checkVector(t, h, text, judge(t, text))
	})
}

// act sends one event of a run that goes as it may.
func act(rt *rapid.T, s *script) {
	id := rapid.SampledFrom([]string{"list", "pick", "close", `o"dd` + "\u2028"}).Draw(rt, "step")
	n := rapid.IntRange(0, 3).Draw(rt, "n")
	switch rapid.IntRange(0, 10).Draw(rt, "act") {
	case 0:
		s.intent()
	case 1, 2:
		s.commit([]string{"list", "pick", "close", `o"dd` + "\u2028"}[:n+1]...)
	case 3, 4:
		s.step(id, n, n)
	case 5:
		s.begin(id)
	case 6:
		s.fails(id, fmt.Sprint("reason ", n))
	case 7:
		s.skip("step", object{})
	case 8:
		s.send("step", object{"surprise": n})
	case 9:
		body := artifact(fingerprint(id, 0))
		seal := s.sealed("succeeded", body)
		seal["scope"] = scopeObject()
		seal["more"] = n > 0
		s.send("seal", seal)
	case 10:
		outcome := []string{"succeeded", "failed", "cancelled", "abandoned"}[n]
		s.send("seal", s.bare(outcome, "because"))
	}
}
