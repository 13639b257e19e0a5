package domains_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/action"
	"github.com/chaind/chaind/engine/domains"
	"github.com/chaind/chaind/engine/enginetest"
	"github.com/chaind/chaind/engine/naive"
)

// The cross-implementation kit of Tessera: honest bundles and attacks on them,
// built from the published files, and the exit codes that its reference gives.

const incidentQuestion = "Why did run R-1042 fail, and has this happened before?"

// bases are the honest files of the kit.
func bases(tb testing.TB) map[string]string {
	tb.Helper()
	out := map[string]string{
		"answer": enginetest.Read(tb, "honest.tsb"),
		"chain":  enginetest.Read(tb, "brief.tsb"),
		"action": ask(tb, enginetest.Read(tb, "rca.tsb"), engine.Question{Text: incidentQuestion, Action: "incident"}),
	}
	out["declared"] = sealed(naive.MustParse(out["answer"]), func(doc map[string]any) {
		e := doc["engine"].(map[string]any)
		e["covenant_hash"] = naive.Digest(map[string]any{"policy": "read-only-agent", "version": naive.Number("1")})
		e["contract_not_after"] = "2027-01-01"
		declare(doc)
	})
	return out
}

// declare computes engine.envelope_hash.
func declare(doc map[string]any) {
	e := doc["engine"].(map[string]any)
	delete(e, "envelope_hash")
	e["envelope_hash"] = naive.Digest([]any{e, doc["format"]})
}

// sealed edits a document, seals it as a forger would, and returns the file.
func sealed(doc map[string]any, edit func(map[string]any)) string {
	edit(doc)
	naive.Seal(doc)
	return naive.File(doc)
}

// attack is an edit of a base and what it must be caught by.
type attack struct {
	base, name string
	unsealed   bool // the edit is not sealed over
	edit       func(doc map[string]any)
	codes      []engine.Code // findings that name it
}

var zeros = "sha256:" + strings.Repeat("0", 64)

// replaceAll replaces a text in every string of a value.
func replaceAll(v any, from, to string) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, from, to)
	case []any:
		for i := range v {
			v[i] = replaceAll(v[i], from, to)
		}
	case map[string]any:
		for _, key := range naive.Keys(v) {
			item := replaceAll(v[key], from, to)
			delete(v, key)
			v[strings.ReplaceAll(key, from, to)] = item
		}
	}
	return v
}

func nodeIndex(doc map[string]any, id any) int {
	return slices.IndexFunc(naive.At(doc, "evidence_closure", "graph", "nodes").([]any), func(n any) bool {
		return naive.At(n, "record", "id") == id
	})
}

func firstCited(doc map[string]any) any {
	return naive.At(doc, "result", "claims", 0, "support", 0, "id")
}

func editValue(doc map[string]any) {
	node := naive.At(doc, "evidence_closure", "graph", "nodes", nodeIndex(doc, firstCited(doc)))
	for _, pair := range naive.At(node, "attributes").([]any) {
		if naive.At(pair, 0) != "net_amount" {
			continue
		}
		old := naive.At(pair, 1).(string)
		whole, err := strconv.Atoi(strings.TrimSuffix(old, ".00"))
		if err != nil {
			panic(err)
		}
		changed := fmt.Sprintf("%d.00", whole+30000)
		naive.Put(pair, changed, 1)
		text := naive.At(node, "record", "text").(string)
		naive.Put(node, strings.ReplaceAll(text, old, changed), "record", "text")
	}
}

func set(value any, path ...any) func(map[string]any) {
	return func(doc map[string]any) { naive.Put(doc, value, path...) }
}

func both(edits ...func(map[string]any)) func(map[string]any) {
	return func(doc map[string]any) {
		for _, edit := range edits {
			edit(doc)
		}
	}
}

func attacks() []attack {
	request := []any{"action", "request"}
	under := func(path []any, more ...any) []any { return append(append([]any{}, path...), more...) }
	return []attack{
		{base: "answer", name: "leaf_tamper", unsealed: true, edit: set(zeros, "integrity", "leaves", "action"), codes: []engine.Code{bundle.LeafMismatch}},
		{base: "answer", name: "root_mismatch", unsealed: true, edit: set(zeros, "integrity", "root"), codes: []engine.Code{bundle.RootMismatch}},
		{base: "answer", name: "extra_top_section", unsealed: true, edit: set(map[string]any{"payload": "unauthenticated"}, "smuggled"), codes: []engine.Code{bundle.UnexpectedMember}},
		{base: "answer", name: "evidence_value_edit", edit: editValue, codes: []engine.Code{engine.ClaimUnsupported}},
		{base: "answer", name: "evidence_record_omission", edit: func(doc map[string]any) {
			naive.Remove(doc, "evidence_closure", "graph", "nodes", nodeIndex(doc, firstCited(doc)))
		}, codes: []engine.Code{engine.DanglingReference}},
		{base: "answer", name: "claim_text_edit", edit: set("A fabricated claim not from the evidence.", "result", "claims", 0, "text"), codes: []engine.Code{engine.ClaimUnsupported, engine.AnswerClaims}},
		{base: "answer", name: "verdict_flip", edit: set(false, "result", "claims", 0, "verified"), codes: []engine.Code{engine.ClaimAltered}},
		{base: "answer", name: "question_swap", edit: set("What is the total net order value for Müller Logistik?", "result", "question"), codes: []engine.Code{engine.AnswerClaims}},
		{base: "answer", name: "fabricated_render", edit: fabricateRender, codes: []engine.Code{engine.AnswerDerived}},
		{base: "answer", name: "closure_kind_downgrade", edit: set("cited-records-only", "evidence_closure", "kind"), codes: []engine.Code{engine.WrongClosureKind}},
		{base: "action", name: "wire_body_injection", edit: both(
			set([]any{"incident", "auto-merge", "P0"}, under(request, "body", "labels")...),
			set([]any{"victim"}, under(request, "body", "assignees")...)), codes: []engine.Code{action.ActionBody}},
		{base: "action", name: "wire_method_repoint", edit: both(
			set("PATCH", under(request, "method")...),
			set("/repos/{owner}/{repo}/issues/1/comments", under(request, "path")...)), codes: []engine.Code{action.ActionRequest}},
		{base: "action", name: "wire_slot_edit", edit: func(doc map[string]any) {
			slots := naive.At(doc, "action", "slots").([]any)
			i := slices.IndexFunc(slots, func(s any) bool { return naive.At(s, "part") == "body" })
			naive.Put(slots[i], naive.At(slots[i], "value").(string)+" INJECTED", "value")
		}, codes: []engine.Code{action.ActionSlots}},
		{base: "action", name: "outcome_forgery", edit: both(
			set("created", "action", "outcome"), set(false, "action", "simulated"), set(true, "action", "executed"), set("github", "action", "actuator"),
			set(map[string]any{"status": naive.Number("201"), "response": map[string]any{"number": naive.Number("1337"), "html_url": "https://example.invalid/1337"}}, "action", "result"),
		), codes: []engine.Code{action.ActionOutcome}},
		{base: "action", name: "approval_strip", edit: set(true, "action", "approved"), codes: []engine.Code{action.ActionOutcome}},
		{base: "chain", name: "chain_deep_forge", edit: deepForge, codes: []engine.Code{engine.UpstreamFails, engine.CitesUnusable}},
		{base: "chain", name: "chain_cited_text_tamper", edit: tamperCited, codes: []engine.Code{engine.CitedTextAltered}},
		{base: "chain", name: "chain_upstream_drop", edit: func(doc map[string]any) {
			naive.Remove(doc, "evidence_closure", "upstream", 1)
		}, codes: []engine.Code{engine.CitesUnusable}},
		{base: "declared", name: "policy_swap", edit: both(
			set(naive.Digest(map[string]any{"policy": "anything-goes", "version": naive.Number("1")}), "engine", "covenant_hash"), declare)},
		{base: "declared", name: "undeclared_dependency", edit: both(func(doc map[string]any) {
			ghost := naive.Clone(naive.At(doc, "result", "claims", 0, "support", 0).(map[string]any))
			ghost["id"], ghost["source"] = "ghost-record-not-packaged", "external_system/ledger.csv (row 42)"
			support := naive.At(doc, "result", "claims", 0, "support").([]any)
			naive.Put(doc, append(support, ghost), "result", "claims", 0, "support")
		}, declare), codes: []engine.Code{engine.DanglingReference}},
		{base: "declared", name: "stale_contract_replay", edit: both(set("2026-01-01", "engine", "contract_not_after"), declare)},
	}
}

func fabricateRender(doc map[string]any) {
	for _, c := range naive.At(doc, "result", "claims").([]any) {
		for _, s := range naive.At(c, "support").([]any) {
			naive.Put(s, "table PAYROLL_SECRETS, row 7", "locator", "render")
		}
	}
}

// deepForge is the kit's scripted forgery of an upstream.
func deepForge(doc map[string]any) {
	upstream := naive.At(doc, "evidence_closure", "upstream", 0).(map[string]any)
	old := naive.At(upstream, "result", "claims", 0, "text").(string)
	forged := strings.Replace(old, "failed", "succeeded", 1)
	if forged == old {
		forged += " (per the approved summary)"
	}
	naive.Put(upstream, forged, "result", "claims", 0, "text")
	naive.Seal(upstream)
	replaceAll(doc, old, forged)
}

func tamperCited(doc map[string]any) {
	text := naive.At(doc, "evidence_closure", "kb", "records", 0, "text").(string)
	upstream := naive.Clone(naive.At(doc, "evidence_closure", "upstream").([]any))
	replaceAll(doc, text, text+" [reviewed and approved]")
	naive.Put(doc, any(upstream), "evidence_closure", "upstream")
}

// exitCode is the code that the format gives a verdict.
func exitCode(v engine.Verdict) string {
	return map[engine.Verdict]string{engine.Pass: "0", engine.Degraded: "3", engine.Fail: "2", engine.Tampered: "4"}[v]
}

func allCodes(j *engine.Judgement) []engine.Code {
	var out []engine.Code
	for _, f := range append(slices.Clone(j.Integrity.Findings), j.Failures()...) {
		out = append(out, f.Code)
	}
	return out
}

// TestKit: all cases of the kit, the seven included that a verifier without
// routers and drafting declines, give the reference's exit code, and each attack
// is named by its finding.
func TestKit(t *testing.T) {
	files := map[string]string{}
	named := map[string]attack{}
	honest := bases(t)
	for base, text := range honest {
		files["honest:"+base] = text
	}
	for _, a := range attacks() {
		doc := naive.MustParse(honest[a.base])
		a.edit(doc)
		if !a.unsealed {
			naive.Seal(doc)
		}
		files["attack:"+a.name], named["attack:"+a.name] = naive.File(doc), a
	}
	expected, err := naive.Parse(enginetest.Read(t, "expectations.json"))
	if err != nil {
		t.Fatal(err)
	}
	cases := expected["cases"].([]any)
	if len(cases) != 25 || len(files) != 25 {
		t.Fatalf("%d cases, %d files", len(cases), len(files))
	}
	for _, c := range cases {
		name := naive.At(c, "case").(string)
		if files[name] == "" {
			t.Errorf("%s is not built", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := judge(t, files[name])
			if got, want := exitCode(j.Verdict()), naive.At(c, "python_exit"); naive.Number(got) != want {
				t.Errorf("exit %s, want %s: %s", got, want, j.Cause())
			}
			for _, code := range named[name].codes {
				if !slices.Contains(allCodes(j), code) {
					t.Errorf("no finding %s: %v", code, allCodes(j))
				}
			}
			if naive.At(c, "js_claims_evaluated") != naive.Number("0") && len(j.Claims) == 0 && !slices.Contains(allCodes(j), engine.DanglingReference) {
				t.Error("no claim was evaluated")
			}
		})
	}
}

// TestForeignVersion: the sixteenth mutation of the auditability floor, besides
// those of the kit: a version that nobody has is not evaluated, and both sides
// are named.
func TestForeignVersion(t *testing.T) {
	j := judge(t, sealed(naive.MustParse(enginetest.Read(t, "honest.tsb")), set("9.9.9", "engine", "tessera_version")))
	if j.Verdict() != engine.Degraded || j.Taxonomy != engine.NotEvaluable || j.Reason.Code != engine.OtherVersion {
		t.Fatalf("%s, %s, %v", j.Verdict(), j.Taxonomy, j.Reason)
	}
	for _, version := range []string{"9.9.9", engine.ReferenceVersion, "chaind-business-1"} {
		if !strings.Contains(j.Reason.Detail, version) {
			t.Errorf("%q does not name %s", j.Reason.Detail, version)
		}
	}
}

// TestTrueDeepForge: an upstream forged consistently, its root and claims carried
// through the whole chain: only re-deriving the upstream catches it.
func TestTrueDeepForge(t *testing.T) {
	text := enginetest.Read(t, "brief.tsb")
	doc := naive.MustParse(text)
	upstream := naive.At(doc, "evidence_closure", "upstream", 0).(map[string]any)
	oldRoot := naive.At(upstream, "integrity", "root").(string)
	old := naive.At(upstream, "result", "claims", 0, "text").(string)
	forged := strings.Replace(old, "failed", "succeeded", 1)
	naive.Put(upstream, forged, "result", "claims", 0, "text")
	naive.Seal(upstream)
	newRoot := naive.At(upstream, "integrity", "root").(string)
	upstreams := naive.Clone(naive.At(doc, "evidence_closure", "upstream").([]any))
	for _, pair := range [][2]string{{oldRoot, newRoot}, {"chain:" + oldRoot[7:19], "chain:" + newRoot[7:19]}, {old, forged}} {
		replaceAll(doc, pair[0], pair[1])
	}
	naive.Put(doc, any(upstreams), "evidence_closure", "upstream")
	naive.Seal(doc)

	j := judge(t, naive.File(doc))
	if len(j.Integrity.Findings) > 0 || j.Answer != engine.AnswerRederives || len(unsupported(j)) > 0 || len(j.Claims) != 5 {
		t.Errorf("not the forgery that it should be: %v, answer %s, unsupported %v", j.Integrity.Findings, j.Answer, unsupported(j))
	}
	if j.Verdict() != engine.Fail || len(j.Upstreams) != 2 || j.Upstreams[0].Verdict != engine.Fail || j.Upstreams[1].Verdict != engine.Pass {
		t.Errorf("%s, upstreams %+v", j.Verdict(), j.Upstreams)
	}
	if codes := allCodes(j); !slices.Contains(codes, engine.UpstreamFails) || !slices.Contains(codes, engine.CitesUnusable) {
		t.Errorf("found %v", codes)
	}
}

// TestChainAttacks: the other attacks that the format names.
func TestChainAttacks(t *testing.T) {
	brief := enginetest.Read(t, "brief.tsb")
	honest := enginetest.Read(t, "honest.tsb")
	other := ask(t, honest, engine.Question{Text: "What is Müller Logistik's total order value?"})
	for _, c := range []struct {
		name    string
		file    string
		verdict engine.Verdict
		code    engine.Code
	}{
		{name: "upstream swapped for another that passes", verdict: engine.Fail, code: engine.CitesUnusable,
			file: sealed(naive.MustParse(brief), set(naive.MustParse(other), "evidence_closure", "upstream", 0))},
		{name: "upstream removed", verdict: engine.Fail, code: engine.CitesUnusable,
			file: sealed(naive.MustParse(brief), func(doc map[string]any) { naive.Remove(doc, "evidence_closure", "upstream", 0) })},
		{name: "upstreams swapped", verdict: engine.Fail, code: engine.OtherCorpus,
			file: sealed(naive.MustParse(brief), func(doc map[string]any) {
				list := naive.At(doc, "evidence_closure", "upstream").([]any)
				list[0], list[1] = list[1], list[0]
			})},
		{name: "byte flipped in an upstream", verdict: engine.Tampered, code: bundle.LeafMismatch,
			file: strings.Replace(brief, "PIPE-PAY", "PIPE-PAX", 1)},
		{name: "an action that is no object", verdict: engine.Fail, code: engine.ActionMalformed,
			file: sealed(naive.MustParse(honest), set("approved and sent", "action"))},
		{name: "upstream smuggled into a snapshot", verdict: engine.Tampered, code: bundle.UnexpectedMember,
			file: sealed(naive.MustParse(honest), set([]any{}, "evidence_closure", "upstream"))},
	} {
		j := judge(t, c.file)
		if j.Verdict() != c.verdict || !slices.Contains(allCodes(j), c.code) {
			t.Errorf("%s: %s, %v", c.name, j.Verdict(), allCodes(j))
		}
	}
	deep := chain(t, "Which totals were compared?", brief, honest)
	if j := judge(t, deep); j.Verdict() != engine.Pass || len(j.Upstreams) != 2 || len(j.Upstreams[0].Judgement.Upstreams) != 2 {
		t.Errorf("chain of a chain: %s: %s", j.Verdict(), j.Cause())
	}
	if j := judge(t, chain(t, "zebra quasar", honest)); j.Verdict() != engine.Pass || !j.Recorded.Refused {
		t.Errorf("refusal: %s: %s", j.Verdict(), j.Cause())
	}
	for code, files := range map[engine.Code][]string{
		engine.ChainNotPass:  {honest, enginetest.Read(t, "forged.tsb")},
		engine.ChainNoClaims: {ask(t, honest, engine.Question{Text: "What is the capital of France?"})},
		engine.ChainTwice:    {honest, honest},
	} {
		if _, err := newChain(t, "What?", files...); !isChainError(err, code) {
			t.Errorf("%s: %v", code, err)
		}
	}
}

func newChain(tb testing.TB, question string, files ...string) (*bundle.Draft, error) {
	var upstreams []*bundle.Bundle
	for _, f := range files {
		upstreams = append(upstreams, enginetest.Parse(tb, f))
	}
	draft, _, err := engine.NewChain(engine.Chain(engine.ReferenceVersion), question, upstreams, domains.All())
	return draft, err
}

func isChainError(err error, code engine.Code) bool {
	e, ok := err.(*engine.ChainError)
	return ok && e.Code == code
}

func chain(tb testing.TB, question string, files ...string) string {
	tb.Helper()
	draft, err := newChain(tb, question, files...)
	if err != nil {
		tb.Fatal(err)
	}
	return write(tb, draft)
}
