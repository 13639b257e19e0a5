package run_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/naive"
	"github.com/chaind/chaind/engine/run"
	"github.com/chaind/chaind/segments"
	"github.com/google/go-cmp/cmp"
)

// reanswered lets our own engine answer over an altered closure and seals that
// answer: what a forger can do who has this program. It fails when the domain
// does not take the closure.
func reanswered(tb testing.TB, text string) (string, bool) {
	tb.Helper()
	b, err := bundle.Parse(text)
	if err != nil {
		tb.Fatal(err)
	}
	closure, err := engine.ReadClosure(b)
	if err != nil {
		return "", false
	}
	d, err := run.Domain().Decide(run.QuestionRun, closure.Graph, closure.KB)
	if err != nil {
		return "", false
	}
	return edited(text, func(doc map[string]any) { doc["result"] = any(naive.MustParse(string(d.Append(nil)))) }), true
}

// TestAttacksAnsweredAnew: whoever alters the evidence and has it answered anew
// gets no pass, but for content that nothing contradicts: there the bundle is
// the one that our own sealer makes of such a chain.
func TestAttacksAnsweredAnew(t *testing.T) {
	t.Parallel()
	honest := frozenRun(t)
	passed := []string{}
	for _, a := range attacks {
		text, ok := reanswered(t, edited(honest, func(doc map[string]any) { a.edit(document{t, doc}) }))
		if !ok || text == honest {
			continue
		}
		if judge(t, text).Verdict() == engine.Pass {
			passed = append(passed, a.name)
			repacked(t, text)
		}
	}
	want := []string{"evidence signature dropped", "epoch altered", "plan dropped"}
	if !slices.Equal(passed, want) {
		t.Errorf("pass: %q", passed)
	}
}

// repacked demands that a bundle that passes is, byte for byte, what is made of
// the chain that it packages.
func repacked(tb testing.TB, text string) {
	tb.Helper()
	b, err := bundle.Parse(text)
	if err != nil {
		tb.Fatal(err)
	}
	closure, err := engine.ReadClosure(b)
	if err != nil {
		tb.Fatal(err)
	}
	c, ok := run.Unpack(closure.Graph)
	if !ok {
		tb.Error("a bundle passes whose graph packs no chain")
		return
	}
	keep := run.Keep{Plans: true, Artifacts: true, Intents: true, Parsed: true}
	again := write(tb, c, b.Result.Get("question").Text(), keep)
	want, made := naive.MustParse(text), naive.MustParse(again)
	want["signature"], want["format"], want["engine"] = nil, made["format"], made["engine"] // these are the format's matter
	naive.Seal(want)
	if naive.File(want) != again {
		tb.Errorf("a bundle passes that is not the one made of its chain: %s", cmp.Diff(strings.Split(naive.File(want), ","), strings.Split(again, ",")))
	}
}

// forgeries rewrite the record itself before it is packaged: what an operator
// can do. The verdict says what shows.
var forgeries = []struct {
	name    string
	forge   func(*history, *run.Chain)
	verdict engine.Verdict
	unmet   string
}{
	// Caught, since something that the operator did not make contradicts it.
	{"attempt forgotten", func(h *history, c *run.Chain) { c.Attempts = seq(h.attempts[1:]) }, engine.Degraded, "Intake"},
	{"step forgotten", func(h *history, c *run.Chain) { rechain(h, c, without(h.segments, 3)) }, engine.Degraded, "Producer Intake"},
	{"step invented", func(h *history, c *run.Chain) {
		extra := h.segments[3]
		extra.Event = &run.Event{ID: "x", Position: run.Position{Epoch: 1, StreamSeq: 99}}
		rechain(h, c, slices.Insert(slices.Clone(h.segments), 3, extra))
	}, engine.Degraded, "Steps Producer Intake"},
	{"steps exchanged", func(h *history, c *run.Chain) {
		list := slices.Clone(h.segments)
		list[2].Kind, list[3].Kind = list[3].Kind, list[2].Kind
		rechain(h, c, list)
	}, engine.Degraded, "Steps Producer Intake"},
	{"request hidden", func(h *history, c *run.Chain) {
		list := slices.Clone(h.segments)
		step := *list[2].Kind.(*segments.StepExecuted)
		step.RequestFingerprints = step.RequestFingerprints[1:]
		list[2].Kind = &step
		rechain(h, c, list)
	}, engine.Degraded, "Runs Producer Intake"},
	{"signed by somebody else", func(h *history, c *run.Chain) {
		rechain(h, c, without(h.segments, 3))
		head := *c.Head
		c.Producer.Head, c.Producer.Segments = head, c.Count
	}, engine.Degraded, "Producer Intake"},
	{"link broken", func(h *history, c *run.Chain) {
		list := slices.Clone(h.segments)
		list[3].Prev = pointer(segments.Digest{1})
		c.Segments = seq(list)
	}, engine.Degraded, "Chain"},
	{"tail cut", func(h *history, c *run.Chain) {
		rechain(h, c, h.segments[:4])
		c.End = &run.Event{ID: "e6", ProducerSeq: pointer(uint64(6)), Position: h.segments[3].Event.Position}
	}, engine.Degraded, "Outcome Producer Intake"},
	{"seal moved", func(h *history, c *run.Chain) {
		list := slices.Clone(h.segments)
		list[4], list[5] = list[5], list[4]
		rechain(h, c, list)
	}, engine.Degraded, "Outcome Steps Producer Intake"},
	{"conformity embellished", func(h *history, c *run.Chain) {
		list := slices.Clone(h.segments)
		list[2].Kind, list[4].Kind = list[4].Kind, list[2].Kind
		rechain(h, c, list)
		c.Producer, c.Conformity = nil, run.Conforming
	}, engine.Degraded, "Steps"},
	{"called open", func(h *history, c *run.Chain) { c.Outcome, c.End = run.Open, nil }, engine.Degraded, "Outcome Intake"},

	// Not shown: nothing in the file contradicts it. Only a root that was
	// signed or noted before does.
	{"outcome turned", func(h *history, c *run.Chain) { c.Outcome, c.Reason = run.Cancelled, "nobody wanted it" }, engine.Pass, ""},
	{"times altered", func(h *history, c *run.Chain) {
		list := slices.Clone(h.segments)
		list[2].EmittedAtMS = pointer(uint64(1))
		c.Segments = seq(list)
	}, engine.Pass, ""},
	{"producer's head and signature dropped", func(h *history, c *run.Chain) { c.Producer = nil }, engine.Pass, ""},
	{"texts dropped", func(h *history, c *run.Chain) { c.Preimages = nil }, engine.Pass, ""},
	{"duplicates denied", func(h *history, c *run.Chain) { c.Intake.Duplicates = 3 }, engine.Pass, ""},
	{"everything rewritten, nothing signed", func(h *history, c *run.Chain) {
		list := without(h.segments, 3)
		for i := range list {
			e := *list[i].Event
			e.ProducerSeq = pointer(uint64(i))
			list[i].Event = &e
		}
		rechain(h, c, list)
		c.Attempts, c.Producer, c.Declared, c.End = nil, nil, nil, list[len(list)-1].Event
	}, engine.Pass, ""},
}

func without(list []run.Segment, i int) []run.Segment {
	return slices.Delete(slices.Clone(list), i, i+1)
}

// rechain numbers and links segments anew, has them signed by the operator, and
// keeps no texts, whose numbers would be wrong.
func rechain(_ *history, c *run.Chain, list []run.Segment) {
	chain, out := segments.Builder{}, slices.Clone(list)
	for i := range out {
		out[i].Segment = chain.Append(out[i].Kind, out[i].EmittedAtMS)
	}
	var texts []run.Preimage
	for p, err := range c.Preimages {
		if err != nil {
			panic(err)
		}
		if p.Artifact == nil {
			continue
		}
		p.Seq = uint64(len(out) - 1)
		if _, ok := out[p.Seq].Kind.(*segments.RunSealed); ok {
			texts = append(texts, p)
		}
	}
	c.Segments, c.Preimages, c.Count, c.Head = seq(out), seq(texts), chain.Next, chain.Head
	c.Signature = segments.Sign(theOperator, &c.Scope, *c.Head)
}

// TestForgeries: what an operator who rewrites the record before sealing gets.
func TestForgeries(t *testing.T) {
	t.Parallel()
	for _, f := range forgeries {
		s := honest(t)
		c := s.chain()
		f.forge(s.history(), c)
		text := write(t, c, run.QuestionRun, run.DefaultKeep)
		j := judge(t, text)
		if j.Verdict() != f.verdict || strings.Join(failing(j), " ") != f.unmet {
			t.Errorf("%s: %s, not met %q", f.name, j.Verdict(), failing(j))
		}
	}
}

// TestRejectionForgotten: a rejected event that is left out shows by the
// producer's count and numbers.
func TestRejectionForgotten(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.intent()
	bad := stepEvent("list", 0, 1)
	bad["surprise"] = true
	s.send("step", bad)
	s.commit("list")
	s.step("list", 0, 1)
	s.send("seal", s.sealed("succeeded", artifact(fingerprint("list", 0))))
	if j := judge(t, write(t, s.chain(), run.QuestionRun, run.DefaultKeep)); j.Verdict() != engine.Pass {
		t.Fatal(j.Cause())
	}
	c := s.chain()
	c.Rejected = nil
	j := judge(t, write(t, c, run.QuestionRun, run.DefaultKeep))
	if j.Verdict() != engine.Degraded || strings.Join(failing(j), " ") != "Intake" {
		t.Errorf("%s: %q", j.Verdict(), failing(j))
	}
}

// TestRejectionAttacks: what stands for rejected events that are only counted
// cannot be altered either.
func TestRejectionAttacks(t *testing.T) {
	t.Parallel()
	whole := write(t, rejectionsRun(t), run.QuestionRun, run.DefaultKeep)
	for name, edit := range map[string]func(document){
		"fewer ids":      func(d document) { d.attr("intake", "more_ids", "79") },
		"other numbers":  func(d document) { d.attr("intake", "more_numbers", "94-150") },
		"bad numbers":    func(d document) { d.attr("intake", "more_numbers", "9-8") },
		"fewer counted":  func(d document) { d.attr("intake", "more_rejected", "79") },
		"none counted":   func(d document) { d.attr("intake", "more_rejected", "0") },
		"fewer in all":   func(d document) { d.attr("intake", "rejected", "179") },
		"other digest":   func(d document) { d.attr("intake", "rejected_sha256", strings.Repeat("00", 32)) },
		"uncounted":      func(d document) { d.attr("intake", "more_uncounted", "true") },
		"counted apart":  func(d document) { d.attr("intake", "more_counted", "79") },
		"node dropped":   func(d document) { d.drop(d.idOf("rejected")) },
		"reason altered": func(d document) { d.attr(d.idOf("rejected"), "class", "malformed") },
		"id of another":  func(d document) { d.attr(d.idOf("rejected"), "event_id", "e2") },
	} {
		j := judge(t, edited(whole, func(doc map[string]any) { edit(document{t, doc}) }))
		got := failedPlaces(j)
		if j.Verdict() != engine.Fail || got != "Intake" {
			t.Errorf("%s: %s, fails %q", name, j.Verdict(), got)
		}
	}
}

// TestCases ties the known cases of verifiers to this domain.
func TestCases(t *testing.T) {
	t.Parallel()
	honest := frozenRun(t)
	withheld := edited(honest, func(doc map[string]any) {
		d := document{t, doc}
		naive.Put(doc, map[string]any{"redacted": true, "record": map[string]any{"id": "segment:2"}}, "evidence_closure", "graph", "nodes", d.position("segment:2"))
	})
	foreign := edited(honest, func(doc map[string]any) {
		naive.Put(doc, append(naive.At(doc, "engine", "claim_shapes").([]any), "chaind.run.unheard_of"), "engine", "claim_shapes")
	})
	file := func(f func(testing.TB) *run.Chain) string { return write(t, f(t), run.QuestionRun, run.DefaultKeep) }
	for _, c := range []struct{ id, text, verdict, says string }{
		{"C20", file(failedRun), "PASS", `Outcome unknown: "close". Failed: "pick"`},
		{"C20", file(failedRun), "PASS", `"tell" (no attempt recorded)`},
		{"C20", file(intentOnly), "PASS", "Plan: none was committed."},
		{"C20", file(intentOnly), "PASS", "Outcome: abandoned"},
		{"C20", file(intentOnly), "PASS", "Steps: none was executed, and none was planned."},
		{"C20", file(planOnly), "PASS", `Not executed: "list" (no attempt recorded), "pick" (no attempt recorded).`},
		{"C20", file(planOnly), "PASS", "Attempts: none was recorded."},
		{"C20", file(answeredWithAnError), "PASS", `Failed: "list" (1 time: "200, and the body says quota exceeded")`},
		{"C20", file(answeredWithAnError), "PASS", `Not executed: "list" (failed)`},
		{"C04", file(disagreeingRun), "DEGRADED", "stated head " + strings.Repeat("0d", 32)},
		{"C04", file(disagreeingRun), "DEGRADED", "up to head " + disagreeingRun(t).Head.String()},
		{"V05", foreign, "DEGRADED", ""},
		{"V11", edited(file(incompleteRun), func(doc map[string]any) {
			document{t, doc}.claim("Intake")["verified"] = true
			naive.Put(doc, true, "result", "all_verified")
		}), "FAIL", ""},
		{"V13", withheld, "DEGRADED", ""},
		{"V15", file(emptyRun), "DEGRADED", "Chain: empty"},
		{"V29", file(openRun), "DEGRADED", "Outcome: open"},
	} {
		j := judge(t, c.text)
		said := false
		for _, claim := range j.Recorded.Claims {
			said = said || strings.Contains(claim.Text, c.says)
		}
		if string(j.Verdict()) != c.verdict || !said {
			t.Errorf("case %s: %s, says %q: %v", c.id, j.Verdict(), c.says, said)
		}
		for _, check := range j.Claims {
			if (c.id == "V05" || c.id == "V13") && (check.Evaluated || check.Rederived) {
				t.Errorf("case %s: claim %d is counted as checked", c.id, check.Index)
			}
		}
	}
}
