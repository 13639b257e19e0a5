package devex_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/devex"
	"github.com/chaind/chaind/engine/enginetest"
)

// logs builds two failed runs: R-100 before R-200, with chunks of text each.
func logs(before, after []string) (*engine.Graph, []engine.Record) {
	var nodes []engine.Node
	var edges []engine.Edge
	for run, chunks := range [][]string{before, after} {
		name := fmt.Sprintf("R-%d00", run+1)
		nodes = append(nodes, engine.Node{
			Record:     engine.Record{ID: "Run:" + name, Source: "runs.csv", Text: "Run " + name + " failed."},
			Kind:       "Run",
			Attributes: []engine.Pair{{"status", "failed"}, {"started", fmt.Sprintf("2026-0%d-01", run+1)}},
		})
		for i, text := range chunks {
			id := fmt.Sprintf("run_%s:chunk%d", name, i+1)
			nodes = append(nodes, engine.Node{Record: engine.Record{ID: id, Source: name + ".log", Text: text}, Kind: "document"})
			edges = append(edges, engine.Edge{Src: id, Dst: "Run:" + name, Relation: "log_of"})
		}
	}
	kb := make([]engine.Record, len(nodes))
	for i := range nodes {
		kb[i] = nodes[i].Record
	}
	return engine.NewGraph(nodes, edges, nil, nil), kb
}

// TestSignature: which error line characterizes a failure, seen by the claim of
// its recurrence and the chunk that it rests on.
func TestSignature(t *testing.T) {
	trailer := "##[error]Process completed with exit code 1."
	const trailerClaim = "Process completed with exit code 1."
	for _, c := range []struct {
		name   string
		chunks []string
		line   string // "": none
		anchor int
	}{
		{"a log line that is no named error", []string{"ERROR -  Doc file contains a link", trailer}, trailerClaim, 2},
		{"a sharper line after the trailer", []string{trailer, "##[error]strict mode: 4 warnings raised"}, "strict mode: 4 warnings raised", 2},
		{"a sharper line that cannot be quoted", []string{trailer, `##[error]Missing config key "docs_dir"`}, trailerClaim, 1},
		{"a line after one that cannot be quoted", []string{"ERROR job: \"x\"\nERROR job: plain"}, "plain", 1},
		{"no Latin letters", []string{"##[error]テストが失敗しました"}, "", 0},
		{"no letters", []string{"##[error]!!!"}, "", 0},
		{"nothing at all", []string{"##[error]   "}, "", 0},
		{"a negative exit code is a trailer", []string{"##[error]Process completed with exit code -1073741819.", "##[error]boom"}, "boom", 2},
		{"named errors come before the others of a chunk", []string{"##[error]first\nERROR job: second"}, "second", 1},
		{"a named error keeps its trailing space", []string{"ERROR job: spaced out  "}, "spaced out  ", 1},
	} {
		g, kb := logs(c.chunks, c.chunks)
		d, err := devex.New(devex.Name, devex.Version).Decide("Why did R-200 fail?", g, kb)
		if err != nil {
			t.Fatal(err)
		}
		var got []engine.RecordedClaim
		for _, claim := range d.Claims[1:] {
			if strings.HasPrefix(claim.Text, "Recurring failure: ") {
				got = append(got, claim)
			}
		}
		quoted := len(d.Claims) - 1 - len(got)
		if c.line == "" {
			if len(got) > 0 || quoted != len(c.chunks) {
				t.Errorf("%s: %+v", c.name, enginetest.Decided(d))
			}
			continue
		}
		want := fmt.Sprintf(`Recurring failure: "%s" appears in 'R-100.log' and 'R-200.log'.`, c.line)
		if len(got) != 1 || got[0].Text != want || !got[0].Verified || quoted != len(c.chunks) {
			t.Errorf("%s: %+v", c.name, enginetest.Decided(d))
			continue
		}
		anchor := fmt.Sprintf("run_R-200:chunk%d", c.anchor)
		if last := got[0].Support[len(got[0].Support)-1].ID; last != anchor {
			t.Errorf("%s: rests on %s, want %s", c.name, last, anchor)
		}
	}
}

// TestRecurrenceIsBefore: the same failure in the same run, in a later one or at
// the same time is none.
func TestRecurrenceIsBefore(t *testing.T) {
	g, kb := logs([]string{"##[error]boom", "##[error]boom"}, []string{"##[error]boom"})
	d, err := devex.New(devex.Name, devex.Version).Decide("Why did R-100 fail?", g, kb)
	if err != nil || len(d.Claims) != 3 {
		t.Errorf("%+v, %v", enginetest.Decided(d), err)
	}
}

// TestOtherRelations: only the edges that mean it make a log, a diff or a motive.
func TestOtherRelations(t *testing.T) {
	g, kb := logs([]string{"##[error]boom"}, []string{"##[error]boom"})
	for i := range g.Edges {
		g.Edges[i].Relation = "mentions"
	}
	nodes := append(g.Nodes, engine.Node{Record: engine.Record{ID: "PR:PR-100", Text: "PR"}, Kind: "PR"}, engine.Node{Record: engine.Record{ID: "Ticket:T", Text: "T"}, Kind: "Ticket"})
	edges := append(g.Edges, engine.Edge{Src: "run_R-100:chunk1", Dst: "PR:PR-100", Relation: "log_of"}, engine.Edge{Src: "PR:PR-100", Dst: "Ticket:T", Relation: "mentions"})
	g = engine.NewGraph(nodes, edges, nil, nil)
	for _, question := range []string{"Why did R-200 fail?", "What is PR-100?"} {
		d, err := devex.New(devex.Name, devex.Version).Decide(question, g, kb)
		if err != nil || len(d.Claims) != 1 {
			t.Errorf("%s: %+v, %v", question, enginetest.Decided(d), err)
		}
	}
}

// TestRecordedCauses: claims and support that the reference was seen to give for
// runs of the published corpus.
func TestRecordedCauses(t *testing.T) {
	g, kb := enginetest.Corpus(t, enginetest.Read(t, "rca.tsb"))
	domain := devex.New(devex.Name, engine.ReferenceVersion)
	d, err := domain.Decide("Why did run R-1042 fail, and has this happened before?", g, kb)
	if err != nil {
		t.Fatal(err)
	}
	var support [][]string
	for _, c := range enginetest.Decided(d).Claims {
		support = append(support, c.Support)
	}
	want := [][]string{
		{"Run:R-1042"}, {"run_R-1042:chunk5"}, {"run_R-0987:chunk5", "run_R-1042:chunk5"}, {"Ticket:DEVEX-187", "run_R-1042:chunk5"},
		{"Ticket:DEVEX-187"}, {"PR:PR-198", "Ticket:DEVEX-187"}, {"PR:PR-198"}, {"PR-198.diff:hunk1"},
	}
	if diff := cmp.Diff(want, support); diff != "" {
		t.Errorf("R-1042 (-want +got):\n%s", diff)
	}
	for run, has := range map[string][3]bool{ // recurrence, incident, resolution
		"R-1023": {false, true, false}, "R-1031": {true, true, false}, "R-1018": {}, "R-1012": {}, "R-1042": {true, true, true},
	} {
		d, err := domain.Decide("Why did run "+run+" fail?", g, kb)
		if err != nil || d.Refused {
			t.Errorf("%s: %v, %v", run, d, err)
			continue
		}
		var got [3]bool
		for _, c := range d.Claims {
			for i, label := range []string{"Recurring failure:", "Documented incident:", "Resolved by:"} {
				got[i] = got[i] || strings.HasPrefix(c.Text, label)
			}
		}
		if got != has {
			t.Errorf("%s: %v, want %v", run, got, has)
		}
	}
	for question, first := range map[string]string{
		"Who owns notif-svc?":                  "Component:SVC-NOTIF",
		"Who is on call for payments-service?": "Component:SVC-PAY",
		"What is checkout-svc?":                "Owner:checkout-svc",
		"payments-service or auth-service?":    "Component:SVC-PAY",
	} {
		d, err := domain.Decide(question, g, kb)
		if err != nil || d.Route.Kind != "service" || len(d.Claims) == 0 || d.Claims[0].Support[0].ID != first {
			t.Errorf("%s: %+v, %v", question, enginetest.Decided(d), err)
		}
	}
}

// TestAnswerIsBounded: tickets, pull requests and hunks multiply.
func TestAnswerIsBounded(t *testing.T) {
	g, _ := logs([]string{"x"}, []string{"##[error]boom"})
	nodes, edges := g.Nodes, g.Edges
	add := func(kind, id, text string) {
		nodes = append(nodes, engine.Node{Record: engine.Record{ID: id, Source: kind, Text: text}, Kind: kind})
	}
	add("PR", "PR:PR-1", "PR PR-1 fixes it.")
	for i := range 400 {
		ticket, hunk := fmt.Sprintf("Ticket:T-%d", i), fmt.Sprintf("PR-1.diff:hunk%d", i)
		add("Ticket", ticket, "Ticket: boom")
		add("document", hunk, "@@ hunk")
		edges = append(edges, engine.Edge{Src: "PR:PR-1", Dst: ticket, Relation: "motivated_by"}, engine.Edge{Src: hunk, Dst: "PR:PR-1", Relation: "diff_of"})
	}
	g = engine.NewGraph(nodes, edges, nil, nil)
	_, err := devex.New(devex.Name, devex.Version).Decide("Why did R-200 fail?", g, nil)
	if err != devex.ErrAnswerTooLong {
		t.Errorf("%v", err)
	}
}
