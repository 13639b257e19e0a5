package run_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/domains"
	"github.com/chaind/chaind/engine/naive"
	"github.com/chaind/chaind/engine/run"
	"github.com/chaind/chaind/verifier"
)

// verdictOf is what `chaind verify` says of a file: its exit code, the labels of
// the claims that it calls unsupported, and the report.
func verdictOf(t *testing.T, text string) (exit int, fails string, r *verifier.Report) {
	t.Helper()
	r = verifier.TrustBundle(t.Context(), strings.NewReader(text), verifier.Options{})
	var out []string
	if r.Content != nil {
		for i, c := range r.Content.Claims {
			if c.Verdict == verifier.ClaimUnsupported {
				out = append(out, strings.Fields(all)[i])
			}
		}
	}
	return r.ExitCode, strings.Join(out, " "), r
}

// TestAttacksAtTheVerifier: the exit code of each attack is exactly 2 when it is
// sealed again, with exactly the claims that rest on what was altered, and
// exactly 4 when it is not.
func TestAttacksAtTheVerifier(t *testing.T) {
	t.Parallel()
	honest := frozenRun(t)
	if exit, fails, r := verdictOf(t, honest); exit != verifier.ExitPass || fails != "" {
		t.Fatalf("honest: exit %d: %s", exit, r.Summary)
	}
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			edit := func(doc map[string]any) { a.edit(document{t, doc}) }
			exit, fails, r := verdictOf(t, edited(honest, edit))
			if exit != verifier.ExitSemantic || len(r.Content.Result.Claims) > 0 && fails != a.fails { // else no claim was tried, see "all" in attacks
				t.Errorf("sealed again: exit %d, fails %q, want %q: %s", exit, fails, a.fails, r.Summary)
			}
			raw := naive.MustParse(honest)
			edit(raw)
			want := verifier.ExitEnvelope
			if strings.HasSuffix(a.name, "out of order") { // of nodes, which no leaf covers
				want = verifier.ExitSemantic
			}
			if exit, _, r := verdictOf(t, naive.File(raw)); exit != want {
				t.Errorf("not sealed again: exit %d: %s", exit, r.Summary)
			}
		})
	}
}

// TestEnvelopeAttacks: attacks that need no knowledge of runs, with their exit
// codes. 3 is what anybody can make of an unsigned file; it is never a pass.
func TestEnvelopeAttacks(t *testing.T) {
	t.Parallel()
	honest := frozenRun(t)
	withheld := func(id string) map[string]any {
		return map[string]any{"redacted": true, "record": map[string]any{"id": id}}
	}
	for _, a := range []struct {
		name   string
		sealed bool
		edit   func(document)
		exit   int
	}{
		{"section added", true, func(d document) { d.doc["note"] = "approved" }, 4},
		{"section dropped", false, func(d document) { delete(d.doc, "action") }, 4},
		{"leaf dropped", false, func(d document) { naive.Remove(d.doc, "integrity", "leaves", "node:segment:3") }, 4},
		{"leaf added", false, func(d document) {
			naive.Put(d.doc, "sha256:"+strings.Repeat("0", 64), "integrity", "leaves", "node:segment:9")
		}, 4},
		{"upstream of no chain", true, func(d document) { naive.Put(d.doc, []any{}, "evidence_closure", "upstream") }, 4},
		{"version renamed", true, func(d document) { naive.Put(d.doc, "chaind-run-3", "engine", "tessera_version") }, 3},
		{"domain renamed in one place", true, func(d document) { naive.Put(d.doc, "business", "engine", "domain") }, 2},
		{"domain renamed", true, func(d document) {
			naive.Put(d.doc, "business", "engine", "domain")
			naive.Put(d.doc, "business", "result", "domain")
		}, 3},
		{"shape renamed", true, func(d document) { naive.Put(d.doc, "x", "engine", "claim_shapes", 0) }, 3},
		{"segment withheld", false, func(d document) { d.nodes()[d.position("segment:3")] = withheld("segment:3") }, 3},
		{"phantom withheld", false, func(d document) { d.setNodes(append(d.nodes(), withheld("segment:9"))) }, 4},
		{"nodes emptied", true, func(d document) {
			d.setNodes([]any{})
			naive.Put(d.doc, []any{}, "evidence_closure", "graph", "edges")
			naive.Put(d.doc, []any{}, "evidence_closure", "kb", "records")
		}, 3}, // EMPTY: what it says rests on nothing
	} {
		doc := naive.MustParse(honest)
		a.edit(document{t, doc})
		if a.sealed {
			naive.Seal(doc)
		}
		exit, _, r := verdictOf(t, naive.File(doc))
		if exit != a.exit {
			t.Errorf("%s: exit %d, want %d: %s", a.name, exit, a.exit, r.Summary)
		}
		if exit == verifier.ExitDegraded && slices.ContainsFunc(r.Content.Claims, func(c verifier.ClaimReport) bool { return c.Verdict == verifier.ClaimRederived }) {
			t.Errorf("%s: claims of what was not executed are called re-derived: %+v", a.name, r.Content.Claims)
		}
	}
}

// brief chains bundles, and fails when one of them may not be cited.
func brief(t *testing.T, question string, texts ...string) string {
	t.Helper()
	var upstreams []*bundle.Bundle
	for _, text := range texts {
		b, err := bundle.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		upstreams = append(upstreams, b)
	}
	draft, _, err := engine.NewChain(engine.Chain(engine.ChainVersion), question, upstreams, domains.All())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := bundle.Write(&out, draft, nil); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestAttacksInsideAChain: every attack, sealed again, stands below a chain that
// an honest program made of it before the attack, with root and digests carried
// through. None passes, at depth one nor at depth three.
func TestAttacksInsideAChain(t *testing.T) {
	t.Parallel()
	honest := frozenRun(t)
	other := write(t, failedRun(t), run.QuestionRun, run.DefaultKeep)
	one := brief(t, "Which outcome was recorded?", honest, other)
	three := brief(t, "Which outcome?", brief(t, "Outcome?", one))
	for name, text := range map[string]string{"one": one, "three": three} {
		if exit, _, r := verdictOf(t, text); exit != verifier.ExitPass {
			t.Fatalf("depth %s: exit %d: %s", name, exit, r.Summary)
		}
	}
	for i, a := range attacks {
		forged := edited(honest, func(doc map[string]any) { a.edit(document{t, doc}) })
		for depth, text := range map[int]string{1: one, 3: three} {
			if depth == 3 && i%10 != 0 {
				continue
			}
			exit, _, r := verdictOf(t, replacedBelow(text, honest, forged, depth))
			if exit != verifier.ExitSemantic && exit != verifier.ExitEnvelope {
				t.Errorf("%s at depth %d: exit %d: %s", a.name, depth, exit, r.Summary)
			}
		}
	}
}

// replacedBelow exchanges the lowest first upstream of a chain, carries its root
// through all above it, and seals those again from below.
func replacedBelow(text, old, forged string, depth int) string {
	root := func(doc map[string]any) string { return naive.At(doc, "integrity", "root").(string) }
	path := []any{"evidence_closure", "upstream", 0}
	levels := []map[string]any{naive.MustParse(text)}
	for range depth - 1 {
		levels = append(levels, naive.At(levels[len(levels)-1], path...).(map[string]any))
	}
	below := naive.MustParse(forged)
	from, to := root(naive.MustParse(old)), root(below)
	for i := len(levels) - 1; i >= 0; i-- {
		before := root(levels[i])
		naive.Put(levels[i], nil, path...)
		carried := strings.NewReplacer(from, to, "chain:"+from[7:19], "chain:"+to[7:19]).Replace(naive.Canon(levels[i]))
		level := naive.MustParse(carried)
		naive.Put(level, any(below), path...)
		naive.Seal(level)
		below, from, to = level, before, root(level)
	}
	return naive.File(below)
}
