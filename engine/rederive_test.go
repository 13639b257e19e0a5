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

const heavy = "How heavy are the red items?"

func sealToy(tb testing.TB, question string) string {
	g, kb := toyGraph()
	return seal(tb, toy(), question, g, kb)
}

// TestToy: what an honest domain seals re-derives, refusals included; a claim
// that was recorded as unverified degrades.
func TestToy(t *testing.T) {
	for _, tt := range []struct {
		question string
		verdict  engine.Verdict
		verified []bool
	}{
		{heavy, engine.Degraded, []bool{true, true, false}},
		{"Which item is the heaviest?", engine.Pass, []bool{true}},
		{"find the red serial X30", engine.Pass, []bool{true, true, true}},
		{"find nothing", engine.Pass, nil},
		{"Who are you?", engine.Pass, nil},
		{"How heavy are the green items?", engine.Pass, nil},
	} {
		text := sealToy(t, tt.question)
		j := mustJudge(t, text)
		if j.Verdict() != tt.verdict || j.Failed() || j.Answer != engine.AnswerRederives || j.Taxonomy != engine.ReDerived {
			t.Errorf("%q: %s, %s, answer %s", tt.question, j.Verdict(), j.Cause(), j.Answer)
		}
		var verified []bool
		for i, c := range j.Claims {
			verified = append(verified, c.Rederived)
			if c.Index != i || c.Recorded != c.Rederived || !c.Evaluated {
				t.Errorf("%q: claim %+v", tt.question, c)
			}
		}
		if diff := cmp.Diff(tt.verified, verified); diff != "" {
			t.Errorf("%q: verified (-want +got):\n%s", tt.question, diff)
		}
		if sealToy(t, tt.question) != text {
			t.Errorf("%q: sealed twice, two files", tt.question)
		}
	}
	j := mustJudge(t, sealToy(t, "find nothing"))
	if !j.Recorded.Refused || j.Recorded.Refusal != engine.DefaultRefusal {
		t.Errorf("refusal %q", j.Recorded.Refusal)
	}
}

// attack is an alteration of the honest bundle, sealed again, and what must be
// found. The envelope is intact in all of them.
type attack struct {
	name     string
	question string // "": heavy
	edit     func(d map[string]any)
	verdict  engine.Verdict
	failures []string
	bad      []int // claims with a cause
}

var attacks = []attack{
	{name: "stored verdict flipped up (case V11)", edit: func(d map[string]any) {
		naive.Put(d, true, "result", "claims", 2, "verified")
		naive.Put(d, true, "result", "all_verified")
	}, verdict: engine.Fail, failures: []string{"claim_unsupported", "answer_metadata"}, bad: []int{2}},
	{name: "stored verdict flipped down", edit: func(d map[string]any) {
		naive.Put(d, false, "result", "claims", 0, "verified")
	}, verdict: engine.Fail, failures: []string{"claim_altered", "answer_metadata"}, bad: []int{0}},
	{name: "summary of verdicts alone (case V11)", edit: func(d map[string]any) {
		naive.Put(d, true, "result", "all_verified")
	}, verdict: engine.Fail, failures: []string{"answer_derived"}},
	{name: "claim text", edit: func(d map[string]any) {
		naive.Put(d, "The 3 red item(s) weigh 99 kg.", "result", "claims", 0, "text")
	}, verdict: engine.Fail, failures: []string{"claim_unsupported", "answer_claims"}, bad: []int{0}},
	{name: "claim text that its evidence contains", edit: func(d map[string]any) {
		naive.Put(d, "Item 5 is red", "result", "claims", 1, "text")
	}, verdict: engine.Fail, failures: []string{"answer_claims"}},
	{name: "evidence of one fact, and nothing else", edit: func(d map[string]any) {
		naive.Put(d, "11", "evidence_closure", "graph", "nodes", 0, "attributes", 1, 1)
	}, verdict: engine.Fail, failures: []string{"claim_unsupported", "answer_claims"}, bad: []int{0}},
	{name: "evidence and claim, consistently", edit: func(d map[string]any) {
		naive.Put(d, "11", "evidence_closure", "graph", "nodes", 0, "attributes", 1, 1)
		naive.Put(d, "The 3 red item(s) weigh 91 kg.", "result", "claims", 0, "text")
	}, verdict: engine.Degraded},
	{name: "route", edit: func(d map[string]any) { naive.Put(d, "lookup", "result", "route", "kind") }, verdict: engine.Fail, failures: []string{"answer_metadata"}},
	{name: "route reason", edit: func(d map[string]any) { naive.Put(d, "because", "result", "route", "reason") }, verdict: engine.Fail, failures: []string{"answer_metadata"}},
	{name: "question", edit: func(d map[string]any) { naive.Put(d, "How heavy are the blue items?", "result", "question") }, verdict: engine.Fail, failures: []string{"answer_claims"}},
	{name: "question that is refused", edit: func(d map[string]any) { naive.Put(d, "Who are you?", "result", "question") }, verdict: engine.Fail, failures: []string{"answer_mode"}},
	{name: "support text", edit: func(d map[string]any) {
		naive.Put(d, "Item 5 is red and free of charge and weighs 50 kg.", "result", "claims", 0, "support", 2, "text")
	}, verdict: engine.Fail, failures: []string{"answer_metadata"}},
	{name: "support source", edit: func(d map[string]any) {
		naive.Put(d, "board/minutes.md", "result", "claims", 0, "support", 0, "source")
	}, verdict: engine.Fail, failures: []string{"answer_metadata"}},
	{name: "support order", edit: func(d map[string]any) {
		slices.Reverse(naive.At(d, "result", "claims", 0, "support").([]any))
	}, verdict: engine.Fail, failures: []string{"answer_metadata"}},
	{name: "support dropped", edit: func(d map[string]any) { naive.Remove(d, "result", "claims", 0, "support", 0) }, verdict: engine.Fail,
		failures: []string{"claim_unsupported", "answer_metadata"}, bad: []int{0}},
	{name: "support that is not packaged", edit: func(d map[string]any) {
		s := naive.Clone(naive.At(d, "result", "claims", 0, "support").([]any))
		naive.Put(s[0], "ghost", "id")
		naive.Put(d, append(s, s[0]), "result", "claims", 0, "support")
	}, verdict: engine.Fail, failures: []string{"dangling_reference"}},
	{name: "no support at all", edit: func(d map[string]any) { naive.Put(d, []any{}, "result", "claims", 1, "support") }, verdict: engine.Fail, failures: []string{"reexecution_failed"}},
	{name: "render string", edit: func(d map[string]any) {
		naive.Put(d, "table PAYROLL, row 7", "result", "claims", 0, "support", 0, "locator", "render")
	}, verdict: engine.Fail, failures: []string{"answer_derived"}},
	{name: "additional member of the result", edit: func(d map[string]any) { naive.Put(d, "yes", "result", "approved") }, verdict: engine.Fail, failures: []string{"answer_derived"}},
	{name: "claims in another order", edit: func(d map[string]any) { slices.Reverse(naive.At(d, "result", "claims").([]any)) }, verdict: engine.Fail, failures: []string{"answer_claims"}},
	{name: "claim dropped", edit: func(d map[string]any) { naive.Remove(d, "result", "claims", 2) }, verdict: engine.Fail, failures: []string{"answer_claims"}},
	{name: "unwelcome record dropped", edit: func(d map[string]any) {
		naive.Remove(d, "evidence_closure", "graph", "nodes", 2)
	}, verdict: engine.Fail, failures: []string{"dangling_reference", "dangling_reference"}},
	{name: "record without references dropped", question: "How heavy are the blue items?", edit: func(d map[string]any) {
		naive.Remove(d, "evidence_closure", "graph", "nodes", 3)
		naive.Remove(d, "evidence_closure", "graph", "resolutions", 0)
	}, verdict: engine.Fail, failures: []string{"dangling_reference", "dangling_reference", "dangling_reference"}},
	{name: "evidence that cannot be evaluated", edit: func(d map[string]any) {
		naive.Put(d, "a lot", "evidence_closure", "graph", "nodes", 0, "attributes", 1, 1)
	}, verdict: engine.Fail, failures: []string{"reexecution_failed"}},
	{name: "evidence that only the router cannot evaluate", question: "How heavy are the green items?", edit: func(d map[string]any) {
		naive.Put(d, "Which is the heaviest?", "result", "question")
		naive.Put(d, "a lot", "evidence_closure", "graph", "nodes", 0, "attributes", 1, 1)
	}, verdict: engine.Fail, failures: []string{"reexecution_failed"}},
	{name: "closure label", edit: func(d map[string]any) { naive.Put(d, "cited-records-only", "evidence_closure", "kind") }, verdict: engine.Fail, failures: []string{"wrong_closure_kind"}},
	{name: "closure label null", edit: func(d map[string]any) { naive.Put(d, nil, "evidence_closure", "kind") }, verdict: engine.Fail, failures: []string{"wrong_closure_kind"}},
	{name: "edge to nowhere", edit: func(d map[string]any) {
		naive.Put(d, "item:9", "evidence_closure", "graph", "edges", 0, "dst")
	}, verdict: engine.Fail, failures: []string{"dangling_reference"}},
	{name: "mention of nothing", edit: func(d map[string]any) {
		naive.Put(d, "", "evidence_closure", "graph", "mentions", 0, "node")
	}, verdict: engine.Fail, failures: []string{"dangling_reference"}},
	{name: "resolution with nothing", edit: func(d map[string]any) {
		naive.Put(d, "item:0", "evidence_closure", "graph", "resolutions", 0, "node_b")
	}, verdict: engine.Fail, failures: []string{"dangling_reference"}},
	{name: "other domain", edit: func(d map[string]any) { naive.Put(d, "demo", "result", "domain") }, verdict: engine.Fail, failures: []string{"other_domain", "answer_metadata"}},
	{name: "both modes", edit: func(d map[string]any) { naive.Put(d, true, "result", "refused") }, verdict: engine.Fail,
		failures: []string{"invalid_mode", "invalid_mode", "invalid_mode", "answer_mode"}},
	{name: "neither mode", edit: func(d map[string]any) { naive.Put(d, false, "result", "grounded") }, verdict: engine.Fail, failures: []string{"invalid_mode", "answer_metadata"}},
	{name: "grounded with a refusal", edit: func(d map[string]any) { naive.Put(d, "no", "result", "refusal") }, verdict: engine.Fail, failures: []string{"invalid_mode", "answer_refusal"}},
	{name: "refusal without a reason", question: "Who are you?", edit: func(d map[string]any) { naive.Put(d, nil, "result", "refusal") }, verdict: engine.Fail, failures: []string{"invalid_mode", "answer_refusal"}},
	{name: "refusal for another reason", question: "Who are you?", edit: func(d map[string]any) { naive.Put(d, "None of your business.", "result", "refusal") }, verdict: engine.Fail, failures: []string{"answer_refusal"}},
	{name: "grounded and empty (case V15)", question: "Who are you?", edit: func(d map[string]any) {
		naive.Put(d, true, "result", "grounded")
		naive.Put(d, false, "result", "refused")
		naive.Put(d, nil, "result", "refusal")
	}, verdict: engine.Fail, failures: []string{"invalid_mode", "answer_mode"}},
	{name: "action as text", edit: func(d map[string]any) { d["action"] = "pay" }, verdict: engine.Fail, failures: []string{"action_malformed"}},
	{name: "action of a domain that has none", edit: func(d map[string]any) { d["action"] = map[string]any{"kind": "pay"} }, verdict: engine.Fail, failures: []string{"action_unknown"}},
	{name: "phantom record withheld", edit: func(d map[string]any) {
		nodes := naive.At(d, "evidence_closure", "graph", "nodes").([]any)
		naive.Put(d, append(nodes, map[string]any{"redacted": true, "record": map[string]any{"id": "ghost"}}), "evidence_closure", "graph", "nodes")
		naive.Put(d, "sha256:"+strings.Repeat("0", 64), "integrity", "leaves", "node:ghost")
		naive.Put(d, "The 3 red item(s) weigh 99 kg.", "result", "claims", 0, "text")
	}, verdict: engine.Fail, failures: []string{"claim_unsupported"}, bad: []int{0}},
	{name: "no evidence (case V15)", edit: func(d map[string]any) { naive.Put(d, []any{}, "evidence_closure", "graph", "nodes") }, verdict: engine.Degraded},
	{name: "more in the engine section", edit: func(d map[string]any) { naive.Put(d, "2027-01-01", "engine", "contract_not_after") }, verdict: engine.Degraded},
	{name: "unknown member of a node", edit: func(d map[string]any) { naive.Put(d, "x", "evidence_closure", "graph", "nodes", 0, "note") }, verdict: engine.Degraded},
}

// TestAttacks: a forger who seals again is found by re-execution, and exactly
// the claims that rested on what was altered are named.
func TestAttacks(t *testing.T) {
	for _, a := range attacks {
		question := a.question
		if question == "" {
			question = heavy
		}
		j := mustJudge(t, edited(t, sealToy(t, question), a.edit))
		if len(j.Integrity.Findings) > 0 {
			t.Errorf("%s: the envelope is broken", a.name)
		}
		if j.Verdict() != a.verdict || (j.Cause() == "") != (a.verdict == engine.Pass) {
			t.Errorf("%s: %s: %s", a.name, j.Verdict(), j.Cause())
		}
		if diff := cmp.Diff(a.failures, codes(j.Failures())); diff != "" {
			t.Errorf("%s: failures (-want +got):\n%s", a.name, diff)
		}
		var bad []int
		for _, c := range j.Claims {
			if c.Cause != nil {
				bad = append(bad, c.Index)
			}
		}
		if diff := cmp.Diff(a.bad, bad); diff != "" {
			t.Errorf("%s: claims at fault (-want +got):\n%s", a.name, diff)
		}
	}
}

// TestTaxonomy: what decides whether content is re-executed at all.
func TestTaxonomy(t *testing.T) {
	for _, tt := range []struct {
		name     string
		edit     func(d map[string]any)
		taxonomy engine.Taxonomy
		code     engine.Code
	}{
		{"domain", func(d map[string]any) {
			naive.Put(d, "toys", "engine", "domain")
			naive.Put(d, "toys", "result", "domain")
		}, engine.NotEvaluable, engine.UnknownDomain},
		{"version", func(d map[string]any) { naive.Put(d, "9.9.9", "engine", "tessera_version") }, engine.NotEvaluable, engine.OtherVersion},
		{"shapes", func(d map[string]any) { naive.Put(d, []any{"toy.weight"}, "engine", "claim_shapes") }, engine.NotEvaluable, engine.OtherShapes},
		{"shapes in another order", func(d map[string]any) { naive.Put(d, []any{"toy.heaviest", "toy.weight"}, "engine", "claim_shapes") }, engine.NotEvaluable, engine.OtherShapes},
		{"shapes absent", func(d map[string]any) { naive.Remove(d, "engine", "claim_shapes") }, engine.NotEvaluable, engine.OtherShapes},
		{"shapes not text", func(d map[string]any) { naive.Put(d, nil, "engine", "claim_shapes", 0) }, engine.NotEvaluable, engine.OtherShapes},
		{"nodes empty", func(d map[string]any) { naive.Put(d, []any{}, "evidence_closure", "graph", "nodes") }, engine.IntegrityOnly, engine.NoGraph},
		{"kb null", func(d map[string]any) { naive.Put(d, nil, "evidence_closure", "kb") }, engine.IntegrityOnly, engine.NoGraph},
		{"graph withheld", func(d map[string]any) { naive.Put(d, map[string]any{"redacted": true}, "evidence_closure", "graph") }, engine.IntegrityOnly, engine.NoGraph},
	} {
		text := naive.MustParse(sealToy(t, heavy))
		tt.edit(text)
		r, err := engine.Rederive(mustParse(t, naive.File(text)), known())
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if r.Taxonomy != tt.taxonomy || r.Reason == nil || r.Reason.Code != tt.code || !r.Degraded() || len(r.Claims) > 0 || r.Answer != engine.AnswerNotPerformed {
			t.Errorf("%s: %s, %+v", tt.name, r.Taxonomy, r.Reason)
		}
	}
}

// TestSelect: the same name under several versions and grammars.
func TestSelect(t *testing.T) {
	old := toy()
	old.Version = "toy-0"
	bare := toy()
	bare.Grammars = nil
	bare.Route = func(string, *engine.Graph, []engine.Record) (*engine.Answer, error) {
		return &engine.Answer{Route: engine.Route{Kind: "bare"}}, nil
	}
	g, kb := toyGraph()
	text := seal(t, bare, heavy, g, kb)
	for name, known := range map[string]engine.Registry{"first": {bare, toy(), old}, "last": {old, toy(), bare}} {
		j, err := engine.Judge(mustParse(t, text), known)
		if err != nil || j.Verdict() != engine.Pass {
			t.Errorf("%s: %v, %v", name, j.Verdict(), err)
		}
		if want := []string{"toy-1", "toy-0"}; name == "first" && !slices.Equal(j.Installed, want) {
			t.Errorf("installed %q", j.Installed)
		}
	}
	if j, err := engine.Judge(mustParse(t, text), nil); err != nil || j.Reason.Code != engine.UnknownDomain {
		t.Errorf("without domains: %+v, %v", j, err)
	}
}

// TestMalformed: content that cannot be read is a format error, whatever the
// envelope says, and the path of the fault is named.
func TestMalformed(t *testing.T) {
	for _, tt := range []struct {
		path  []any
		put   any // nil: removed
		where string
	}{
		{[]any{"engine", "domain"}, nil, "engine.domain"},
		{[]any{"engine", "tessera_version"}, naive.Number("1"), "engine.tessera_version"},
		{[]any{"result"}, nil, "result"},
		{[]any{"result"}, "x", "result"},
		{[]any{"result"}, map[string]any{"redacted": true}, "result.route"},
		{[]any{"result", "route"}, nil, "result.route"},
		{[]any{"result", "route", "kind"}, true, "result.route.kind"},
		{[]any{"result", "grounded"}, "true", "result.grounded"},
		{[]any{"result", "refusal"}, nil, "result.refusal"},
		{[]any{"result", "claims", 1}, "x", "result.claims[1]"},
		{[]any{"result", "claims", 1, "verified"}, naive.Number("1"), "result.claims[1].verified"},
		{[]any{"result", "claims", 0, "support", 2, "text"}, nil, "result.claims[0].support[2].text"},
		{[]any{"result", "claims", 0, "support", 2, "locator", "parts", 1}, []any{"row"}, "result.claims[0].support[2].locator.parts[1]"},
		{[]any{"result", "claims", 0, "support", 2, "locator", "parts", 1, 1}, naive.Number("3"), "result.claims[0].support[2].locator.parts[1]"},
		{[]any{"evidence_closure", "graph", "nodes", 4}, "x", "evidence_closure.graph.nodes[4]"},
		{[]any{"evidence_closure", "graph", "nodes", 4, "name"}, false, "evidence_closure.graph.nodes[4].name"},
		{[]any{"evidence_closure", "graph", "nodes", 4, "attributes", 0}, "x", "evidence_closure.graph.nodes[4].attributes[0]"},
		{[]any{"evidence_closure", "graph", "nodes", 4, "record", "origin", "locator", "kind"}, nil, "evidence_closure.graph.nodes[4].record.origin.locator.kind"},
		{[]any{"evidence_closure", "graph", "edges"}, map[string]any{"redacted": true}, "evidence_closure.graph.edges"},
		{[]any{"evidence_closure", "graph", "edges", 1, "relation"}, nil, "evidence_closure.graph.edges[1].relation"},
		{[]any{"evidence_closure", "graph", "resolutions", 0, "score"}, "1", "evidence_closure.graph.resolutions[0].score"},
		{[]any{"evidence_closure", "graph", "resolutions", 0, "score"}, naive.Number("1" + strings.Repeat("0", 400)), "evidence_closure.graph.resolutions[0].score"},
		{[]any{"evidence_closure", "graph", "mentions", 0, "confidence"}, true, "evidence_closure.graph.mentions[0].confidence"},
		{[]any{"evidence_closure", "kb", "records"}, nil, "evidence_closure.kb.records"},
		{[]any{"evidence_closure", "kb", "records", 3, "text"}, nil, "evidence_closure.kb.records[3].text"},
	} {
		doc := naive.MustParse(sealToy(t, heavy))
		if tt.put == nil {
			naive.Remove(doc, tt.path...)
		} else {
			naive.Put(doc, tt.put, tt.path...)
		}
		r, err := engine.Rederive(mustParse(t, naive.File(doc)), known())
		fault, ok := err.(*bundle.FormatError)
		if !ok || fault.Where != tt.where || r != nil {
			t.Errorf("%v: error %v, want one at %s", tt.path, err, tt.where)
		}
	}
	integer := naive.MustParse(sealToy(t, heavy)) // an integer is a number too
	naive.Put(integer, naive.Number("1"), "evidence_closure", "graph", "resolutions", 0, "score")
	if r, err := engine.Rederive(mustParse(t, naive.File(integer)), known()); err != nil || r.Failed() {
		t.Errorf("integer score: %v", err)
	}
}

// redacted withholds nodes and, with kb, the kb, as honest redaction does.
func redacted(text string, kb bool, nodes ...int) map[string]any {
	doc := naive.MustParse(text)
	for _, n := range nodes {
		id := naive.At(doc, "evidence_closure", "graph", "nodes", n, "record", "id")
		naive.Put(doc, map[string]any{"redacted": true, "record": map[string]any{"id": id}}, "evidence_closure", "graph", "nodes", n)
	}
	if kb {
		naive.Put(doc, map[string]any{"redacted": true}, "evidence_closure", "kb")
	}
	return doc
}

// TestRedaction: withheld content degrades and never passes; what is visible is
// still held to its claims (case V13).
func TestRedaction(t *testing.T) {
	rank := "Which item is the heaviest?"
	for _, tt := range []struct {
		name      string
		doc       map[string]any
		verdict   engine.Verdict
		evaluated []bool
		failures  []string
	}{
		{"kb", redacted(sealToy(t, heavy), true), engine.Degraded, []bool{true, true, true}, nil},
		{"node that nothing cites", redacted(sealToy(t, heavy), false, 1), engine.Degraded, []bool{true, true, true}, nil},
		{"cited node", redacted(sealToy(t, heavy), true, 2), engine.Degraded, []bool{false, true, true}, nil},
		{"competitor in a ranking", redacted(sealToy(t, rank), true, 0), engine.Degraded, []bool{false}, nil},
		{"kb of a ranking", redacted(sealToy(t, rank), true), engine.Degraded, []bool{true}, nil},
		{"claim over visible nodes altered", with(redacted(sealToy(t, heavy), true, 1), "The 3 red item(s) weigh 91 kg.", "result", "claims", 0, "text"),
			engine.Fail, []bool{true, true, true}, []string{"claim_unsupported"}},
		{"support differs from its visible node", with(redacted(sealToy(t, heavy), true, 2), "Item 5 is gold.", "result", "claims", 0, "support", 2, "text"),
			engine.Fail, []bool{true, true, true}, []string{"support_altered"}},
		{"claim over a withheld node altered", with(redacted(sealToy(t, heavy), true, 2), "The 3 red item(s) weigh 91 kg.", "result", "claims", 0, "text"),
			engine.Degraded, []bool{false, true, true}, nil},
		{"amount that is no number", with(redacted(sealToy(t, heavy), true, 1), "a lot", "evidence_closure", "graph", "nodes", 0, "attributes", 1, 1),
			engine.Degraded, []bool{false, true, true}, nil},
	} {
		naive.Seal(tt.doc)
		j := mustJudge(t, naive.File(tt.doc))
		var evaluated []bool
		for _, c := range j.Claims {
			evaluated = append(evaluated, c.Evaluated)
			if !c.Evaluated && c.Rederived {
				t.Errorf("%s: claim %d was not evaluated and re-derives", tt.name, c.Index)
			}
		}
		if j.Verdict() != tt.verdict || !slices.Equal(evaluated, tt.evaluated) || !slices.Equal(codes(j.Failures()), tt.failures) || j.Answer != engine.AnswerNotPerformed || len(j.Integrity.Findings) > 0 {
			t.Errorf("%s: %s, evaluated %v, failures %v, answer %s", tt.name, j.Verdict(), evaluated, codes(j.Failures()), j.Answer)
		}
	}
	empty := redacted(sealToy(t, heavy), true, 0, 1, 2, 3, 4)
	if j := mustJudge(t, naive.File(empty)); j.Verdict() != engine.Degraded || len(j.Withheld) != 6 {
		t.Errorf("everything withheld: %s, %q", j.Verdict(), j.Withheld)
	}
	naive.Put(empty, map[string]any{"redacted": true, "record": map[string]any{"id": ""}}, "evidence_closure", "graph", "nodes", 0)
	naive.Put(empty, "sha256:"+strings.Repeat("0", 64), "integrity", "leaves", "node:")
	naive.Seal(empty)
	if j := mustJudge(t, naive.File(empty)); j.Verdict() != engine.Fail || !slices.Contains(codes(j.Failures()), "dangling_reference") {
		t.Errorf("a withheld node without an id excuses dangling references: %s", j.Verdict())
	}
}

func with(doc map[string]any, v any, path ...any) map[string]any {
	naive.Put(doc, v, path...)
	return doc
}

// TestManyDanglingReferences: a thousand are listed, the rest is counted.
func TestManyDanglingReferences(t *testing.T) {
	text := edited(t, sealToy(t, heavy), func(d map[string]any) {
		var edges []any
		for i := range 3000 {
			edges = append(edges, map[string]any{"src": fmt.Sprint("ghost", i), "dst": "item:1", "relation": "r"})
		}
		naive.Put(d, edges, "evidence_closure", "graph", "edges")
	})
	f := mustJudge(t, text).Failures()
	if len(f) != 1001 || f[1000].Code != engine.MoreFindings || !strings.Contains(f[1000].Detail, "2000") {
		t.Errorf("%d findings, the last %+v", len(f), f[len(f)-1])
	}
}

// TestBothLayers: a broken envelope does not hide what the content says, and
// outweighs it.
func TestBothLayers(t *testing.T) {
	doc := naive.MustParse(sealToy(t, heavy))
	naive.Put(doc, "The 3 red item(s) weigh 99 kg.", "result", "claims", 0, "text")
	j := mustJudge(t, naive.File(doc))
	if j.Verdict() != engine.Tampered || !j.Failed() || j.Claims[0].Cause == nil || j.Cause() == "" {
		t.Errorf("%s, claims %+v", j.Verdict(), j.Claims)
	}
	doc = naive.MustParse(sealToy(t, "Who are you?"))
	doc["signature"] = map[string]any{"algorithm": "ed25519", "public_key": strings.Repeat("1", 64), "signature": strings.Repeat("1", 128)}
	if j := mustJudge(t, naive.File(doc)); j.Verdict() != engine.Tampered || j.Failed() || j.Cause() != j.Signature.Finding.Detail {
		t.Errorf("%s: %s", j.Verdict(), j.Cause())
	}
}

// TestActions: a domain with actions checks them itself.
func TestActions(t *testing.T) {
	acting := toy()
	acting.CheckAction = func(action bundle.Value, d *engine.Decision, g *engine.Graph) ([]engine.Finding, error) {
		if d.Question != heavy || g.Node("item:1") == nil {
			return nil, fmt.Errorf("called with another decision")
		}
		if action.Get("kind").Text() != "order" {
			return []engine.Finding{{Code: "other_action", Where: "action", Detail: "other action"}}, nil
		}
		return nil, nil
	}
	for kind, verdict := range map[string]engine.Verdict{"order": engine.Degraded, "pay": engine.Fail} {
		text := edited(t, sealToy(t, heavy), func(d map[string]any) { d["action"] = map[string]any{"kind": kind} })
		j, err := engine.Judge(mustParse(t, text), engine.Registry{acting})
		if err != nil || j.Verdict() != verdict {
			t.Errorf("%s: %v, %v", kind, j.Verdict(), err)
		}
	}
	acting.CheckAction = func(bundle.Value, *engine.Decision, *engine.Graph) ([]engine.Finding, error) {
		return nil, fmt.Errorf("no")
	}
	text := edited(t, sealToy(t, heavy), func(d map[string]any) { d["action"] = map[string]any{} })
	if j, err := engine.Judge(mustParse(t, text), engine.Registry{acting}); err != nil || !slices.Equal(codes(j.Failures()), []string{"reexecution_failed"}) {
		t.Errorf("%v, %v", j, err)
	}
}

// TestTie: a choice among records of equal score is no forgery, everything
// else that a forger could do with a tie is.
func TestTie(t *testing.T) {
	var kb []engine.Record
	for _, text := range []string{"red red pump", "red pump alpha", "red pump gamma", "red pump delta", "blue door frame"} {
		kb = append(kb, engine.Record{ID: fmt.Sprint("r:", len(kb)), Source: "s", IngestedAt: "t", Text: text})
	}
	var nodes []engine.Node
	for _, r := range kb {
		nodes = append(nodes, engine.Node{Record: r})
	}
	g := engine.NewGraph(nodes, nil, nil, nil)
	d := toy()
	text := seal(t, d, "find red pump", g, kb)
	if got := ids(text); !slices.Equal(got, []string{"r:0", "r:1", "r:2"}) {
		t.Fatalf("hits %v", got)
	}
	swap := func(doc map[string]any) { slices.Reverse(naive.At(doc, "result", "claims").([]any)[1:]) }
	other := func(doc map[string]any) {
		claims := naive.At(doc, "result", "claims").([]any)
		third := naive.Clone(claims[2])
		naive.Put(third, kb[3].Text, "text")
		naive.Put(third, kb[3].Text, "support", 0, "text")
		naive.Put(third, "r:3", "support", 0, "id")
		claims[2] = third
	}
	for _, tt := range []struct {
		name    string
		edit    func(doc map[string]any)
		verdict engine.Verdict
	}{
		{"order among equals", swap, engine.Degraded},
		{"choice among equals", other, engine.Degraded},
		{"both", func(d map[string]any) { other(d); swap(d) }, engine.Degraded},
		{"order among others", func(d map[string]any) { slices.Reverse(naive.At(d, "result", "claims").([]any)) }, engine.Fail},
		{"one twice", func(d map[string]any) {
			c := naive.At(d, "result", "claims").([]any)
			c[2] = c[1]
		}, engine.Fail},
		{"one fewer", func(d map[string]any) { naive.Remove(d, "result", "claims", 2) }, engine.Fail},
		{"record without a score", func(d map[string]any) {
			other(d)
			naive.Put(d, "r:4", "result", "claims", 2, "support", 0, "id")
		}, engine.Fail},
		{"swapped and altered", func(d map[string]any) { swap(d); naive.Put(d, "x", "result", "route", "reason") }, engine.Fail},
		{"swapped with an altered source", func(d map[string]any) { swap(d); naive.Put(d, "x", "result", "claims", 1, "support", 0, "source") }, engine.Fail},
		{"swapped with two supports", func(d map[string]any) {
			swap(d)
			s := naive.At(d, "result", "claims", 1, "support").([]any)
			naive.Put(d, append(s, s[0]), "result", "claims", 1, "support")
		}, engine.Fail},
	} {
		j := mustJudge(t, edited(t, text, tt.edit))
		if j.Verdict() != tt.verdict || (tt.verdict == engine.Degraded) != (j.Answer == engine.AnswerTied) {
			t.Errorf("%s: %s, answer %s: %s", tt.name, j.Verdict(), j.Answer, j.Cause())
		}
		if tt.verdict == engine.Degraded && (j.Failed() || j.AnswerCause.Code != engine.RankingTie || j.Cause() != j.AnswerCause.Detail) {
			t.Errorf("%s: %+v", tt.name, j.AnswerCause)
		}
	}
}

// ids lists the record that each claim quotes.
func ids(text string) []string {
	var out []string
	claims, _ := naive.At(naive.MustParse(text), "result", "claims").([]any)
	for _, c := range claims {
		out = append(out, naive.At(c, "support", 0, "id").(string))
	}
	return out
}

// TestRouterFaults: a question that the evidence cannot answer at all is not
// sealed.
func TestRouterFaults(t *testing.T) {
	g, kb := toyGraph()
	nodes := slices.Clone(g.Nodes)
	nodes[0].Attributes = []engine.Pair{{"colour", "red"}, {"kg", "a lot"}}
	broken := engine.NewGraph(nodes, nil, nil, nil)
	for _, question := range []string{heavy, "Which is the heaviest?"} {
		if d, decision, err := engine.NewDraft(toy(), question, broken, kb); err == nil || d != nil || decision != nil {
			t.Errorf("%q: %v", question, err)
		}
	}
	unsupported := toy()
	unsupported.Route = func(string, *engine.Graph, []engine.Record) (*engine.Answer, error) {
		return &engine.Answer{Claims: []engine.Claim{{Text: "x"}}}, nil
	}
	if _, _, err := engine.NewDraft(unsupported, heavy, g, kb); err == nil {
		t.Error("a claim without support was sealed")
	}
	if _, _, err := engine.NewDraft(toy(), heavy, engine.NewGraph(nil, nil, nil, nil), kb); !errors.Is(err, engine.ErrNoEvidence) {
		t.Errorf("without evidence: %v", err)
	}
}
