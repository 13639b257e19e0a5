package business

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/decimal"
)

// Kinds of nodes and relations.
const (
	customerKind = "I_Customer"
	addressKind  = "I_AddrOrgNamePostalAddress"
	documentKind = "document"
	soldTo       = "sold_to"
)

// books is what router and grammars read of a graph, gathered once.
type books struct {
	graph      *engine.Graph
	entities   []entity            // in the order of graph.Entities
	orders     []order             // of every node, by position
	currencies []string            // of all nodes, distinct, sorted
	rankings   map[string]*ranking // by currency
}

// entity is one party: nodes that are the same.
type entity struct {
	name   string   // for display; "": it has none
	names  []string // normalized, distinct, sorted; an empty name counts
	orders []int32  // positions of the nodes sold to it, each once, by id
	torn   bool     // a resolution leads to an absent node, so there may be more names
}

// order is a node as something sold.
type order struct {
	currency string // "": none
	amount   decimal.Decimal
	err      error // the amount is no number
	customer int32 // entity that its first sold_to edge leads to, or one of:
}

const (
	noCustomer     = -1
	absentCustomer = -2 // the edge leads to a node that is not there
)

// ranking is everyone with orders in a currency.
type ranking struct {
	places []place // in the order of entities
	best   place   // the first with the highest total
	err    error   // an amount is no number
}

// place is an entity in a ranking.
type place struct {
	entity int
	orders []int32
	total  decimal.Decimal
	err    error // an amount is no number
}

func open(g *engine.Graph) *books {
	b := &books{graph: g}
	b.readEntities()
	b.readOrders()
	b.readSales()
	b.rank()
	return b
}

func (b *books) readEntities() {
	all := b.graph.Entities()
	b.entities = make([]entity, len(all.Members))
	for i, members := range all.Members {
		e := &b.entities[i]
		e.name = b.graph.DisplayName(i)
		for _, m := range members {
			if n := &b.graph.Nodes[m]; n.Named {
				e.names = append(e.names, engine.Normalize(n.Name))
			}
		}
		slices.Sort(e.names)
		e.names = slices.Compact(e.names)
	}
	for i := range b.graph.Resolutions {
		r := &b.graph.Resolutions[i]
		x, okX := b.graph.Position(r.NodeA)
		y, okY := b.graph.Position(r.NodeB)
		if okX != okY {
			b.entities[all.Of(max(x, y))].torn = true // the absent one has position 0
		}
	}
}

func (b *books) readOrders() {
	b.orders = make([]order, len(b.graph.Nodes))
	seen := map[string]bool{}
	for i := range b.graph.Nodes {
		n, o := &b.graph.Nodes[i], &b.orders[i]
		o.customer = noCustomer
		o.currency, _ = n.Attr("currency")
		if o.currency != "" {
			seen[o.currency] = true
		}
		if text, _ := n.Attr("net_amount"); text != "" {
			if o.amount, o.err = decimal.Parse(text); o.err != nil {
				o.err = fmt.Errorf("net_amount of %q: %w", n.ID, o.err)
			}
		}
	}
	b.currencies = slices.Sorted(maps.Keys(seen))
}

func (b *books) readSales() {
	for i := range b.graph.Edges {
		e := &b.graph.Edges[i]
		if e.Relation != soldTo {
			continue
		}
		src, okSrc := b.graph.Position(e.Src)
		dst, okDst := b.graph.Position(e.Dst)
		if !okSrc {
			continue
		}
		customer := int32(absentCustomer)
		if okDst {
			customer = int32(b.graph.Entities().Of(dst))
			b.entities[customer].orders = append(b.entities[customer].orders, int32(src))
		}
		if b.orders[src].customer == noCustomer {
			b.orders[src].customer = customer
		}
	}
	for i := range b.entities {
		orders := b.entities[i].orders
		slices.SortFunc(orders, func(x, y int32) int { return strings.Compare(b.graph.Nodes[x].ID, b.graph.Nodes[y].ID) })
		b.entities[i].orders = slices.Compact(orders)
	}
}

// rank adds up the orders of every entity that has a name, even an empty one.
func (b *books) rank() {
	b.rankings = map[string]*ranking{}
	for i := range b.entities {
		if len(b.entities[i].names) == 0 {
			continue
		}
		for currency, orders := range b.byCurrency(i) {
			r := b.rankings[currency]
			if r == nil {
				r = &ranking{}
				b.rankings[currency] = r
			}
			total, err := b.sum(orders)
			r.add(place{i, orders, total, err})
		}
	}
}

func (r *ranking) add(p place) {
	if len(r.places) == 0 || p.total.Cmp(r.best.total) > 0 {
		r.best = p
	}
	r.places = append(r.places, p)
	r.err = cmp.Or(r.err, p.err)
}

// unknownCurrency stands for that of orders that name none.
const unknownCurrency = "?"

// byCurrency groups the orders of an entity.
func (b *books) byCurrency(entity int) map[string][]int32 {
	out := map[string][]int32{}
	for _, i := range b.entities[entity].orders {
		currency := b.orders[i].currency
		if currency == "" {
			currency = unknownCurrency
		}
		out[currency] = append(out[currency], i)
	}
	return out
}

// sum adds up net amounts, left to right.
func (b *books) sum(orders []int32) (decimal.Decimal, error) {
	var total decimal.Decimal
	for _, i := range orders {
		o := &b.orders[i]
		if o.err != nil {
			return decimal.Decimal{}, o.err
		}
		total = total.Add(o.amount)
	}
	return total, nil
}

// records are those of the nodes at some positions.
func (b *books) records(positions []int32) []*engine.Record {
	out := make([]*engine.Record, len(positions))
	for i, p := range positions {
		out[i] = &b.graph.Nodes[p].Record
	}
	return out
}

// errAbsent says that a grammar needs a node that is not in the evidence.
var errAbsent = errors.New("the claim needs a record that is absent from the evidence")

// called says that an entity has a member of this normalized name.
func (b *books) called(entity int32, name string) bool {
	_, found := slices.BinarySearch(b.entities[entity].names, name)
	return found
}
