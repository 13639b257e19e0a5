package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/naive"
)

const pumps = "What failed at the pump site?"

// pumpBundle answers another question from the evidence of E1.
func pumpBundle(tb testing.TB, question string) string {
	tb.Helper()
	c := mustClosure(tb, mustParse(tb, readFile(tb, e1File)))
	return seal(tb, demo(), question, c.Graph, c.KB)
}

// replaced alters the text of a chain everywhere outside its upstreams.
func replaced(doc map[string]any, pairs ...string) map[string]any {
	upstream := naive.At(doc, "evidence_closure", "upstream")
	naive.Remove(doc, "evidence_closure", "upstream")
	doc = naive.MustParse(strings.NewReplacer(pairs...).Replace(naive.Canon(doc)))
	naive.Put(doc, upstream, "evidence_closure", "upstream")
	return doc
}

// TestDeepForgery: an upstream that was forged and sealed again, and a chain
// rewritten to fit it everywhere, is caught by recursion alone.
func TestDeepForgery(t *testing.T) {
	chain := naive.MustParse(chainOf(t, pumps, readFile(t, e1File)))
	up := naive.At(chain, "evidence_closure", "upstream", 0).(map[string]any)
	oldRoot := naive.At(up, "integrity", "root").(string)
	const old, forged = "Pump P-7 failed on 2026-03-04", "Pump P-7 failed on 2026-03-05"
	naive.Put(up, strings.Replace(naive.At(up, "result", "claims", 0, "text").(string), old, forged, 1), "result", "claims", 0, "text")
	naive.Seal(up)
	root := naive.At(up, "integrity", "root").(string)
	chain = replaced(chain, oldRoot, root, "chain:"+oldRoot[7:19], "chain:"+root[7:19], old, forged)
	naive.Seal(chain)
	j := mustJudge(t, naive.File(chain))
	if len(j.Integrity.Findings) > 0 || j.Answer != engine.AnswerRederives {
		t.Errorf("the forgery is not consistent: %v, answer %s", codes(j.Integrity.Findings), j.Answer)
	}
	for _, c := range j.Claims {
		if c.Cause != nil || !c.Rederived {
			t.Errorf("the forgery is not consistent: claim %+v", c)
		}
	}
	if j.Verdict() != engine.Fail || j.Upstreams[0].Verdict != engine.Fail || j.Structural[0].Code != engine.UpstreamFails {
		t.Errorf("%s, upstream %s, %v", j.Verdict(), j.Upstreams[0].Verdict, codes(j.Structural))
	}
}

// TestChainAttacks: alterations of a chain over two bundles, sealed again.
func TestChainAttacks(t *testing.T) {
	honest := chainOf(t, pumps, readFile(t, e1File), pumpBundle(t, "Which pump passed?"))
	if j := mustJudge(t, honest); j.Verdict() != engine.Pass || len(j.Upstreams) != 2 {
		t.Fatalf("honest: %s", j.Cause())
	}
	altered := func(path ...any) func(d map[string]any) map[string]any {
		return func(d map[string]any) map[string]any {
			naive.Put(d, "altered", path...)
			return d
		}
	}
	kb := []any{"evidence_closure", "kb", "records", 0}
	for _, tt := range []struct {
		name string
		edit func(d map[string]any) map[string]any
		want engine.Code // among the failures
	}{
		{"cited text, in all places", func(d map[string]any) map[string]any { return replaced(d, "Überdruck", "Unterdruck") }, engine.CitedTextAltered},
		{"upstream swapped for another that passes", func(d map[string]any) map[string]any {
			other := naive.MustParse(pumpBundle(t, "Which site holds pumps?"))
			naive.Put(d, other, "evidence_closure", "upstream", 0)
			return d
		}, engine.CitesUnusable},
		{"upstream removed", func(d map[string]any) map[string]any {
			naive.Remove(d, "evidence_closure", "upstream", 1)
			return d
		}, engine.CitesUnusable},
		{"upstreams in another order", func(d map[string]any) map[string]any {
			slices.Reverse(naive.At(d, "evidence_closure", "upstream").([]any))
			return d
		}, engine.OtherCorpus},
		{"record source", altered(append(kb, "origin", "source")...), engine.OtherCorpus},
		{"record date", altered(append(kb, "origin", "ingested_at")...), engine.OtherCorpus},
		{"record id", altered(append(kb, "id")...), engine.OtherCorpus},
		{"record kind", altered(append(kb, "origin", "locator", "kind")...), engine.NotACitation},
		{"record label", altered(append(kb, "origin", "locator", "parts", 0, 0)...), engine.NotACitation},
		{"record root", altered(append(kb, "origin", "locator", "parts", 0, 1)...), engine.CitesUnusable},
		{"record index", func(d map[string]any) map[string]any {
			naive.Put(d, "17", append(kb, "origin", "locator", "parts", 1, 1)...)
			return d
		}, engine.CitesNoClaim},
		{"record index in another spelling", func(d map[string]any) map[string]any {
			naive.Put(d, "00", append(kb, "origin", "locator", "parts", 1, 1)...)
			return d
		}, engine.CitesNoClaim},
		{"record index superscript", func(d map[string]any) map[string]any {
			naive.Put(d, "²", append(kb, "origin", "locator", "parts", 1, 1)...)
			return d
		}, engine.CitesNoClaim},
		{"record index huge", func(d map[string]any) map[string]any {
			naive.Put(d, strings.Repeat("9", 100), append(kb, "origin", "locator", "parts", 1, 1)...)
			return d
		}, engine.CitesNoClaim},
		{"second part of one label wins", func(d map[string]any) map[string]any {
			parts := naive.At(d, append(kb, "origin", "locator", "parts")...).([]any)
			naive.Put(d, append(parts, []any{"claim", "9"}), append(kb, "origin", "locator", "parts")...)
			return d
		}, engine.CitesNoClaim},
		{"additional member of a record", altered(append(kb, "note")...), engine.OtherCorpus},
		{"additional member of the kb", altered("evidence_closure", "kb", "note"), engine.OtherCorpus},
		{"record dropped", func(d map[string]any) map[string]any {
			naive.Remove(d, "evidence_closure", "kb", "records", 2)
			return d
		}, engine.OtherCorpus},
		{"record twice", func(d map[string]any) map[string]any {
			list := naive.At(d, "evidence_closure", "kb", "records").([]any)
			naive.Put(d, append(list, list[0]), "evidence_closure", "kb", "records")
			return d
		}, engine.OtherCorpus},
		{"unwelcome record dropped everywhere", func(d map[string]any) map[string]any {
			naive.Remove(d, "evidence_closure", "kb", "records", 2)
			naive.Remove(d, "evidence_closure", "graph", "nodes", 2)
			return d
		}, engine.OtherCorpus},
		{"additional node", func(d map[string]any) map[string]any {
			list := naive.At(d, "evidence_closure", "graph", "nodes").([]any)
			n := naive.Clone(list[0])
			naive.Put(n, "chain:ffffffffffff:c0", "record", "id")
			naive.Put(d, append(list, n), "evidence_closure", "graph", "nodes")
			return d
		}, engine.OtherCorpus},
		{"nodes in another order", func(d map[string]any) map[string]any {
			slices.Reverse(naive.At(d, "evidence_closure", "graph", "nodes").([]any))
			return d
		}, engine.OtherCorpus},
		{"edge between claims", func(d map[string]any) map[string]any {
			id := naive.At(d, append(kb, "id")...)
			naive.Put(d, []any{map[string]any{"src": id, "dst": id, "relation": "r"}}, "evidence_closure", "graph", "edges")
			return d
		}, engine.OtherCorpus},
		{"no upstream list", func(d map[string]any) map[string]any { naive.Remove(d, "evidence_closure", "upstream"); return d }, engine.UpstreamsMissing},
		{"upstream is no bundle", altered("evidence_closure", "upstream", 0), engine.UpstreamMalformed},
		{"upstream of another format", altered("evidence_closure", "upstream", 0, "format", "name"), engine.UpstreamFails},
		{"upstream with a broken envelope", altered("evidence_closure", "upstream", 0, "result", "question"), engine.UpstreamFails},
		{"upstream without result", altered("evidence_closure", "upstream", 0, "result"), engine.UpstreamFails},
		{"closure label", func(d map[string]any) map[string]any {
			naive.Put(d, bundle.KindFull, "evidence_closure", "kind")
			return d
		}, engine.WrongClosureKind},
		{"a claim of its own", func(d map[string]any) map[string]any {
			naive.Put(d, "All pumps are well.", "result", "claims", 0, "text")
			return d
		}, engine.ClaimUnsupported},
	} {
		doc := tt.edit(naive.MustParse(honest))
		naive.Seal(doc)
		r, err := engine.Rederive(mustParse(t, naive.File(doc)), known())
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		} else if !r.Failed() || !slices.Contains(codes(r.Failures()), string(tt.want)) {
			t.Errorf("%s: failures %v, want %s among them", tt.name, codes(r.Failures()), tt.want)
		}
	}
}

// TestUnverifiedUpstreamClaims: an upstream with a claim that is not verified
// does not pass, so nothing of it can be cited.
func TestUnverifiedUpstreamClaims(t *testing.T) {
	_, _, err := engine.NewChain(engine.Chain("1.0.0"), "red items", []*bundle.Bundle{mustParse(t, sealToy(t, heavy))}, known())
	var refused *engine.ChainError
	if !errors.As(err, &refused) || refused.Code != engine.ChainNotPass || refused.Verdict != engine.Degraded {
		t.Errorf("%v", err)
	}
}

func TestChainRefusals(t *testing.T) {
	e1 := readFile(t, e1File)
	unsealed := naive.MustParse(e1)
	delete(unsealed, "integrity")
	forged := edited(t, e1, func(d map[string]any) { naive.Put(d, "All is well.", "result", "claims", 0, "text") })
	tampered := naive.MustParse(e1)
	naive.Put(tampered, "x", "result", "question")
	version := edited(t, e1, func(d map[string]any) { naive.Put(d, "9.9.9", "engine", "tessera_version") })
	malformed := edited(t, e1, func(d map[string]any) { naive.Put(d, "x", "result") })
	refusal := pumpBundle(t, "zebra quasar")
	for _, tt := range []struct {
		name  string
		files []string
		code  engine.Code
		at    int
	}{
		{"none", nil, engine.ChainEmpty, -1},
		{"unsealed", []string{e1, naive.File(unsealed)}, engine.ChainUnsealed, 1},
		{"twice", []string{e1, refusal, e1}, engine.ChainTwice, 2},
		{"forged", []string{forged}, engine.ChainNotPass, 0},
		{"tampered", []string{refusal, naive.File(tampered)}, engine.ChainNotPass, 1},
		{"other version", []string{version}, engine.ChainNotPass, 0},
		{"malformed", []string{malformed}, engine.ChainMalformed, 0},
		{"refusals only", []string{refusal}, engine.ChainNoClaims, -1},
	} {
		var upstreams []*bundle.Bundle
		for _, f := range tt.files {
			upstreams = append(upstreams, mustParse(t, f))
		}
		draft, decision, err := engine.NewChain(engine.Chain("1.0.0"), pumps, upstreams, known())
		var refused *engine.ChainError
		if !errors.As(err, &refused) || refused.Code != tt.code || refused.Upstream != tt.at || refused.Error() == "" || draft != nil || decision != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if j := mustJudge(t, chainOf(t, pumps, refusal, e1)); j.Verdict() != engine.Pass || len(j.Recorded.Claims) != 3 {
		t.Errorf("a refusal beside a citable bundle: %s", j.Cause())
	}
}

// TestChainOfChains: up to the limit of depth, and not above it.
func TestChainOfChains(t *testing.T) {
	file := readFile(t, e1File)
	for depth := 1; depth <= bundle.MaxChain; depth++ {
		file = chainOf(t, pumps, file)
		if depth > 3 && depth < bundle.MaxChain {
			continue
		}
		b := mustParse(t, file)
		j := mustJudge(t, file)
		if j.Verdict() != engine.Pass || b.ChainDepth() != depth || len(j.Claims) != 3 {
			t.Errorf("depth %d (counted %d): %s", depth, b.ChainDepth(), j.Cause())
		}
		links := 0
		for ; len(j.Upstreams) == 1; j = j.Upstreams[0].Judgement {
			links++
		}
		if links != depth {
			t.Errorf("depth %d: %d links were verified", depth, links)
		}
	}
	_, _, err := engine.NewChain(engine.Chain("1.0.0"), pumps, []*bundle.Bundle{mustParse(t, file)}, known())
	var refused *engine.ChainError
	if !errors.As(err, &refused) || refused.Code != engine.ChainTooDeep {
		t.Errorf("one more: %v", err)
	}
}

// TestForgeryAtTheBottom: three chains above a forged bundle, all made by a
// forger whose own engine believes it, still fail at the top.
func TestForgeryAtTheBottom(t *testing.T) {
	const lie = "Pump P-7 failed on 2026-03-05 (Überdruck, 3 bar)."
	honest := demo()
	honest.Name, honest.Grammars = "lax", []engine.Grammar{{ID: "lax.any", Judge: always(engine.NoOpinion)}}
	lying := demo()
	lying.Name, lying.Grammars = "lax", []engine.Grammar{{ID: "lax.any", Judge: always(engine.Supported)}}
	lying.Route = func(question string, g *engine.Graph, kb []engine.Record) (*engine.Answer, error) {
		a, err := honest.Route(question, g, kb)
		if err == nil {
			a.Claims[0].Text = lie
		}
		return a, err
	}
	c := mustClosure(t, mustParse(t, readFile(t, e1File)))
	file := seal(t, lying, "Which pump failed?", c.Graph, c.KB)
	gullible := engine.Registry{engine.Chain("1.0.0"), lying}
	for range 3 {
		draft, _, err := engine.NewChain(engine.Chain("1.0.0"), pumps, []*bundle.Bundle{mustParse(t, file)}, gullible)
		if err != nil {
			t.Fatal(err)
		}
		file = write(t, draft)
	}
	j, err := engine.Judge(mustParse(t, file), append(known(), honest))
	if err != nil || j.Verdict() != engine.Fail || j.Answer != engine.AnswerRederives || len(j.Integrity.Findings) > 0 {
		t.Fatalf("%v, %v", j.Verdict(), err)
	}
	for level := range 3 {
		if len(j.Upstreams) != 1 || j.Upstreams[0].Verdict != engine.Fail {
			t.Fatalf("level %d: %+v", level, j.Upstreams)
		}
		j = j.Upstreams[0].Judgement
	}
	if j.Claims[0].Cause == nil || j.Claims[0].Cause.Code != engine.ClaimUnsupported || j.Claims[1].Cause != nil {
		t.Errorf("at the bottom: %+v", j.Claims)
	}
}

func always(o engine.Opinion) func(*engine.Claim, *engine.Graph) (engine.Opinion, error) {
	return func(*engine.Claim, *engine.Graph) (engine.Opinion, error) { return o, nil }
}

// TestRedactedChain: a chain may be redacted like any bundle; what embeds a
// redacted bundle fails.
func TestRedactedChain(t *testing.T) {
	chain := chainOf(t, pumps, readFile(t, e1File))
	for name, doc := range map[string]map[string]any{"kb": redacted(chain, true), "kb and nodes": redacted(chain, true, 0, 2)} {
		j := mustJudge(t, naive.File(doc))
		if j.Verdict() != engine.Degraded || len(j.Upstreams) != 1 || j.Upstreams[0].Verdict != engine.Pass || j.Answer != engine.AnswerNotPerformed {
			t.Errorf("%s: %s: %s", name, j.Verdict(), j.Cause())
		}
	}
	wrong := redacted(chainOf(t, "Überdruck", readFile(t, e1File)), true, 1)
	naive.Put(wrong, map[string]any{"redacted": true, "record": map[string]any{"id": "chain:2228e74fb7c9:c7"}}, "evidence_closure", "graph", "nodes", 1)
	naive.Put(wrong, "sha256:"+strings.Repeat("0", 64), "integrity", "leaves", "node:chain:2228e74fb7c9:c7")
	naive.Seal(wrong)
	if j := mustJudge(t, naive.File(wrong)); j.Verdict() != engine.Fail || !slices.Contains(codes(j.Structural), string(engine.OtherCorpus)) {
		t.Errorf("a withheld node with another id: %s, %v", j.Verdict(), codes(j.Failures()))
	}
	visible := redacted(chain, true, 2)
	naive.Put(visible, "All pumps are well.", "evidence_closure", "graph", "nodes", 0, "record", "text")
	naive.Seal(visible)
	if j := mustJudge(t, naive.File(visible)); j.Verdict() != engine.Fail || !slices.Contains(codes(j.Structural), string(engine.CitedTextAltered)) {
		t.Errorf("a visible node altered: %s, %v", j.Verdict(), codes(j.Failures()))
	}
	above := naive.MustParse(chain)
	naive.Put(above, any(redacted(readFile(t, e1File), true, 1)), "evidence_closure", "upstream", 0)
	naive.Seal(above)
	if j := mustJudge(t, naive.File(above)); j.Verdict() != engine.Fail || j.Upstreams[0].Verdict != engine.Degraded {
		t.Errorf("a redacted upstream: %s", j.Verdict())
	}
}

// TestCitationGrammar: it owns claims with one bundle claim as support.
func TestCitationGrammar(t *testing.T) {
	cited := engine.Record{ID: "chain:a:c0", Locator: engine.Locator{Kind: "bundle-claim"}, Text: "Pump failed."}
	plain := engine.Record{ID: "x", Locator: engine.Locator{Kind: "table-row"}, Text: "Pump failed."}
	ghost := engine.Record{ID: "ghost", Locator: engine.Locator{Kind: "bundle-claim"}, Text: "Pump failed."}
	g := engine.NewGraph([]engine.Node{{Record: cited}, {Record: plain}}, nil, nil, nil)
	judge := engine.Chain("v").Grammars[0].Judge
	for _, tt := range []struct {
		text    string
		support []*engine.Record
		want    engine.Opinion
	}{
		{"Pump failed.", []*engine.Record{&cited}, engine.Supported},
		{"Pump failed", []*engine.Record{&cited}, engine.Unsupported},
		{"pump failed.", []*engine.Record{&cited}, engine.Unsupported},
		{"Pump failed.", []*engine.Record{&ghost}, engine.Unsupported},
		{"Pump failed.", []*engine.Record{{ID: "x", Locator: engine.Locator{Kind: "bundle-claim"}}}, engine.Unsupported},
		{"Pump failed.", []*engine.Record{&plain}, engine.NoOpinion},
		{"Pump failed.", []*engine.Record{&cited, &cited}, engine.NoOpinion},
		{"Pump failed.", nil, engine.NoOpinion},
	} {
		if got, err := judge(&engine.Claim{Text: tt.text, Support: tt.support}, g); got != tt.want || err != nil {
			t.Errorf("%q over %v: %v, %v", tt.text, tt.support, got, err)
		}
	}
}

// replaying stands in for a domain that this test has not: it answers the
// recorded question of one published bundle with the recorded answer, and
// anything else with a refusal.
func replaying(tb testing.TB, file string) *engine.Domain {
	tb.Helper()
	b := mustParse(tb, readFile(tb, vectors+file))
	recorded, err := engine.ReadDecision(b.Result)
	if err != nil {
		tb.Fatal(err)
	}
	answer := &engine.Answer{Route: recorded.Route}
	texts := map[string]bool{}
	for _, c := range recorded.Claims {
		answer.Claims = append(answer.Claims, engine.Claim{Text: c.Text, Support: c.Support})
		texts[c.Text] = true
	}
	judge := func(c *engine.Claim, _ *engine.Graph) (engine.Opinion, error) {
		if texts[c.Text] {
			return engine.Supported, nil
		}
		return engine.Unsupported, nil
	}
	d := &engine.Domain{Name: recorded.Domain, Version: engine.ReferenceVersion, Route: func(question string, _ *engine.Graph, _ []engine.Record) (*engine.Answer, error) {
		if question == recorded.Question {
			return answer, nil
		}
		return &engine.Answer{}, nil
	}}
	for _, shape := range b.Engine.Get("claim_shapes").Items() {
		d.Grammars = append(d.Grammars, engine.Grammar{ID: shape.Text(), Judge: judge})
	}
	return d
}

// TestPublishedChain: the chain's own part of the published brief.tsb (corpus,
// citations, ranking, answer bytes), with its upstreams' domains replayed: this
// says nothing about business and devex.
func TestPublishedChain(t *testing.T) {
	registry := engine.Registry{engine.Chain(engine.ReferenceVersion), replaying(t, "honest.tsb"), replaying(t, "rca.tsb")}
	brief := readFile(t, vectors+"brief.tsb")
	judge := func(text string) *engine.Judgement {
		j, err := engine.Judge(mustParse(t, text), registry)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	j := judge(brief)
	if j.Verdict() != engine.Pass || len(j.Upstreams) != 2 || len(j.Claims) != 5 || j.Answer != engine.AnswerRederives {
		t.Fatalf("%s: %s", j.Verdict(), j.Cause())
	}
	for _, attack := range []struct {
		name string
		edit func(d map[string]any) map[string]any
		want []string
	}{
		{"chain_cited_text_tamper", func(d map[string]any) map[string]any {
			text := naive.At(d, "evidence_closure", "kb", "records", 0, "text").(string)
			quoted := naive.Canon(text)
			return replaced(d, quoted[1:len(quoted)-1], quoted[1:len(quoted)-1]+" [reviewed and approved]")
		}, []string{"cited_text_altered", "other_corpus"}},
		{"chain_upstream_drop", func(d map[string]any) map[string]any {
			naive.Remove(d, "evidence_closure", "upstream", 1)
			return d
		}, []string{"cites_unusable_upstream", "cites_unusable_upstream", "cites_unusable_upstream", "other_corpus"}},
	} {
		doc := attack.edit(naive.MustParse(brief))
		naive.Seal(doc)
		j := judge(naive.File(doc))
		if diff := cmp.Diff(attack.want, codes(j.Structural)); diff != "" || j.Verdict() != engine.Fail {
			t.Errorf("%s: %s (-want +got):\n%s", attack.name, j.Verdict(), diff)
		}
	}
	var upstreams []*bundle.Bundle
	for _, up := range mustParse(t, brief).Upstream().Items() {
		b, err := bundle.Open(up)
		if err != nil {
			t.Fatal(err)
		}
		upstreams = append(upstreams, b)
	}
	draft, decision, err := engine.NewChain(engine.Chain(engine.ReferenceVersion), j.Recorded.Question, upstreams, registry)
	if err != nil {
		t.Fatal(err)
	}
	if got := write(t, draft); got != brief || len(decision.Claims) != 5 {
		t.Error("the chain built anew from its upstreams is not the published file")
	}
}

// TestReformattedUpstream: the layout of an upstream file does not enter.
func TestReformattedUpstream(t *testing.T) {
	e1 := readFile(t, e1File)
	if chainOf(t, pumps, e1) != chainOf(t, pumps, " "+strings.ReplaceAll(e1, `","`, "\" ,\n\"")) {
		t.Error("the chain depends on the layout of its upstream")
	}
}

// TestManyUpstreams: the work grows with the file.
func TestManyUpstreams(t *testing.T) {
	var files []string
	for i := range 40 {
		files = append(files, pumpBundle(t, fmt.Sprintf("Which pump failed %d?", i)))
	}
	j := mustJudge(t, chainOf(t, pumps, files...))
	if j.Verdict() != engine.Pass || len(j.Upstreams) != 40 || len(j.Claims) != 5 {
		t.Errorf("%s: %s", j.Verdict(), j.Cause())
	}
}
