package business

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chaind/chaind/engine"
)

// compose tells everything about one entity: who it is, what it ordered, what
// the documents that mention it say, and where those contradict each other.
func (b *books) compose(r *reading) (*engine.Answer, error) {
	if r.ambiguous() {
		return refusal("Ambiguous: the question matches more than one entity (%s); please disambiguate.", strings.Join(r.candidates(), " and "))
	}
	out := &engine.Answer{}
	if len(r.nearest) == 1 {
		e := r.nearest[0].entity
		out.Claims = append(out.Claims, b.identity(e)...)
		orders, err := b.totals(e)
		if err != nil {
			return nil, err
		}
		out.Claims = append(out.Claims, orders...)
		documents := b.documents(e)
		out.Claims = append(out.Claims, quotes(documents)...)
		out.Claims = append(out.Claims, conflict(documents)...)
	}
	if len(out.Claims) == 0 {
		return refusal("I couldn't find an entity in the knowledge graph for that question.")
	}
	return out, nil
}

// identity says of how many records an entity with customers is made.
func (b *books) identity(entity int) []engine.Claim {
	var support []*engine.Record
	customers, addresses := 0, 0
	for _, m := range b.graph.Entities().Members[entity] {
		n := &b.graph.Nodes[m]
		switch n.Kind {
		case customerKind:
			customers++
		case addressKind:
			addresses++
		default:
			continue
		}
		support = append(support, &n.Record)
	}
	if customers == 0 {
		return nil
	}
	text := fmt.Sprintf("'%s' is one resolved entity spanning %d customer record(s) and %d address record(s).", b.entities[entity].name, customers, addresses)
	return []engine.Claim{{Text: text, Support: support}}
}

// totals adds up the orders of an entity, each currency for itself.
func (b *books) totals(entity int) ([]engine.Claim, error) {
	groups := b.byCurrency(entity)
	currencies := slices.Sorted(maps.Keys(groups))
	format := "Total net order value across %[2]d order(s): %[1]s %[3]s."
	if len(groups) > 1 {
		format = "Net order value in %[1]s across %[2]d order(s): %[1]s %[3]s."
	}
	var out []engine.Claim
	for _, currency := range currencies {
		total, err := b.sum(groups[currency])
		if err != nil {
			return nil, err
		}
		text := fmt.Sprintf(format, currency, len(groups[currency]), total.Money())
		out = append(out, engine.Claim{Text: text, Support: b.records(groups[currency])})
	}
	if len(groups) > 1 {
		text := fmt.Sprintf("Refused to sum across %s: the orders are in different currencies and are not directly comparable.", strings.Join(currencies, " and "))
		out = append(out, engine.Claim{Text: text, Support: b.records(b.entities[entity].orders)})
	}
	return out, nil
}

// documents are the document nodes of every source that mentions an entity, in
// node order.
func (b *books) documents(entity int) []*engine.Node {
	mentioning := map[string]bool{}
	for _, m := range b.graph.Entities().Members[entity] {
		for mention := range b.graph.MentionsOf(b.graph.Nodes[m].ID) {
			if chunk := b.graph.Node(mention.Chunk); chunk != nil {
				mentioning[chunk.Source] = true
			}
		}
	}
	var out []*engine.Node
	for i := range b.graph.Nodes {
		if n := &b.graph.Nodes[i]; n.Kind == documentKind && mentioning[n.Source] {
			out = append(out, n)
		}
	}
	return out
}

// quotes are the documents word for word, by id.
func quotes(documents []*engine.Node) []engine.Claim {
	sorted := slices.SortedStableFunc(slices.Values(documents), func(x, y *engine.Node) int { return strings.Compare(x.ID, y.ID) })
	out := make([]engine.Claim, len(sorted))
	for i, n := range sorted {
		out[i] = engine.Claim{Text: n.Text, Support: []*engine.Record{&n.Record}}
	}
	return out
}

// conflict tells that documents give different dates of renewal.
func conflict(documents []*engine.Node) []engine.Claim {
	dates := map[string]bool{}
	var parts []string
	var support []*engine.Record
	for _, n := range documents {
		date := renewalDate(n.Text)
		if date == "" {
			continue
		}
		dates[date] = true
		parts = append(parts, fmt.Sprintf("'%s' (%s)", date, n.Source))
		support = append(support, &n.Record)
	}
	if len(dates) < 2 {
		return nil
	}
	text := fmt.Sprintf("Conflict: the cited documents disagree on the renewal date — %s. No single renewal date can be asserted.", strings.Join(parts, "; "))
	return []engine.Claim{{Text: text, Support: support}}
}
