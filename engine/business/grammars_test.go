package business_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/business"
	"github.com/chaind/chaind/engine/decimal"
	"github.com/chaind/chaind/engine/enginetest"
)

// opinion asks the six grammars, in their order.
func opinion(tb testing.TB, g *engine.Graph, text string, ids ...string) (engine.Opinion, error) {
	tb.Helper()
	c := engine.Claim{Text: text}
	for _, id := range ids {
		n := g.Node(id)
		if n == nil {
			n = &engine.Node{Record: engine.Record{ID: id}}
		}
		c.Support = append(c.Support, &n.Record)
	}
	for _, grammar := range business.New(business.Version).Grammars {
		got, err := grammar.Judge(&c, g)
		if err != nil || got != engine.NoOpinion {
			return got, err
		}
	}
	return engine.NoOpinion, nil
}

func sales(numbers ...string) []string {
	for i := range numbers {
		numbers[i] = "I_SalesDocument:00005000" + numbers[i]
	}
	return numbers
}

// dollars finds an order in USD.
func dollars(g *engine.Graph) []string {
	for i := range g.Nodes {
		if c, _ := g.Nodes[i].Attr("currency"); c == "USD" {
			return []string{g.Nodes[i].ID}
		}
	}
	return nil
}

// TestForgedClaims: claims over the published corpus, true ones and forgeries of
// each shape.
func TestForgedClaims(t *testing.T) {
	g, _ := enginetest.Corpus(t, enginetest.Read(t, "honest.tsb"))
	nordwind, mueller := []string{"50", "51", "71"}, []string{"01", "02", "20", "28", "60"}
	all := func() []string { return sales(append(append([]string{}, nordwind...), mueller...)...) }
	compare := func(a, x, n, b, y, m string) string {
		return "'" + a + "' (EUR " + x + " across " + n + " order(s)) exceeds '" + b + "' (EUR " + y + " across " + m + " order(s)) in total net order value."
	}
	const nw, ml = "Nordwind Logistik GmbH", "Mueller Logistik Gmbh"
	conflict := func(a, b string) string {
		return "Conflict: the cited documents disagree on the renewal date — '" + a + "' (x); '" + b + "' (y). No single renewal date can be asserted."
	}
	documents := []string{"mueller_logistik_amendment:chunk2", "mueller_logistik_msa:chunk3"}
	for _, c := range []struct {
		name, text string
		support    []string
		want       engine.Opinion
	}{
		{"comparison", compare(nw, "84,500.00", "3", ml, "77,500.00", "5"), all(), engine.Supported},
		{"the other name of an entity", compare(nw, "84,500.00", "3", "Müller Logistik GmbH", "77,500.00", "5"), all(), engine.Supported},
		{"digits of another script", compare(nw, "٨٤,٥٠٠.٠٠", "٣", ml, "77500.00", "05"), all(), engine.Supported},
		{"names swapped", compare(ml, "84,500.00", "3", nw, "77,500.00", "5"), all(), engine.Unsupported},
		{"lower exceeds higher", compare(ml, "77,500.00", "5", nw, "84,500.00", "3"), all(), engine.Unsupported},
		{"wrong amount", compare(nw, "84,500.01", "3", ml, "77,500.00", "5"), all(), engine.Unsupported},
		{"wrong count", compare(nw, "84,500.00", "4", ml, "77,500.00", "5"), all(), engine.Unsupported},
		{"an order left out", compare(nw, "84,500.00", "3", ml, "77,500.00", "5"), all()[1:], engine.Unsupported},
		{"an order cited twice", compare(nw, "84,500.00", "3", ml, "77,500.00", "5"), append(all(), all()[0]), engine.Unsupported},
		{"wrong currency", strings.Replace(compare(nw, "84,500.00", "3", ml, "77,500.00", "5"), "EUR", "USD", 1), all(), engine.Unsupported},
		{"nobody", compare("Nobody at all", "84,500.00", "3", ml, "77,500.00", "5"), all(), engine.Unsupported},

		{"wrong winner", "Among 13 entities with EUR orders, '" + nw + "' has the highest total net order value: EUR 197,500.00.", all(), engine.Unsupported},
		{"wrong field", "Among 12 entities with EUR orders, 'Orion Datentechnik GmbH' has the highest total net order value: EUR 197,500.00.", all(), engine.Unsupported},
		{"other orders cited", "Among 13 entities with EUR orders, 'Orion Datentechnik GmbH' has the highest total net order value: EUR 197,500.00.", all(), engine.Unsupported},
		{"two currencies", "Among 13 entities with EUR orders, 'Orion Datentechnik GmbH' has the highest total net order value: USD 197,500.00.", all(), engine.Unsupported},
		{"unknown currency", "Among 0 entities with JPY orders, 'Orion Datentechnik GmbH' has the highest total net order value: JPY 0.00.", all(), engine.Unsupported},

		{"conflict", conflict("1 February", "1 August"), documents, engine.Supported},
		{"uncited date", conflict("1 February", "2 August"), documents, engine.Unsupported},
		{"no conflict in what is cited", conflict("1 August", "1 August"), documents[1:], engine.Unsupported},
		{"one date twice", conflict("1 August", "1 August"), []string{documents[1], documents[1]}, engine.Unsupported},
		{"one clause of two", conflict("1 February", "1 August"), documents[1:], engine.Unsupported},

		{"total", "Total net order value across 5 order(s): EUR 77,500.00.", sales("01", "02", "20", "28", "60"), engine.Supported},
		{"total of others", "Total net order value across 5 order(s): EUR 77,500.00.", sales("50", "51", "71"), engine.NoOpinion},
		{"equal totals are never supported", "'A' and 'B' have the same total net order value: EUR 84,500.00.", append(sales("50", "51", "71"), sales("50", "51", "71")...), engine.NoOpinion},
		{"no order", "Total net order value: EUR 77,500.00.", []string{"nowhere"}, engine.NoOpinion},

		{"counts", "spanning 1 customer record(s) and 1 address record(s).", []string{"I_Customer:0010000007", "I_AddrOrgNamePostalAddress:A0007", "nowhere"}, engine.Supported},
		{"wrong counts", "spanning 2 customer record(s) and 1 address record(s).", []string{"I_Customer:0010000007", "I_AddrOrgNamePostalAddress:A0007"}, engine.NoOpinion},
		{"none counted", "spanning 00 customer record(s) and 1 address record(s).", []string{"I_AddrOrgNamePostalAddress:A0007"}, engine.Supported},
		{"none stated", "spanning 0 customer record(s) and 1 address record(s).", []string{"I_Customer:0010000007", "I_AddrOrgNamePostalAddress:A0007"}, engine.NoOpinion},
		{"none cited", "spanning 5 customer record(s) and 1 address record(s).", []string{"I_AddrOrgNamePostalAddress:A0007"}, engine.NoOpinion},
		{"refusal", "Refused to sum across EUR and USD: never.", append(dollars(g), sales("01")...), engine.Supported},
		{"refusal without both currencies", "Refused to sum across EUR and USD: never.", sales("01", "02"), engine.NoOpinion},
	} {
		got, err := opinion(t, g, c.text, c.support...)
		if got != c.want || err != nil {
			t.Errorf("%s: %d, %v; want %d", c.name, got, err, c.want)
		}
	}
	long := "spanning " + strings.Repeat("9", 5000) + " customer record(s) and 1 address record(s)."
	if got, err := opinion(t, g, long, "I_Customer:0010000007"); got != engine.NoOpinion || err == nil {
		t.Errorf("a count of 5000 digits: %d, %v", got, err)
	}
	const super = "Among 13 entities with EUR orders, 'Orion Datentechnik GmbH' has the highest total net order value: EUR 197,500.00."
	if _, err := opinion(t, g, super, "nowhere"); err == nil {
		t.Error("a ranking that rests on an absent record was judged")
	}
}

// market is n customers who ordered amounts in EUR, one order each.
func market(amounts ...string) *engine.Graph {
	var nodes []engine.Node
	var edges []engine.Edge
	for i, amount := range amounts {
		id := string(rune('A' + i))
		nodes = append(nodes,
			engine.Node{Record: engine.Record{ID: "I_Customer:" + id}, Kind: "I_Customer", Name: "Company Number " + id, Named: true},
			engine.Node{Record: engine.Record{ID: "I_SalesDocument:" + id}, Kind: "I_SalesDocument", Attributes: []engine.Pair{{"net_amount", amount}, {"currency", "EUR"}}})
		edges = append(edges, engine.Edge{Src: "I_SalesDocument:" + id, Dst: "I_Customer:" + id, Relation: "sold_to"})
	}
	return engine.NewGraph(nodes, edges, nil, nil)
}

// TestTornEntity: where a name may be withheld, a comparison that lacks it is
// not judged; one that has it is.
func TestTornEntity(t *testing.T) {
	whole := market("7", "5")
	torn := engine.NewGraph(whole.Nodes, whole.Edges, []engine.Resolution{{NodeA: "I_Customer:B", NodeB: "absent"}, {NodeA: "absent", NodeB: "also absent"}}, nil)
	absent := engine.NewGraph(slices.Delete(slices.Clone(whole.Nodes), 2, 3), whole.Edges, nil, nil)
	claim := func(b string) string {
		return "'Company Number A' (EUR 7.00 across 1 order(s)) exceeds '" + b + "' (EUR 5.00 across 1 order(s)) in total net order value."
	}
	for _, c := range []struct {
		g     *engine.Graph
		claim string
		want  engine.Opinion
		fails bool
	}{
		{whole, claim("Company Number B"), engine.Supported, false},
		{whole, claim("B Incorporated"), engine.Unsupported, false},
		{torn, claim("Company Number B"), engine.Supported, false},
		{torn, claim("B Incorporated"), engine.Unsupported, true},
		{absent, claim("Company Number B"), engine.Unsupported, true},
	} {
		got, err := opinion(t, c.g, c.claim, "I_SalesDocument:A", "I_SalesDocument:B")
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %d, %v", c.claim, got, err)
		}
	}
}

// TestRankingTie: of equal totals the first name wins in the answer, and the
// first entity verifies.
func TestRankingTie(t *testing.T) {
	d, err := business.New(business.Version).Decide("highest total in EUR?", market("5.00", "7", "7.000"), nil)
	if err != nil || len(d.Claims) != 1 || d.Claims[0].Text != "Among 3 entities with EUR orders, 'Company Number B' has the highest total net order value: EUR 7.00." || !d.Claims[0].Verified {
		t.Errorf("%+v, %v", enginetest.Decided(d), err)
	}
}

// TestUnreadableAmount: an amount that is no number stops the evaluation instead
// of counting as nothing.
func TestUnreadableAmount(t *testing.T) {
	for _, amount := range []string{"7,5", "NaN", "Infinity", "1e999999", "seven", " "} {
		g := market("5.00", amount)
		for _, question := range []string{"highest total in EUR?", "Company Number A or Company Number B?", "Company Number B"} {
			if _, err := business.New(business.Version).Decide(question, g, nil); !errors.Is(err, decimal.ErrSyntax) {
				t.Errorf("%q, %s: %v", amount, question, err)
			}
		}
		if _, err := opinion(t, g, "net order value: EUR 5.00", "I_SalesDocument:A", "I_SalesDocument:B"); !errors.Is(err, decimal.ErrSyntax) {
			t.Errorf("%q: %v", amount, err)
		}
	}
	const super = "Among 2 entities with EUR orders, 'Company Number B' has the highest total net order value: EUR 7.00."
	for _, g := range []*engine.Graph{market("7", "seven"), market("seven", "7")} {
		if _, err := opinion(t, g, super, "I_SalesDocument:B"); !errors.Is(err, decimal.ErrSyntax) {
			t.Errorf("ranking: %v", err)
		}
	}
	if got, err := opinion(t, market("5", "7"), super, "I_SalesDocument:B"); err != nil || got != engine.Supported {
		t.Errorf("ranking: %d, %v", got, err)
	}
	if _, err := business.New(business.Version).Decide("highest total in EUR?", market("", "1"), nil); err != nil {
		t.Errorf("an empty amount counts as 0: %v", err)
	}
}

// TestQuestionIsBounded: a question is refused when it is too long, or when
// comparing it with all names that are near it would take too long; names that
// are not near it cost nothing.
func TestQuestionIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("spends what the bound allows")
	}
	long := strings.Repeat("Company Number ", 1<<15) // 13 characters normalized, 425,984 in all
	for question, tooLong := range map[string]bool{
		strings.Repeat("x", 1<<20):   false,
		strings.Repeat("x", 1<<20+1): true,
		long:                         true,
		long[:len(long)/4]:           false,
	} {
		n := 26
		if !tooLong {
			n = 2
		}
		g := market(slices.Repeat([]string{"1"}, n)...)
		for i := range g.Nodes {
			if g.Nodes[i].Named {
				g.Nodes[i].Name += strings.Repeat(" AG", 70)
			}
		}
		_, err := business.New(business.Version).Decide(question, g, nil)
		if errors.Is(err, engine.ErrQuestionTooLong) != tooLong || !tooLong && err != nil {
			t.Errorf("%d bytes: %v", len(question), err)
		}
	}
}

// TestSixCharacters: a name counts from six characters in a row on, wherever in
// it they stand.
func TestSixCharacters(t *testing.T) {
	for question, route := range map[string]string{
		"compa": "lookup", "compan": "entity", "ompany": "entity", "number": "entity",
		"compan number":             "lookup", // half of the question
		"umber A":                   "lookup", // near one, and too little of it
		"pany number":               "multi",  // ten of fourteen, of both
		"What of company number A?": "multi",
	} {
		d, err := business.New(business.Version).Decide(question, market("1", "2"), nil)
		if err != nil || d.Route.Kind != route {
			t.Errorf("%s: %+v, %v; want %s", question, d.Route, err, route)
		}
	}
}
