package verifier

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/domains"
	"github.com/chaind/chaind/engine/naive"
)

// incident is the bundle of the reference's action base: a failure explained,
// with the issue that would be filed for it.
func incident(tb testing.TB) []byte {
	tb.Helper()
	b, err := bundle.Parse(string(readFile(tb, tesseraDir+"rca.tsb")))
	if err != nil {
		tb.Fatal(err)
	}
	draft, _, err := engine.Ask(b, domains.All(), engine.Question{Text: "Why did run R-1042 fail, and has this happened before?", Action: "incident"})
	if err != nil {
		tb.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := bundle.Write(&out, draft, nil); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// replaceAll replaces a text in every string below a value, names included.
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

// node finds the node of a record.
func node(doc map[string]any, id any) (int, map[string]any) {
	for i, n := range naive.At(doc, "evidence_closure", "graph", "nodes").([]any) {
		if naive.At(n, "record", "id") == id {
			return i, n.(map[string]any)
		}
	}
	panic("no such node")
}

func cited(doc map[string]any) any { return naive.At(doc, "result", "claims", 0, "support", 0, "id") }

// payMore raises the amount of the first cited order, consistently in
// attribute, text, kb and quotations: a fact altered by somebody who can seal.
func payMore(doc map[string]any) {
	_, n := node(doc, cited(doc))
	for _, pair := range n["attributes"].([]any) {
		if naive.At(pair, 0) == "net_amount" {
			naive.Put(pair, "1"+naive.At(pair, 1).(string), 1)
		}
	}
}

func injectSlot(doc map[string]any) {
	for _, slot := range naive.At(doc, "action", "slots").([]any) {
		if naive.At(slot, "part") == "body" {
			naive.Put(slot, naive.At(slot, "value").(string)+" INJECTED", "value")
			return
		}
	}
	panic("no body slot")
}

// TestFloor: the mutations of the auditability floor end in the exact exit code,
// in the check that is theirs, and fail exactly the claims that rest on what was
// altered.
func TestFloor(t *testing.T) {
	t.Parallel()
	bases := map[string][]byte{"answer": readFile(t, tesseraDir+"honest.tsb"), "action": incident(t)}
	zeros := "sha256:" + strings.Repeat("0", 64)
	for _, m := range []struct {
		base, name string
		sealed     bool
		edit       func(map[string]any)
		exit       int
		check      string
		fails      []int
	}{
		{"answer", "leaf_tamper", false, put(zeros, "integrity", "leaves", "action"), 4, "leaves", nil},
		{"answer", "root_mismatch", false, put(zeros, "integrity", "root"), 4, "root", nil},
		{"answer", "extra_top_section", false, put(map[string]any{}, "smuggled"), 4, "sections", nil},
		{"answer", "evidence_value_edit", true, payMore, 2, "claims", []int{0, 2}},
		{"answer", "evidence_record_omission", true, func(doc map[string]any) {
			i, _ := node(doc, cited(doc))
			naive.Remove(doc, "evidence_closure", "graph", "nodes", i)
		}, 2, "evidence", nil},
		{"answer", "claim_text_edit", true, put("A fabricated claim not from the evidence.", "result", "claims", 0, "text"), 2, "claims", []int{0}},
		{"answer", "verdict_flip", true, put(false, "result", "claims", 0, "verified"), 2, "claims", []int{0}},
		{"answer", "question_swap", true, put("What is the total net order value for Müller Logistik?", "result", "question"), 2, "answer", nil},
		{"answer", "fabricated_render", true, put("table PAYROLL_SECRETS, row 7", "result", "claims", 0, "support", 0, "locator", "render"), 2, "answer", nil},
		{"answer", "closure_kind_downgrade", true, put("cited-records-only", "evidence_closure", "kind"), 2, "evidence", nil},
		{"answer", "engine_version_spoof", true, put("9.9.9", "engine", "tessera_version"), 3, "engine", nil},
		{"action", "wire_body_injection", true, put([]any{"incident", "auto-merge", "P0"}, "action", "request", "body", "labels"), 2, "action", nil},
		{"action", "wire_method_repoint", true, put("PATCH", "action", "request", "method"), 2, "action", nil},
		{"action", "wire_slot_edit", true, injectSlot, 2, "action", nil},
		{"action", "outcome_forgery", true, put("created", "action", "outcome"), 2, "action", nil},
		{"action", "approval_strip", true, put(true, "action", "approved"), 2, "action", nil},
		{"answer", "action_smuggled", true, put("send it", "action"), 2, "action", nil},
	} {
		text := tamper(bases[m.base], m.edit)
		if m.sealed {
			text = forge(t, bases[m.base], m.edit)
		}
		r := verifyBundle(text, Options{})
		consistent(t, m.name, r)
		var failing []int
		for i, v := range verdicts(r) {
			if v == ClaimUnsupported || v == ClaimAltered {
				failing = append(failing, i)
			}
		}
		status := r.check(m.check).Status
		if r.ExitCode != m.exit || status != StatusFail && (m.exit != 3 || status != StatusWarn) || !slices.Equal(failing, m.fails) {
			t.Errorf("%s: exit %d, check %s is %s, claims %v fail: %s", m.name, r.ExitCode, m.check, status, failing, r.Summary)
		}
	}
	for name, text := range bases {
		if r := verifyBundle(text, Options{}); r.ExitCode != ExitPass {
			t.Errorf("%s: exit %d: %s", name, r.ExitCode, r.Summary)
		}
	}
	if r := verifyBundle(bases["action"], Options{}); r.Content.Action != ActionRederived {
		t.Errorf("the action is %s", r.Content.Action)
	}
}

// A signed bundle that is sealed again does not keep its signature.
func TestFloorSignedAndSealedAgain(t *testing.T) {
	t.Parallel()
	signed := signedBundle(t, readFile(t, tesseraDir+"honest.tsb"), seed7)
	r := verifyBundle(forge(t, signed, payMore), Options{Trust: trustOf(t, hex7)})
	if r.ExitCode != ExitEnvelope || r.Verdict != Broken || r.check("claims").Status != StatusFail {
		t.Errorf("%s, exit %d, claims %s", r.Verdict, r.ExitCode, r.check("claims").Status)
	}
}

// deepForge forges an upstream consistently and carries root and claim through
// the whole chain: only re-deriving the upstream shows it.
func deepForge(doc map[string]any) {
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
}

func citedText(doc map[string]any) {
	text := naive.At(doc, "evidence_closure", "kb", "records", 0, "text").(string)
	upstream := naive.Clone(naive.At(doc, "evidence_closure", "upstream").([]any))
	replaceAll(doc, text, text+" [reviewed and approved]")
	naive.Put(doc, any(upstream), "evidence_closure", "upstream")
}

// TestChainForgeries: attacks on a chain of two bundles.
func TestChainForgeries(t *testing.T) {
	t.Parallel()
	brief := readFile(t, tesseraDir+"brief.tsb")
	swap := func(doc map[string]any) {
		list := naive.At(doc, "evidence_closure", "upstream").([]any)
		list[0], list[1] = list[1], list[0]
	}
	for _, m := range []struct {
		name   string
		sealed bool
		edit   func(map[string]any)
		exit   int
		check  string
		code   Code
	}{
		{"deep forge", true, deepForge, 2, "upstreams", "upstream_fails"},
		{"cited text", true, citedText, 2, "upstreams", "cited_text_altered"},
		{"upstream swapped", true, put(naive.MustParse(string(incident(t))), "evidence_closure", "upstream", 0), 2, "upstreams", "cites_unusable_upstream"},
		{"upstream dropped", true, func(doc map[string]any) { naive.Remove(doc, "evidence_closure", "upstream", 1) }, 2, "upstreams", "cites_unusable_upstream"},
		{"upstreams in another order", false, swap, 2, "upstreams", "other_corpus"},
		{"upstream altered under its seal", false, put("x", "evidence_closure", "upstream", 0, "result", "question"), 4, "leaves", "leaf_mismatch"},
		{"record dropped", true, func(doc map[string]any) { naive.Remove(doc, "evidence_closure", "kb", "records", 0) }, 2, "upstreams", "other_corpus"},
		{"no list", true, put(map[string]any{}, "evidence_closure", "upstream"), 4, "manifest", "wrong_type"},
	} {
		text := tamper(brief, m.edit)
		if m.sealed {
			text = forge(t, brief, m.edit)
		}
		r := verifyBundle(text, Options{})
		consistent(t, m.name, r)
		if r.ExitCode != m.exit || r.check(m.check).Status != StatusFail || !slices.Contains(Codes(r.Errors), m.code) {
			t.Errorf("%s: exit %d, check %s is %s, %v", m.name, r.ExitCode, m.check, r.check(m.check).Status, Codes(r.Errors))
		}
	}
	r := verifyBundle(forge(t, brief, deepForge), Options{})
	if !slices.Equal(verdicts(r), slices.Repeat([]ClaimVerdict{ClaimRederived}, 5)) || r.check("answer").Status != StatusPass || r.Content.Upstreams[0].Verdict != engine.Fail {
		t.Errorf("not the forgery that it should be: %v", r.Checks)
	}
}

// A leaf that does not match names the record, one finding for each.
func TestExactRecordIsNamed(t *testing.T) {
	t.Parallel()
	honest := readFile(t, tesseraDir+"honest.tsb")
	id := cited(naive.MustParse(string(honest))).(string)
	r := verifyBundle(tamper(honest, func(doc map[string]any) {
		_, n := node(doc, id)
		naive.Put(n, "another", "kind")
	}), Options{})
	at := slices.IndexFunc(r.Errors, func(f Finding) bool { return f.Code == "leaf_mismatch" })
	if at < 0 || r.Errors[at].Where != "node:"+id || !strings.Contains(r.check("leaves").Detail, id) {
		t.Errorf("%+v", r.Errors)
	}
}

// What was asked of a trust bundle and cannot be answered is not passed over.
func TestBundleOptions(t *testing.T) {
	t.Parallel()
	failed, honest := readFile(t, runDir+"failed.tsb"), readFile(t, tesseraDir+"honest.tsb")
	head := verifyBundle(failed, Options{}).Content.Run.Head
	other := *headOf(t, strings.Repeat("0", 64))
	for name, test := range map[string]struct {
		text    []byte
		o       Options
		exit    int
		verdict Verdict
	}{
		"outcome met":          {failed, Options{ExpectOutcome: "failed"}, 0, Pass},
		"outcome unmet":        {failed, Options{ExpectOutcome: "succeeded"}, 5, Unmet},
		"no run":               {honest, Options{ExpectOutcome: "succeeded"}, 5, Unmet},
		"open":                 {readFile(t, runDir+"open.tsb"), Options{ExpectOutcome: "succeeded"}, 5, Unmet},
		"open as expected":     {readFile(t, runDir+"open.tsb"), Options{ExpectOutcome: "open"}, 3, Unsealed},
		"failing comes first":  {readFile(t, tesseraDir+"forged.tsb"), Options{ExpectOutcome: "succeeded"}, 2, Fail},
		"broken comes first":   {failed[:len(failed)/2], Options{ExpectOutcome: "succeeded"}, 4, Broken},
		"unknown word":         {failed, Options{ExpectOutcome: "great"}, 64, NotRun},
		"head":                 {failed, Options{ExpectHead: headOf(t, head)}, 0, Pass},
		"other head":           {failed, Options{ExpectHead: &other}, 4, Broken},
		"head of no run":       {honest, Options{ExpectHead: &other}, 4, Broken},
		"run id":               {failed, Options{RunID: "pr00"}, 64, NotRun},
		"plan":                 {failed, Options{ExpectPlan: strings.Repeat("0", 64)}, 64, NotRun},
		"reference":            {failed, Options{Mode: Reference}, 64, NotRun},
		"integrity":            {honest, Options{IntegrityOnly: true}, 3, Unchecked},
		"integrity of forgery": {readFile(t, tesseraDir+"forged.tsb"), Options{IntegrityOnly: true}, 3, Unchecked},
		"integrity broken":     {tamper(honest, put("x", "result", "question")), Options{IntegrityOnly: true}, 4, Broken},
	} {
		r := verifyBundle(test.text, test.o)
		consistent(t, name, r)
		if r.ExitCode != test.exit || r.Verdict != test.verdict {
			t.Errorf("%s: %s, exit %d: %s", name, r.Verdict, r.ExitCode, r.Summary)
		}
	}
	evidence := loadVector(t, "p01-full-run-unsigned").bundle
	for _, o := range []Options{{ExpectOutcome: "succeeded"}, {IntegrityOnly: true}} {
		if r := verifyBytes(evidence, o); r.ExitCode != ExitUsage {
			t.Errorf("evidence, %+v: exit %d", o, r.ExitCode)
		}
		if r := verifyBytes(evidence[:100], o); r.ExitCode != ExitEnvelope {
			t.Errorf("half of an evidence bundle, %+v: exit %d", o, r.ExitCode)
		}
	}
}

// A head that the file states and its segments do not have is no head that
// anybody may rely on.
func TestStatedHeadIsNotBelieved(t *testing.T) {
	t.Parallel()
	stated := headOf(t, strings.Repeat("ab", 32))
	text := runOf(t, 10, stated)
	if r := verifyBundle(text, Options{ExpectHead: stated}); r.ExitCode != ExitEnvelope || Codes(r.Errors)[0] != CodeExpectedHead {
		t.Errorf("%s, exit %d: %s", r.Verdict, r.ExitCode, r.Summary)
	}
	if r := verifyBundle(text, Options{}); r.ExitCode != ExitDegraded || r.Content.Claims[1].Verdict != ClaimUnverified {
		t.Errorf("%s, exit %d, %v", r.Verdict, r.ExitCode, verdicts(r))
	}
	honest := longRun(t, 10)
	head := headOf(t, verifyBundle(honest, Options{}).Content.Run.Head)
	if r := verifyBundle(honest, Options{ExpectHead: head}); r.ExitCode != ExitDegraded || r.check("expected_head").Status != StatusPass {
		t.Errorf("honest: %s, exit %d: %s", r.Verdict, r.ExitCode, r.Summary)
	}
}

// A question that is refused, or narrow, does not hide what the evidence of a
// run does not establish.
func TestRefusalHidesNothing(t *testing.T) {
	t.Parallel()
	for name, exit := range map[string]int{"open.tsb": 3, "incomplete.tsb": 3, "disagreeing.tsb": 3, "failed.tsb": 0} {
		b, err := bundle.Parse(string(readFile(t, runDir+name)))
		if err != nil {
			t.Fatal(err)
		}
		for _, question := range []string{"Is it going to rain?", "How did this run end?", "How many requests did this run issue?"} {
			draft, _, err := engine.Ask(b, domains.All(), engine.Question{Text: question})
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if _, err := bundle.Write(&out, draft, nil); err != nil {
				t.Fatal(err)
			}
			r := verifyBundle(out.Bytes(), Options{})
			consistent(t, name, r)
			if r.ExitCode != exit {
				t.Errorf("%s, %s: exit %d: %s", name, question, r.ExitCode, r.Summary)
			}
		}
	}
}
