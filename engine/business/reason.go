package business

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/decimal"
	"github.com/chaind/chaind/engine/text"
)

// reason answers questions that need more than one entity.
func (b *books) reason(question string, r *reading) (*engine.Answer, error) {
	switch {
	case len(r.named) == 2:
		return b.compare(r.named[0], r.named[1])
	case len(r.named) > 2:
		return refusal("Ambiguous: the question matches more than two entities (%s).", strings.Join(names(r.named), ", "))
	case asksForRanking(question):
		return b.superlative(question)
	}
	return refusal("I can't treat this as a multi-step question (compare two named entities, or ask for the highest total in a named currency).")
}

// account is what one side of a comparison was sold.
type account struct {
	name, currency string
	orders         []int32
	total          decimal.Decimal
}

func (a *account) money() string { return a.currency + " " + a.total.Money() }

func (b *books) compare(x, y mention) (*engine.Answer, error) {
	var sides [2]account
	for i, m := range []mention{x, y} {
		groups := b.byCurrency(m.entity)
		currencies := slices.Sorted(maps.Keys(groups))
		switch {
		case len(groups) == 0:
			return refusal("No sales orders found for '%s' — nothing to compare.", m.name)
		case len(groups) > 1:
			return refusal("Cannot compare: '%s' has orders in %s, which are not directly comparable.", m.name, strings.Join(currencies, " and "))
		}
		sides[i] = account{name: m.name, currency: currencies[0], orders: groups[currencies[0]]}
	}
	a, c := &sides[0], &sides[1]
	if a.currency != c.currency {
		return refusal("Cannot compare: '%s' has orders in %s but '%s' in %s; the totals are not directly comparable.", a.name, a.currency, c.name, c.currency)
	}
	out := &engine.Answer{}
	for i := range sides {
		var err error
		if sides[i].total, err = b.sum(sides[i].orders); err != nil {
			return nil, err
		}
		text := fmt.Sprintf("'%s': total net order value across %d order(s): %s.", sides[i].name, len(sides[i].orders), sides[i].money())
		out.Claims = append(out.Claims, engine.Claim{Text: text, Support: b.records(sides[i].orders)})
	}
	both := append(b.records(a.orders), b.records(c.orders)...)
	out.Claims = append(out.Claims, engine.Claim{Text: conclusion(a, c), Support: both})
	return out, nil
}

func conclusion(a, c *account) string {
	switch a.total.Cmp(c.total) {
	case 0:
		return fmt.Sprintf("'%s' and '%s' have the same total net order value: %s.", a.name, c.name, a.money())
	case -1:
		a, c = c, a
	}
	return fmt.Sprintf("'%s' (%s across %d order(s)) exceeds '%s' (%s across %d order(s)) in total net order value.",
		a.name, a.money(), len(a.orders), c.name, c.money(), len(c.orders))
}

// superlative finds the entity with the highest total in the currency that the
// question names.
func (b *books) superlative(question string) (*engine.Answer, error) {
	currency := ""
	for _, word := range text.Capitals(question) {
		if _, known := slices.BinarySearch(b.currencies, word); known {
			currency = word
			break
		}
	}
	if currency == "" {
		return refusal("A single ranking would mix currencies (%s); name one (e.g. 'in EUR') and I can rank the totals honestly.", strings.Join(b.currencies, ", "))
	}
	places, err := b.ranked(currency)
	if err != nil {
		return nil, err
	}
	if len(places) == 0 {
		return refusal("No entity has orders in %s.", currency)
	}
	winner := slices.MinFunc(places, func(x, y place) int {
		return cmp.Or(y.total.Cmp(x.total), strings.Compare(b.entities[x.entity].name, b.entities[y.entity].name))
	})
	text := fmt.Sprintf("Among %d entities with %s orders, '%s' has the highest total net order value: %s %s.",
		len(places), currency, b.entities[winner.entity].name, currency, winner.total.Money())
	return &engine.Answer{Claims: []engine.Claim{{Text: text, Support: b.records(winner.orders)}}}, nil
}

// ranked are the entities with a name to call them by and orders in a currency.
func (b *books) ranked(currency string) ([]place, error) {
	r := b.rankings[currency]
	if r == nil {
		return nil, nil
	}
	var out []place
	for _, p := range r.places {
		if b.entities[p.entity].name == "" {
			continue
		}
		if p.err != nil {
			return nil, p.err
		}
		out = append(out, p)
	}
	return out, nil
}
