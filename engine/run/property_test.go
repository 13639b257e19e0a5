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
		if rapid.Bool().Draw(rt, "odd") {
			s.odd = func(members object) { oddly(rt, s, members) }
		}
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

// TestCoverageAgrees: of short runs that end, whose producer declares what it
// likes with which event it likes, the bundle says what the state machine says.
func TestCoverageAgrees(t *testing.T) {
	t.Parallel()
	seen, heads := map[run.Coverage]int{}, map[run.Coverage]int{}
	rapid.Check(t, func(rt *rapid.T) {
		for range 10 {
			s, headed := newScript(t), false
			s.mute, s.odd = rapid.IntRange(0, 3).Draw(rt, "mute") == 0, func(members object) { oddly(rt, s, members) }
			if rapid.IntRange(0, 3).Draw(rt, "heads alone") == 0 {
				s.odd = func(members object) {
					delete(members, "producer_seq")
					delete(members, "event_count")
					headed = headed || members["producer_head"] != nil
				}
			}
			for range rapid.IntRange(0, 3).Draw(rt, "events") {
				switch rapid.IntRange(0, 4).Draw(rt, "act") {
				case 0:
					s.step("list", 0, 1)
				case 1:
					s.begin("list")
				case 2:
					s.send("step", object{"surprise": 1})
				default:
					seal := s.sealed("succeeded", artifact())
					seal["scope"], seal["more"] = scopeObject(), true
					s.send("seal", seal)
				}
			}
			if rapid.Bool().Draw(rt, "bare") {
				s.send("seal", s.bare("failed", ""))
			} else {
				seal := s.sealed("succeeded", artifact())
				seal["scope"] = scopeObject()
				s.send("seal", seal)
			}
			state := s.history().fixed
			want, why := state.Coverage()
			got := summarize(t, write(t, s.history().chain(), run.QuestionCompleteness, run.DefaultKeep))
			if got.Coverage != run.Coverage(want) {
				rt.Fatalf("the bundle says %s %q, the state %s %v: %+v", got.Coverage, got.Unmet, want, why, state.Facts)
			}
			seen[got.Coverage]++
			if headed {
				heads[got.Coverage]++
			}
		}
	})
	if min(heads[run.Complete], heads[run.Unspecified]) < 5 {
		t.Errorf("chains with nothing but heads by coverage: %v", heads)
	}
	if min(seen[run.Complete], seen[run.Incomplete], seen[run.Unspecified]) < 5 {
		t.Errorf("chains by coverage: %v", seen)
	}
}

// oddly takes from an event some of what the producer declared with it, or
// declares something else.
func oddly(rt *rapid.T, s *script, members object) {
	for _, name := range []string{"producer_seq", "event_count", "producer_head"} {
		if members[name] == nil || rapid.IntRange(0, 2).Draw(rt, name) > 0 {
			continue
		}
		delete(members, name)
		if name == "producer_head" {
			delete(members, "producer_signature")
		}
	}
	if members["event_count"] != nil && rapid.IntRange(0, 3).Draw(rt, "miscount") == 0 {
		members["event_count"] = s.n + rapid.Uint64Range(0, 2).Draw(rt, "count")
	}
}

// act sends one event of a run that goes as it may.
func act(rt *rapid.T, s *script) {
	id := rapid.SampledFrom([]string{"list", "pick", "close", `o"dd` + "\u2028"}).Draw(rt, "step")
	n := rapid.IntRange(0, 3).Draw(rt, "n")
	switch rapid.IntRange(0, 11).Draw(rt, "act") {
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
	case 11:
		for range rapid.SampledFrom([]int{1, 2, 101}).Draw(rt, "rejections") {
			s.send("step", object{"surprise": n})
		}
	}
}
