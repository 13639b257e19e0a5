package business

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/decimal"
	"github.com/chaind/chaind/engine/text"
)

const shapePrefix = "tessera.business.claims."

// Expressions of the claims. Go and Python find the same match of these.
const (
	amountForm  = `([A-Z]{3}) ([\p{Nd},]+\.\p{Nd}{2})`
	accountForm = `'(.+?)' \(` + amountForm + ` across (\p{Nd}+) order\(s\)\)`
	compareForm = accountForm + ` exceeds ` + accountForm + ` in total net order value`
	superForm   = `Among (\p{Nd}+) entities with ([A-Z]{3}) orders, '(.+?)' has the highest total net order value: ` + amountForm
	countsForm  = `spanning (\p{Nd}+) customer record\(s\) and (\p{Nd}+) address record\(s\)`
	quotedForm  = `'(\p{Nd}{1,2} [A-Z][a-z]+)'`
)

// grammars are the six claim shapes, in their order.
func grammars() []engine.Grammar {
	compare, super := regexp.MustCompile(compareForm), regexp.MustCompile(superForm)
	counts, quoted := regexp.MustCompile(countsForm), regexp.MustCompile(quotedForm)
	type judge = func(*books, []string, *engine.Claim) (engine.Opinion, error)
	match := func(part string, form *regexp.Regexp, judge judge) func(*engine.Claim, *engine.Graph) (engine.Opinion, error) {
		return func(c *engine.Claim, g *engine.Graph) (engine.Opinion, error) {
			if !strings.Contains(c.Text, part) { // most claims, and much faster than the expression
				return engine.NoOpinion, nil
			}
			m := form.FindStringSubmatch(c.Text)
			if m == nil {
				return engine.NoOpinion, nil
			}
			return judge(engine.Derived(g, open), m[1:], c)
		}
	}
	return []engine.Grammar{
		{ID: shapePrefix + "compare_conclusion", Judge: match(" exceeds '", compare, (*books).judgeCompare)},
		{ID: shapePrefix + "superlative_conclusion", WholeGraph: true, Judge: match("Among ", super, (*books).judgeSuperlative)},
		{ID: shapePrefix + "conflict_disclosure", Judge: func(c *engine.Claim, _ *engine.Graph) (engine.Opinion, error) { return judgeConflict(c, quoted), nil }},
		{ID: shapePrefix + "aggregate_recompute", Judge: judgeAggregate},
		{ID: shapePrefix + "count_match", Judge: match("spanning ", counts, (*books).judgeCounts)},
		{ID: shapePrefix + "refuse_to_sum", Judge: judgeRefusal},
	}
}

func opinion(supported bool) engine.Opinion {
	if supported {
		return engine.Supported
	}
	return engine.Unsupported
}

// judgeCompare recomputes both sides of "'A' (…) exceeds 'B' (…)" from the
// cited orders of each, then compares.
func (b *books) judgeCompare(m []string, c *engine.Claim) (engine.Opinion, error) {
	first, err := b.side(m[:4], c)
	if err != nil || first == nil {
		return engine.Unsupported, err
	}
	second, err := b.side(m[4:], c)
	if err != nil || second == nil {
		return engine.Unsupported, err
	}
	return opinion(first.Cmp(*second) > 0), nil
}

// side recomputes the total of one side: name, currency, amount and count as
// stated. Nil: it is not as stated. When nodes are absent that could make it so,
// that is an error instead.
func (b *books) side(m []string, c *engine.Claim) (*decimal.Decimal, error) {
	orders, unsure := b.ordersOf(engine.Normalize(m[0]), c)
	total, err := b.asStated(m[1], m[2], m[3], orders)
	if err == nil && total == nil && unsure {
		return nil, errAbsent
	}
	return total, err
}

// asStated is the total of orders if currency, amount and count are right.
func (b *books) asStated(currency, amount, count string, orders []int32) (*decimal.Decimal, error) {
	if same, err := counted(count, len(orders)); err != nil || !same {
		return nil, err
	}
	for _, i := range orders {
		if b.orders[i].currency != currency {
			return nil, nil
		}
	}
	total, err := b.sum(orders)
	if err != nil || !stated(amount, total) {
		return nil, err
	}
	return &total, nil
}

// ordersOf are the positions of the cited records that were sold to an entity
// of a name, as often as they are cited. Unsure says that absent nodes may hide
// that more were.
func (b *books) ordersOf(name string, c *engine.Claim) (orders []int32, unsure bool) {
	for _, r := range c.Support {
		i, ok := b.graph.Position(r.ID)
		if !ok || b.orders[i].customer == noCustomer {
			continue
		}
		customer := b.orders[i].customer
		switch {
		case customer == absentCustomer:
			unsure = true
		case b.called(customer, name):
			orders = append(orders, int32(i))
		default:
			unsure = unsure || b.entities[customer].torn
		}
	}
	return orders, unsure
}

// judgeSuperlative ranks everyone anew: the count, the highest total and who
// has it must be as stated, and the cited orders must add up to that total.
func (b *books) judgeSuperlative(m []string, c *engine.Claim) (engine.Opinion, error) {
	count, currency, name, amount := m[0], m[1], engine.Normalize(m[2]), m[4]
	if m[3] != currency {
		return engine.Unsupported, nil
	}
	r := b.rankings[currency]
	if r == nil {
		r = &ranking{}
	}
	if r.err != nil {
		return engine.Unsupported, r.err
	}
	same, err := counted(count, len(r.places))
	if err != nil || !same || len(r.places) == 0 {
		return engine.Unsupported, err
	}
	if !stated(amount, r.best.total) {
		return engine.Unsupported, nil
	}
	if !b.called(int32(r.best.entity), name) {
		return engine.Unsupported, nil
	}
	return b.judgeCited(currency, amount, c)
}

// judgeCited demands that the cited nodes are all of a currency and add up to
// an amount.
func (b *books) judgeCited(currency, amount string, c *engine.Claim) (engine.Opinion, error) {
	cited := make([]int32, len(c.Support))
	for k, r := range c.Support {
		i, ok := b.graph.Position(r.ID)
		if !ok {
			return engine.Unsupported, errAbsent
		}
		cited[k] = int32(i)
	}
	total, err := b.sum(cited)
	if err != nil || !stated(amount, total) {
		return engine.Unsupported, err
	}
	other := func(i int32) bool { return b.orders[i].currency != currency }
	return opinion(!slices.ContainsFunc(cited, other)), nil
}

// judgeConflict demands that the dates quoted are exactly those that the cited
// texts give.
func judgeConflict(c *engine.Claim, quoted *regexp.Regexp) engine.Opinion {
	if !strings.Contains(c.Text, "disagree on the renewal date") {
		return engine.NoOpinion
	}
	told, given := map[string]bool{}, map[string]bool{}
	for _, m := range quoted.FindAllStringSubmatch(c.Text, -1) {
		told[m[1]] = true
	}
	for _, r := range c.Support {
		date := renewalDate(r.Text)
		if date == "" {
			continue
		}
		if !told[date] {
			return engine.Unsupported
		}
		given[date] = true
	}
	return opinion(len(told) >= 2 && len(given) == len(told) && len(c.Support) >= 2)
}

// judgeAggregate supports a total that the cited orders add up to, and leaves
// other claims to those who come after it.
func judgeAggregate(c *engine.Claim, g *engine.Graph) (engine.Opinion, error) {
	currency, number := amount(c.Text)
	if currency == "" || !strings.Contains(engine.Lower(c.Text), "net order value") {
		return engine.NoOpinion, nil
	}
	b := engine.Derived(g, open)
	var total decimal.Decimal
	for _, r := range c.Support {
		i, ok := g.Position(r.ID)
		if !ok || b.orders[i].currency != currency {
			return engine.NoOpinion, nil
		}
		if b.orders[i].err != nil {
			return engine.NoOpinion, b.orders[i].err
		}
		total = total.Add(b.orders[i].amount)
	}
	if stated(number, total) {
		return engine.Supported, nil
	}
	return engine.NoOpinion, nil
}

// judgeCounts supports the number of customers and addresses that are cited.
func (b *books) judgeCounts(m []string, c *engine.Claim) (engine.Opinion, error) {
	customers, addresses := 0, 0
	for _, r := range c.Support {
		n := b.graph.Node(r.ID)
		switch {
		case n == nil:
		case n.Kind == customerKind:
			customers++
		case n.Kind == addressKind:
			addresses++
		}
	}
	sameCustomers, err := counted(m[0], customers)
	if err != nil {
		return engine.NoOpinion, err
	}
	sameAddresses, err := counted(m[1], addresses)
	if err != nil || !sameCustomers || !sameAddresses {
		return engine.NoOpinion, err
	}
	return engine.Supported, nil
}

// judgeRefusal supports a refusal to add up two currencies that are both cited.
func judgeRefusal(c *engine.Claim, g *engine.Graph) (engine.Opinion, error) {
	first, second := refusedPair(c.Text)
	if first == "" {
		return engine.NoOpinion, nil
	}
	b := engine.Derived(g, open)
	hasFirst, hasSecond := false, false
	for _, r := range c.Support {
		if i, ok := g.Position(r.ID); ok {
			hasFirst = hasFirst || b.orders[i].currency == first
			hasSecond = hasSecond || b.orders[i].currency == second
		}
	}
	if hasFirst && hasSecond {
		return engine.Supported, nil
	}
	return engine.NoOpinion, nil
}

// maxCount is how many digits a count in a claim may have.
const maxCount = 4300

// counted says that a count is stated as n, leading zeros and all scripts
// allowed.
func counted(digits string, n int) (bool, error) {
	digits = text.ASCIIDigits(digits)
	if len(digits) > maxCount {
		return false, fmt.Errorf("the claim states a count of %d digits", len(digits))
	}
	digits = strings.TrimLeft(digits, "0")
	return digits == strconv.Itoa(n) || digits == "" && n == 0, nil
}

// stated says that an amount is exactly the one stated. One beyond what a
// decimal may be is no sum of decimals either.
func stated(amount string, total decimal.Decimal) bool {
	d, err := decimal.Parse(strings.ReplaceAll(amount, ",", ""))
	return err == nil && d.Cmp(total) == 0
}
