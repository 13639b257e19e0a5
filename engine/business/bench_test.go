package business_test

import (
	"fmt"
	"testing"

	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/business"
)

// firms is n firms with one order each.
func firms(n int) *engine.Graph {
	nodes := make([]engine.Node, 0, 2*n)
	edges := make([]engine.Edge, 0, n)
	for i := range n {
		customer, order := fmt.Sprintf("I_Customer:%d", i), fmt.Sprintf("I_SalesDocument:%d", i)
		nodes = append(nodes,
			engine.Node{Record: engine.Record{ID: customer}, Kind: "I_Customer", Name: fmt.Sprintf("Firm Number %d", i), Named: true},
			engine.Node{Record: engine.Record{ID: order}, Kind: "I_SalesDocument", Attributes: []engine.Pair{{"net_amount", fmt.Sprintf("%d.50", i)}, {"currency", "EUR"}}})
		edges = append(edges, engine.Edge{Src: order, Dst: customer, Relation: "sold_to"})
	}
	return engine.NewGraph(nodes, edges, nil, nil)
}

// BenchmarkRanking ranks all of n firms and verifies the claim, the graph being
// new each time: the time per firm must not grow with n.
func BenchmarkRanking(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			whole := firms(n)
			b.ReportAllocs()
			for b.Loop() {
				g := engine.NewGraph(whole.Nodes, whole.Edges, nil, nil)
				d, err := business.New(business.Version).Decide("Who has the highest total in EUR?", g, nil)
				if err != nil || len(d.Claims) != 1 || !d.Claims[0].Verified {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/firm")
		})
	}
}

// BenchmarkManyClaims judges n claims about the whole graph of n firms: the time
// per claim must not grow with n.
func BenchmarkManyClaims(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := firms(n)
			last := fmt.Sprintf("I_SalesDocument:%d", n-1)
			text := fmt.Sprintf("Among %d entities with EUR orders, 'Firm Number %d' has the highest total net order value: EUR %d.50.", n, n-1, n-1)
			claim := engine.Claim{Text: text, Support: []*engine.Record{&g.Node(last).Record}}
			judge := business.New(business.Version).Grammars[1].Judge
			for b.Loop() {
				for range n {
					if opinion, err := judge(&claim, g); err != nil || opinion != engine.Supported {
						b.Fatal(opinion, err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/claim")
		})
	}
}
