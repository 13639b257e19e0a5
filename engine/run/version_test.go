package run_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/naive"
	"github.com/chaind/chaind/engine/run"
)

// midway are bundles that the program sealed while the domain had its first
// version: their producers declared numbers, and a count, before the end alone.
var midway = []string{"testdata/midway-numbers.tsb", "testdata/midway-count.tsb"}

// TestMidway: what was sealed under the first version is judged by the rule of the
// first version, and the summary says that the rule was weaker.
func TestMidway(t *testing.T) {
	t.Parallel()
	for _, file := range midway {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if j := judge(t, string(raw)); j.Verdict() != engine.Pass {
			t.Errorf("%s: %s, %s", file, j.Verdict(), j.Cause())
		}
		if s := summarize(t, string(raw)); s.Coverage != run.Complete || !s.Midway {
			t.Errorf("%s: %+v", file, s)
		}
		// The same evidence does not bear out the same claim under the version of today.
		renamed := edited(string(raw), func(doc map[string]any) { naive.Put(doc, run.Version, "engine", "tessera_version") })
		if j := judge(t, renamed); j.Verdict() != engine.Fail {
			t.Errorf("%s as %s: %s", file, run.Version, j.Verdict())
		}
		if s := summarize(t, renamed); s.Coverage != run.Unspecified || s.Midway {
			t.Errorf("%s as %s: %+v", file, run.Version, s)
		}
	}
}

// TestVersions: one chain under both versions is the same but for the claim in
// which they differ, and only that one is told apart by the summary.
func TestVersions(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios {
		first, second := writeVersion(t, run.Version1, s.chain(t)), writeVersion(t, run.Version, s.chain(t))
		if !strings.Contains(first, `"tessera_version":"chaind-run-1"`) || !strings.Contains(second, `"tessera_version":"chaind-run-2"`) {
			t.Errorf("%s: not sealed under the versions asked for", s.name)
		}
		got := summarize(t, first)
		if want := summarize(t, second); got.Midway || got.Coverage != want.Coverage || strings.Join(got.Unmet, "|") != strings.Join(want.Unmet, "|") {
			t.Errorf("%s: %+v, and under the second version %+v", s.name, got, want)
		}
	}
	if _, _, err := run.WriteVersion(io.Discard, "chaind-run-3", emptyRun(t), run.QuestionRun, run.DefaultKeep, nil); !errors.Is(err, run.ErrOtherDomain) {
		t.Errorf("an unknown version: %v", err)
	}
	b, err := bundle.Parse(writeVersion(t, run.Version, emptyRun(t)))
	if err != nil {
		t.Fatal(err)
	}
	closure, err := engine.ReadClosure(b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.SummarizeGraph(closure.Graph, "chaind-run-3"); !errors.Is(err, run.ErrOtherDomain) {
		t.Errorf("an unknown version: %v", err)
	}
}

// TestCountedRest: the attribute that tells how many of the events that are only
// counted came before a count is of the second version alone.
func TestCountedRest(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	seal := s.sealed("succeeded", artifact())
	seal["scope"], seal["more"] = scopeObject(), true
	s.send("seal", seal)
	for range 101 {
		s.send("step", object{"surprise": 1})
	}
	s.mute = true
	s.send("seal", s.bare("failed", ""))
	first, second := writeVersion(t, run.Version1, s.chain()), writeVersion(t, run.Version, s.chain())
	if strings.Contains(first, "more_counted") || !strings.Contains(second, "more_counted") {
		t.Error("the attribute is in the wrong bundles")
	}
	for name, text := range map[string]string{"first": first, "second": second} {
		if j := judge(t, text); j.Failed() {
			t.Errorf("%s: %s", name, j.Cause())
		}
	}
	as := func(version string) func(map[string]any) {
		return func(doc map[string]any) { naive.Put(doc, version, "engine", "tessera_version") }
	}
	if j := judge(t, edited(second, as(run.Version1))); j.Verdict() != engine.Fail {
		t.Errorf("the second as the first: %s", j.Verdict())
	}
}

// numbersStop has an end without number and a head, which does not cover the
// attempt that may have been lost.
func numbersStop(tb testing.TB) *run.Chain {
	s := newScript(tb)
	s.intent()
	s.step("list", 0, 1)
	s.odd = func(members object) { delete(members, "producer_seq"); delete(members, "event_count") }
	s.send("seal", s.bare("succeeded", ""))
	return s.chain()
}

// headAlone has nothing but a head, and attempts where that is asked for.
func headAlone(attempts bool) func(testing.TB) *run.Chain {
	return func(tb testing.TB) *run.Chain {
		s := newScript(tb)
		s.odd = func(members object) { delete(members, "producer_seq"); delete(members, "event_count") }
		s.intent()
		if attempts {
			s.begin("list")
		}
		s.step("list", 0, 1)
		s.send("seal", s.bare("succeeded", ""))
		return s.chain()
	}
}

// TestFrozen2 is TestFrozen for the second version, of what it has of its own.
func TestFrozen2(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		chain func(testing.TB) *run.Chain
		want  run.Coverage
	}{
		"2-succeeded":     {func(tb testing.TB) *run.Chain { return honest(tb).chain() }, run.Complete},
		"2-numbers-stop":  {numbersStop, run.Unspecified},
		"2-head":          {headAlone(false), run.Complete},
		"2-head-attempts": {headAlone(true), run.Unspecified},
	} {
		text := writeVersion(t, run.Version, c.chain(t))
		frozen(t, "testdata/"+name+".tsb", text)
		raw, err := os.ReadFile("testdata/" + name + ".tsb")
		if err != nil {
			t.Fatal(err)
		}
		want := engine.Pass
		if c.want != run.Complete {
			want = engine.Degraded
		}
		j, s := judge(t, string(raw)), summarize(t, string(raw))
		if j.Verdict() != want || s.Coverage != c.want || s.Midway {
			t.Errorf("%s: %s, %+v", name, j.Verdict(), s)
		}
	}
}
