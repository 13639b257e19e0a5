package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chaind/chaind/engine"
)

func TestGraph(t *testing.T) {
	node := func(id, name string) engine.Node {
		return engine.Node{Record: engine.Record{ID: id}, Name: name, Attributes: []engine.Pair{{"k", "1"}, {"k", "2"}, {"e", ""}}}
	}
	edge := func(src, relation, dst string) engine.Edge {
		return engine.Edge{Src: src, Dst: dst, Relation: relation}
	}
	g := engine.NewGraph(
		[]engine.Node{node("a", "first"), node("b", ""), node("c", ""), node("a", "second"), node("d", ""), node("e", "")},
		[]engine.Edge{edge("a", "r", "b"), edge("c", "s", "b"), edge("a", "t", "ghost"), edge("a", "r", "b")},
		[]engine.Resolution{{NodeA: "e", NodeB: "b"}, {NodeA: "c", NodeB: "ghost"}, {NodeA: "b", NodeB: "e"}, {NodeA: "d", NodeB: "e"}},
		[]engine.Mention{{Chunk: "a", Node: "b", Reason: "1"}, {Chunk: "c", Node: "d"}, {Chunk: "e", Node: "b", Reason: "2"}},
	)
	if n := g.Node("a"); n == nil || n.Name != "first" || g.Node("ghost") != nil {
		t.Errorf("node a is %+v", n)
	}
	if i, ok := g.Position("c"); i != 2 || !ok {
		t.Errorf("c is at %d, %t", i, ok)
	}
	if v, ok := g.Node("a").Attr("k"); v != "1" || !ok {
		t.Errorf("k is %q", v)
	}
	if v, ok := g.Node("a").Attr("e"); v != "" || !ok {
		t.Error("an empty attribute is absent")
	}
	if _, ok := g.Node("a").Attr("x"); ok {
		t.Error("x is there")
	}
	relations := func(s []*engine.Edge) (out []string) {
		for _, e := range s {
			out = append(out, e.Src+e.Relation+e.Dst)
		}
		return out
	}
	if diff := cmp.Diff([]string{"arb", "atghost", "arb"}, relations(slices.Collect(g.From("a")))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"arb", "csb", "arb"}, relations(slices.Collect(g.To("b")))); diff != "" {
		t.Error(diff)
	}
	if got := slices.Collect(g.From("ghost")); got != nil {
		t.Errorf("edges from nowhere: %v", got)
	}
	for range g.To("b") {
		break
	}
	if m := slices.Collect(g.MentionsOf("b")); len(m) != 2 || m[0].Reason != "1" || m[1].Reason != "2" {
		t.Errorf("mentions %v", m)
	}
	e := g.Entities()
	if diff := cmp.Diff([][]int32{{0}, {1, 4, 5}, {2}, {3}}, e.Members); diff != "" {
		t.Error(diff)
	}
	if e.Of(5) != 1 || e.Of(0) != 0 || e.Of(3) != 3 {
		t.Error("an entity is wrong")
	}
	empty := engine.NewGraph(nil, nil, nil, nil)
	if len(empty.Entities().Members) != 0 || empty.Node("") != nil {
		t.Error("the empty graph has something")
	}
}

// TestLongResolution: a long chain of resolutions is one entity, in linear time.
func TestLongResolution(t *testing.T) {
	const n = 100000
	nodes := make([]engine.Node, n)
	resolutions := make([]engine.Resolution, n-1)
	for i := range nodes {
		nodes[i].ID = fmt.Sprint(i)
	}
	for i := range resolutions {
		resolutions[i] = engine.Resolution{NodeA: fmt.Sprint(n - 1 - i), NodeB: fmt.Sprint(n - 2 - i)}
	}
	if e := engine.NewGraph(nodes, nil, resolutions, nil).Entities(); len(e.Members) != 1 || len(e.Members[0]) != n {
		t.Errorf("%d entities", len(e.Members))
	}
}

func TestLocator(t *testing.T) {
	l := engine.Locator{Kind: "doc-span", Parts: []engine.Pair{{"lines", "1-2"}, {"chunk", "3"}, {"lines", "9-9"}}}
	if got := l.Render(); got != "lines 1-2, chunk 3, lines 9-9" {
		t.Errorf("rendered %q", got)
	}
	if v, ok := l.Part("lines"); v != "9-9" || !ok {
		t.Errorf("lines are %q", v)
	}
	if _, ok := l.Part("row"); ok || (&engine.Locator{}).Render() != "" {
		t.Error("an empty locator has something")
	}
}

// TestGenericGrammars: what every domain's claims may be besides its own.
func TestGenericGrammars(t *testing.T) {
	record := func(source, text string) *engine.Record {
		return &engine.Record{ID: source + text, Source: source, Text: text}
	}
	log1, log2 := record("a.log", "12:00 ERROR broker: gone after 5s\nnext"), record("b.log", "Broker GONE after 5s.")
	d := &engine.Domain{Name: "none"}
	g := engine.NewGraph(nil, nil, nil, nil)
	for _, tt := range []struct {
		text    string
		support []*engine.Record
		want    bool
	}{
		{"broker gone after 5s", []*engine.Record{log1}, true},
		{"Broker: gone, after 5s!", []*engine.Record{log2, log1}, true},
		{"broker gone after 6s", []*engine.Record{log1, log2}, false},
		{"", []*engine.Record{log1}, false},
		{"…", []*engine.Record{log1}, false},
		{`Recurring: "broker gone" appears in 'a.log' and 'b.log'.`, []*engine.Record{log1, log2}, true},
		{"Recurring: \"broker gone\" appears in 'a.log' and 'b.log'.\n", []*engine.Record{log1, log2}, true},
		{`Recurring: "broker gone" appears in 'b.log', 'a.log' and 'b.log'`, []*engine.Record{log1, log2}, true},
		{`Recurring: "broker gone" appears in ''a.log'' and 'b.log'`, []*engine.Record{log1, log2}, false},
		{`Recurring: "broker gone" appears in 'a.log' and 'b.log' and 'c.log'`, []*engine.Record{log1, log2}, false},
		{`Recurring: "broker gone" appears in 'a.log'`, []*engine.Record{log1, log2}, false},
		{`Recurring: "broker gone" appears in 'a.log' and 'b.log'`, []*engine.Record{log1}, false},
		{`Recurring: "next" appears in 'a.log' and 'b.log'`, []*engine.Record{log1, log2}, false},
		{`Recurring: "…" appears in 'a.log' and 'b.log'`, []*engine.Record{log1, log2}, false},
		{`say "x" and "broker gone" appears in 'a.log' and 'b.log'`, []*engine.Record{log1, log2}, true},
		{`"" appears in 'a.log' and 'b.log'`, []*engine.Record{log1, log2}, false},
		{`broker "gone" after`, []*engine.Record{log1}, true},
		{`"gone`, []*engine.Record{log1}, true},
		{`"gone" appears in `, []*engine.Record{log1}, false},
	} {
		d.Route = func(string, *engine.Graph, []engine.Record) (*engine.Answer, error) {
			return &engine.Answer{Claims: []engine.Claim{{Text: tt.text, Support: tt.support}}}, nil
		}
		decision, err := d.Decide("", g, nil)
		if err != nil || decision.Claims[0].Verified != tt.want {
			t.Errorf("%q: %+v, %v", tt.text, decision, err)
		}
	}
}
