package action_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/action"
	"github.com/chaind/chaind/engine/devex"
	"github.com/chaind/chaind/engine/enginetest"
	"github.com/chaind/chaind/engine/naive"
)

const (
	incidentQuestion = "Why did run R-1042 fail, and has this happened before?"
	summaryQuestion  = "What does PR-201 change?"
)

// decide answers from the published corpus.
func decide(tb testing.TB, domain, question string) *engine.Decision {
	tb.Helper()
	g, kb := enginetest.Corpus(tb, enginetest.Read(tb, "rca.tsb"))
	d, err := devex.New(domain, engine.ReferenceVersion).Decide(question, g, kb)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func kind(tb testing.TB, name string) *action.Kind {
	tb.Helper()
	for _, k := range devex.Actions(devex.Name) {
		if k.Name == name {
			return k
		}
	}
	tb.Fatalf("no action %q", name)
	return nil
}

func roles(p *action.Proposal) string {
	var out []string
	for _, f := range p.Fields {
		out = append(out, f.Name)
	}
	return strings.Join(out, " ")
}

// TestRecordedDrafts: fields and slots that the reference was seen to draft.
func TestRecordedDrafts(t *testing.T) {
	p := kind(t, "incident").Draft(decide(t, devex.Name, incidentQuestion))
	if got := roles(p); got != "title failing_run log prior_occurrence documented_incident referenced_ticket resolving_change referenced_pull_request code_change" {
		t.Errorf("incident: %s", got)
	}
	if p.Fields[0].Value != "TimeoutError: connection to payments-db timed out after 30s" {
		t.Errorf("title %q", p.Fields[0].Value)
	}
	p = kind(t, "pr_summary").Draft(decide(t, devex.Name, summaryQuestion))
	if got := roles(p); got != "title pull_request code_change code_change code_change motivating_ticket referenced_ticket" {
		t.Errorf("summary: %s", got)
	}
	payload := p.Render()
	if payload.Withheld != "" || payload.Path != "/repos/{owner}/{repo}/issues/PR-201/comments" || p.Fields[0].Value != "Add retry with backoff to payments-db client" {
		t.Errorf("%+v", payload)
	}
	if s := payload.Slots[0]; s.Part != "path" || s.Name != "resource" || s.Value != "PR-201" || len(s.Support) != 1 || len(payload.Slots) != 8 {
		t.Errorf("slots %+v", payload.Slots)
	}
}

// TestIdempotencyKey: the key of a receipt that the reference published.
func TestIdempotencyKey(t *testing.T) {
	fence := "```"
	text := `## Failing run
Run 27014662820 of workflow "CI" (pull_request on feat/0010-structured-ingestion-salt): status failed (failing step "Format check" in job "gate"), commit 63a47dea541f67243d1277335f4d41012954220a, started 2026-06-05T12:24:22Z — "feat(ingestion): structured ingestion of SALT-shaped data into a common origin-tagged representation (Phase 1, Unit 1)".

## Error log
` + fence + `
Would reformat: scripts/generate_salt_synthetic.py
Would reformat: src/tessera/sources/salt.py
2 files would be reformatted, 11 files already formatted
##[error]Process completed with exit code 1.
` + fence
	body := naive.Canon(map[string]any{"title": "Process completed with exit code 1.", "labels": []any{"incident"}, "body": text})
	got := action.IdempotencyKey("POST", "/repos/{owner}/{repo}/issues", []byte(body))
	if got != "sha256:08dc3d0cc63ad980b1443358f2812aacdc19679deec891e3d1a44a6f363cfd4e" {
		t.Errorf("key %s", got)
	}
}

// TestWithheld: answers that no request follows from, and why.
func TestWithheld(t *testing.T) {
	unverified := decide(t, devex.Name, incidentQuestion)
	unverified.Claims[3].Verified = false
	untitled := decide(t, devex.Name, incidentQuestion)
	untitled.Claims = untitled.Claims[:1]
	elsewhere := decide(t, devex.Name, summaryQuestion)
	for i := range elsewhere.Claims[0].Support {
		r := *elsewhere.Claims[0].Support[i]
		r.ID = "PR:../../users"
		elsewhere.Claims[0].Support = []*engine.Record{&r}
	}
	dots := decide(t, devex.Name, summaryQuestion)
	r := *dots.Claims[0].Support[0]
	r.ID = "PR:.."
	dots.Claims[0].Support = []*engine.Record{&r}
	for _, c := range []struct {
		name, kind string
		decision   *engine.Decision
		reason     string
	}{
		{"route", "incident", decide(t, devex.Name, summaryQuestion), "cannot draft a 'incident' from this question: it routed to 'summary', not 'rca' — name a pipeline run (e.g. 'Why did run R-1042 fail?')."},
		{"other route", "pr_summary", decide(t, devex.Name, incidentQuestion), "cannot draft a 'pr_summary' from this question: it routed to 'rca', not 'summary' — name a pull request (e.g. 'What does PR-201 change?')."},
		{"unknown run", "incident", decide(t, devex.Name, "Why did run R-9999 fail?"), "There is no run R-9999 in the knowledge graph."},
		{"passed run", "incident", decide(t, devex.Name, "Why did run R-1001 fail?"), "Run R-1001 did not fail — it passed. There is no failure to explain."},
		{"out of scope", "incident", decide(t, devex.Name, "What colour is the sky?"), engine.DefaultRefusal},
		{"domain", "pr_summary", decide(t, devex.GitHubActions, summaryQuestion), "the 'pr_summary' action applies to domain(s) devex, not 'github_actions'."},
		{"unverified", "incident", unverified, "the action proposal is not fully grounded (an unverified field); no payload is rendered."},
		{"no title", "incident", untitled, "no grounded title is available for a GitHub issue; none rendered."},
		{"path", "pr_summary", elsewhere, "no grounded PR resource id to address the comment; none rendered."},
		{"dots", "pr_summary", dots, "no grounded PR resource id to address the comment; none rendered."},
	} {
		payload := kind(t, c.kind).Draft(c.decision).Render()
		if payload.Withheld != c.reason || payload.Slots != nil || payload.Path != "" {
			t.Errorf("%s: %+v", c.name, payload)
		}
		receipt := naive.MustParse(string(payload.AppendReceipt(nil)))
		want := map[string]any{
			"outcome": "withheld", "withheld": true, "withheld_reason": c.reason, "executed": false, "simulated": false, "sent": false, "approved": false,
			"payload_grounded": false, "all_grounded": false, "requires_approval": true, "result": map[string]any{}, "slots": []any{},
			"request": map[string]any{"method": "", "path": "", "body": map[string]any{}}, "idempotency_key": nil, "actuator": "simulated",
		}
		for name, value := range want {
			if naive.Canon(receipt[name]) != naive.Canon(value) {
				t.Errorf("%s: %s is %v", c.name, name, receipt[name])
			}
		}
		if drafted := naive.MustParse(string(payload.Append(nil))); drafted["rendered"] != false || drafted["withheld_reason"] != c.reason {
			t.Errorf("%s: payload %v", c.name, drafted)
		}
	}
}

// TestFieldBeyondEvidence: a value that says more than its claim cites is not
// verified, and one unverified field withholds the request.
func TestFieldBeyondEvidence(t *testing.T) {
	for suffix, verified := range map[string]bool{"": true, " and the database was deleted": false} {
		k := *kind(t, "incident")
		k.Title = func(claims []engine.RecordedClaim) (string, int, bool) { return claims[0].Text + suffix, 0, true }
		p := k.Draft(decide(t, devex.Name, incidentQuestion))
		if p.Fields[0].Verified != verified || (p.Render().Withheld == "") != verified {
			t.Errorf("title with %q: %+v", suffix, p.Fields[0])
		}
	}
	k := *kind(t, "incident")
	k.Title = func([]engine.RecordedClaim) (string, int, bool) { return "…", 0, true }
	if p := k.Draft(decide(t, devex.Name, incidentQuestion)); p.Fields[0].Verified {
		t.Error("a title without letters is verified")
	}
}

// checker returns a decision, its receipt and what the check finds in another.
func checker(tb testing.TB, name, question string) (map[string]any, func(map[string]any) []engine.Code) {
	tb.Helper()
	d := decide(tb, devex.Name, question)
	domain := devex.New(devex.Name, engine.ReferenceVersion)
	receipt, err := domain.DraftAction(name, d)
	if err != nil {
		tb.Fatal(err)
	}
	return naive.MustParse(string(receipt)), func(doc map[string]any) []engine.Code {
		v, err := bundle.ParseValue(naive.Canon(doc))
		if err != nil {
			tb.Fatal(err)
		}
		findings, err := domain.CheckAction(v, d, nil)
		if err != nil {
			tb.Fatal(err)
		}
		var codes []engine.Code
		for _, f := range findings {
			if f.Detail == "" || !strings.HasPrefix(f.Where, "action") {
				tb.Errorf("finding %+v", f)
			}
			codes = append(codes, f.Code)
		}
		return codes
	}
}

// TestEveryEditIsFound: each value of a receipt altered, each member removed,
// and a member added to each object.
func TestEveryEditIsFound(t *testing.T) {
	for name, question := range map[string]string{"incident": incidentQuestion, "pr_summary": summaryQuestion} {
		receipt, check := checker(t, name, question)
		if codes := check(receipt); codes != nil {
			t.Fatalf("%s: the honest receipt has findings %v", name, codes)
		}
		edits := 0
		for _, path := range naive.Paths(receipt) {
			altered, removed, added := naive.Clone(receipt), naive.Clone(receipt), naive.Clone(receipt)
			naive.Put(altered, other(naive.At(receipt, path...)), path...)
			naive.Remove(removed, path...)
			for _, doc := range []map[string]any{altered, removed} {
				if len(check(doc)) == 0 {
					t.Errorf("%s: an edit of %v is not found", name, path)
				}
				edits++
			}
			if m, ok := naive.At(added, path...).(map[string]any); ok {
				m["note"] = "approved"
				if len(check(added)) == 0 {
					t.Errorf("%s: an addition to %v is not found", name, path)
				}
				edits++
			}
		}
		if edits < 200 {
			t.Errorf("%s: only %d edits", name, edits)
		}
	}
}

// other is a value of the same kind that differs.
func other(v any) any {
	switch v := v.(type) {
	case string:
		return v + "x"
	case bool:
		return !v
	case []any:
		return append([]any{"x"}, v...)
	case map[string]any:
		return map[string]any{"x": "x"}
	}
	return "x"
}

// TestFindings: what is found is named, edits included that a comparison of
// parsed values does not notice.
func TestFindings(t *testing.T) {
	receipt, check := checker(t, "incident", incidentQuestion)
	for _, c := range []struct {
		name  string
		value any
		path  []any
		code  engine.Code
	}{
		{"sent", true, []any{"sent"}, action.ActionSent},
		{"question", "Why?", []any{"question"}, action.ActionQuestion},
		{"domain", "github_actions", []any{"domain"}, action.ActionQuestion},
		{"kind", "rollback", []any{"kind"}, engine.ActionUnknown},
		{"kind of another route", "pr_summary", []any{"kind"}, action.ActionRoute},
		{"number for true", naive.Number("1"), []any{"result", "simulated"}, action.ActionOutcome},
		{"flag of another type", naive.Number("1"), []any{"executed"}, engine.ActionMalformed},
		{"idempotency key", "sha256:00", []any{"idempotency_key"}, action.ActionOutcome},
		{"summary flag", false, []any{"all_grounded"}, action.ActionAltered},
		{"grounded flag", false, []any{"payload_grounded"}, action.ActionAltered},
		{"route", "because", []any{"route", "reason"}, action.ActionAltered},
		{"extra member", "x", []any{"note"}, action.ActionAltered},
		{"render", "table PAYROLL, row 7", []any{"slots", 0, "support", 0, "locator", "render"}, action.ActionSlots},
		{"slot", "x", []any{"slots", 1, "role"}, action.ActionSlots},
		{"body", "x", []any{"request", "body", "body"}, action.ActionBody},
		{"path", "/x", []any{"request", "path"}, action.ActionRequest},
		{"route is a string", "rca", []any{"route"}, engine.ActionMalformed},
		{"slots are an object", map[string]any{}, []any{"slots"}, engine.ActionMalformed},
	} {
		doc := naive.Clone(receipt)
		naive.Put(doc, c.value, c.path...)
		if codes := check(doc); !slices.Contains(codes, c.code) {
			t.Errorf("%s: %v, want %s", c.name, codes, c.code)
		}
	}
	for _, path := range naive.Paths(receipt) {
		if len(path) > 2 || path[0] == "slots" && len(path) > 1 || path[0] == "result" && len(path) > 1 || path[0] == "all_grounded" {
			continue
		}
		doc := naive.Clone(receipt)
		naive.Put(doc, nil, path...)
		orNull := path[0] == "withheld_reason" || path[0] == "idempotency_key"
		if codes := check(doc); slices.Contains(codes, engine.ActionMalformed) == orNull {
			t.Errorf("null at %v: %v", path, codes)
		}
	}
	everything := naive.Clone(receipt)
	for _, path := range [][]any{{"request", "path"}, {"request", "body", "title"}, {"slots", 0, "value"}, {"outcome"}} {
		naive.Put(everything, "x", path...)
	}
	want := []engine.Code{action.ActionRequest, action.ActionBody, action.ActionSlots, action.ActionOutcome}
	if codes := check(everything); !slices.Equal(codes, want) {
		t.Errorf("all at once: %v", codes)
	}
}

// TestNoRequestFollows: a receipt beside an answer that yields none.
func TestNoRequestFollows(t *testing.T) {
	receipt, _ := checker(t, "incident", incidentQuestion)
	v, err := bundle.ParseValue(naive.Canon(receipt))
	if err != nil {
		t.Fatal(err)
	}
	d := decide(t, devex.Name, incidentQuestion)
	d.Claims[0].Verified = false
	domain := devex.New(devex.Name, engine.ReferenceVersion)
	findings, err := domain.CheckAction(v, d, nil)
	if err != nil || len(findings) != 1 || findings[0].Code != action.ActionWithheld {
		t.Errorf("%v, %v", findings, err)
	}
	if _, err := domain.DraftAction("incident", d); !errors.Is(err, engine.ErrActionWithheld) {
		t.Errorf("draft: %v", err)
	}
	if _, err := domain.DraftAction("rollback", d); !errors.Is(err, engine.ErrNoAction) {
		t.Errorf("unknown: %v", err)
	}
	if _, err := devex.New(devex.GitHubActions, devex.Version).DraftAction("pr_summary", d); !errors.Is(err, engine.ErrNoAction) {
		t.Errorf("other domain: %v", err)
	}
}
