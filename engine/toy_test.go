package engine_test

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/naive"
)

const (
	vectors = "../testdata/tessera/"
	e1File  = "../bundle/testdata/e1.tsb"
)

func readFile(tb testing.TB, path string) string {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

func mustParse(tb testing.TB, text string) *bundle.Bundle {
	tb.Helper()
	b, err := bundle.Parse(text)
	if err != nil {
		tb.Fatalf("parse bundle: %v", err)
	}
	return b
}

func mustJudge(tb testing.TB, text string) *engine.Judgement {
	tb.Helper()
	j, err := engine.Judge(mustParse(tb, text), known())
	if err != nil {
		tb.Fatalf("judge bundle: %v", err)
	}
	return j
}

// known are the domains of these tests.
func known() engine.Registry {
	return engine.Registry{demo(), toy(), engine.Chain("1.0.0"), engine.Chain(engine.ReferenceVersion)}
}

// demo is the test domain of the format's appendix D: retrieval and nothing else.
func demo() *engine.Domain {
	return &engine.Domain{
		Name: "demo", Version: "1.0.0",
		Route: func(question string, _ *engine.Graph, kb []engine.Record) (*engine.Answer, error) {
			return engine.Lookup(question, kb, 5, engine.Route{Kind: "lookup", Reason: fmt.Sprintf("lexical lookup over %d record(s)", len(kb))})
		},
	}
}

// toy is a domain of coloured items with weights. "How heavy are the red items?"
// and "Which item is the heaviest?" are computed, "find …" is looked up, and
// everything else is refused.
func toy() *engine.Domain {
	return &engine.Domain{
		Name: "toy", Version: "toy-1",
		Grammars: []engine.Grammar{
			{ID: "toy.weight", Judge: judgeWeight},
			{ID: "toy.heaviest", WholeGraph: true, Judge: judgeHeaviest},
		},
		Route: routeToy,
	}
}

func routeToy(question string, g *engine.Graph, kb []engine.Record) (*engine.Answer, error) {
	words := strings.Fields(strings.Trim(question, "?"))
	switch {
	case len(words) > 0 && words[0] == "find":
		return engine.Lookup(question, kb, 3, engine.Route{Kind: "lookup", Reason: "asks to find"})
	case strings.Contains(question, "heaviest"):
		item, weight, err := heaviest(g)
		if err != nil || item == nil {
			return &engine.Answer{Route: engine.Route{Kind: "rank"}}, err
		}
		text := fmt.Sprintf("The heaviest of %d item(s) is %s with %d kg.", len(g.Nodes), item.Name, weight)
		return &engine.Answer{Route: engine.Route{Kind: "rank", Reason: "asks for a ranking"}, Claims: []engine.Claim{{Text: text, Support: []*engine.Record{&item.Record}}}}, nil
	case len(words) == 6 && words[1] == "heavy":
		return weigh(words[4], g)
	}
	return &engine.Answer{Route: engine.Route{Kind: "refuse", Reason: "not about items"}, Refusal: "I only know about items."}, nil
}

func weigh(colour string, g *engine.Graph) (*engine.Answer, error) {
	a := &engine.Answer{Route: engine.Route{Kind: "weigh", Reason: "asks for the weight of " + colour + " items"}}
	var support []*engine.Record
	total := 0
	for i := range g.Nodes {
		if c, _ := g.Nodes[i].Attr("colour"); c == colour {
			w, err := weight(&g.Nodes[i])
			if err != nil {
				return nil, err
			}
			total += w
			support = append([]*engine.Record{&g.Nodes[i].Record}, support...) // backwards: the serialization sorts
		}
	}
	if len(support) == 0 {
		return a, nil
	}
	a.Claims = append(a.Claims, engine.Claim{Text: fmt.Sprintf("The %d %s item(s) weigh %d kg.", len(support), colour, total), Support: support})
	a.Claims = append(a.Claims, engine.Claim{Text: support[0].Text, Support: support[:1]})
	a.Claims = append(a.Claims, engine.Claim{Text: "All of them are pretty.", Support: support[:1]}) // never verified
	return a, nil
}

func weight(n *engine.Node) (int, error) {
	text, _ := n.Attr("kg")
	return strconv.Atoi(text)
}

func heaviest(g *engine.Graph) (*engine.Node, int, error) {
	var best *engine.Node
	most := 0
	for i := range g.Nodes {
		w, err := weight(&g.Nodes[i])
		if err != nil {
			return nil, 0, err
		}
		if best == nil || w > most {
			best, most = &g.Nodes[i], w
		}
	}
	return best, most, nil
}

func judgeWeight(c *engine.Claim, g *engine.Graph) (engine.Opinion, error) {
	var n, kg int
	var colour string
	if _, err := fmt.Sscanf(c.Text, "The %d %s item(s) weigh %d kg.", &n, &colour, &kg); err != nil {
		return engine.NoOpinion, nil
	}
	for _, r := range c.Support {
		node := g.Node(r.ID)
		if node == nil {
			return engine.Unsupported, nil
		}
		w, err := weight(node)
		if err != nil {
			return engine.NoOpinion, err
		}
		if c, _ := node.Attr("colour"); c != colour {
			return engine.Unsupported, nil
		}
		kg -= w
	}
	if n == len(c.Support) && kg == 0 {
		return engine.Supported, nil
	}
	return engine.Unsupported, nil
}

func judgeHeaviest(c *engine.Claim, g *engine.Graph) (engine.Opinion, error) {
	if !strings.HasPrefix(c.Text, "The heaviest of ") {
		return engine.NoOpinion, nil
	}
	item, w, err := heaviest(g)
	if err != nil || item == nil {
		return engine.Unsupported, err
	}
	if c.Text == fmt.Sprintf("The heaviest of %d item(s) is %s with %d kg.", len(g.Nodes), item.Name, w) {
		return engine.Supported, nil
	}
	return engine.Unsupported, nil
}

// toyGraph has red items 1, 3, 5 of 10, 30, 50 kg and blue items 2, 4 of 20, 40.
func toyGraph() (*engine.Graph, []engine.Record) {
	var nodes []engine.Node
	var kb []engine.Record
	for i := 1; i <= 5; i++ {
		colour := []string{"red", "blue"}[(i+1)%2]
		r := engine.Record{
			ID: fmt.Sprintf("item:%d", i), Source: fmt.Sprintf("items/%s.csv", colour),
			Locator:    engine.Locator{Kind: "table-row", Parts: []engine.Pair{{"table", colour}, {"row", strconv.Itoa(i)}}},
			IngestedAt: "2026-01-01",
			Text:       fmt.Sprintf("Item %d is %s, has serial X%d0 and weighs %d0 kg.", i, colour, i, i),
		}
		nodes = append(nodes, engine.Node{Record: r, Kind: "item", Name: fmt.Sprintf("item %d", i), Named: true, Attributes: []engine.Pair{{"colour", colour}, {"kg", strconv.Itoa(10 * i)}, {"colour", "ignored"}}})
		kb = append(kb, r)
	}
	edges := []engine.Edge{{Src: "item:1", Dst: "item:2", Relation: "beside"}, {Src: "item:3", Dst: "item:2", Relation: "above"}}
	resolutions := []engine.Resolution{{NodeA: "item:4", NodeB: "item:5", Score: engine.NumberOf(0.5), Confidence: engine.NumberOf(1), Reason: "same maker"}}
	mentions := []engine.Mention{{Chunk: "item:1", Node: "item:5", Confidence: engine.NumberOf(0.25), Reason: "text"}}
	return engine.NewGraph(nodes, edges, resolutions, mentions), kb
}

// seal writes the bundle of a question to a domain.
func seal(tb testing.TB, d *engine.Domain, question string, g *engine.Graph, kb []engine.Record) string {
	tb.Helper()
	draft, _, err := engine.NewDraft(d, question, g, kb)
	if err != nil {
		tb.Fatal(err)
	}
	return write(tb, draft)
}

func write(tb testing.TB, d *bundle.Draft) string {
	tb.Helper()
	var out bytes.Buffer
	if _, err := bundle.Write(&out, d, nil); err != nil {
		tb.Fatal(err)
	}
	if err := naive.Check(naive.MustParse(out.String())); err != nil {
		tb.Fatal(err)
	}
	return out.String()
}

// chainOf writes a chain over bundles.
func chainOf(tb testing.TB, question string, files ...string) string {
	tb.Helper()
	var upstreams []*bundle.Bundle
	for _, f := range files {
		upstreams = append(upstreams, mustParse(tb, f))
	}
	draft, _, err := engine.NewChain(engine.Chain("1.0.0"), question, upstreams, known())
	if err != nil {
		tb.Fatal(err)
	}
	return write(tb, draft)
}

// edited alters a bundle and seals it again.
func edited(tb testing.TB, text string, edit func(doc map[string]any)) string {
	tb.Helper()
	doc := naive.MustParse(text)
	edit(doc)
	naive.Seal(doc)
	return naive.File(doc)
}

func codes(findings []engine.Finding) []string {
	var out []string
	for _, f := range findings {
		out = append(out, string(f.Code))
	}
	return out
}
