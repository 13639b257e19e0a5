package domains_test

import (
	"slices"
	"testing"

	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/business"
	"github.com/chaind/chaind/engine/devex"
	"github.com/chaind/chaind/engine/enginetest"
)

// needsEmbeddings are the gold questions whose evidence has links that only an
// embedding model finds. The published corpora were built without one.
var needsEmbeddings = map[string]string{
	"09_checkout_oncall_semantic.json": "Owner:checkout-svc",
}

// TestGold: the gold questions, asked of the published corpora.
func TestGold(t *testing.T) {
	cs := published(t)
	for _, domain := range []string{business.Name, devex.Name} {
		for _, g := range enginetest.Golds(t, domain) {
			got := enginetest.Decided(cs[domain].decide(t, g.Question))
			missing := g.Missing(got)
			if id, ok := needsEmbeddings[g.File]; ok {
				if !slices.Contains(missing, "support "+id) {
					t.Errorf("%s: answered without embeddings", g.File)
				}
				continue
			}
			if len(missing) > 0 {
				t.Errorf("%s lacks %q: %+v", g.File, missing, got)
			}
		}
	}
}

// TestUnknownRun: of the questions about github_actions, whose corpus is not
// published here, the one that needs no corpus.
func TestUnknownRun(t *testing.T) {
	cs := published(t)
	d, err := devex.New(devex.GitHubActions, engine.ReferenceVersion).Decide("Why did run 99999999999 fail?", cs[devex.Name].graph, cs[devex.Name].kb)
	if err != nil || d.Refusal != "There is no run 99999999999 in the knowledge graph." || d.Domain != "github_actions" || d.Route.Kind != "rca" {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestRecordedDecisions: what the reference was seen to answer, in the parts
// that were recorded.
func TestRecordedDecisions(t *testing.T) {
	cs := published(t)
	for _, c := range []struct{ domain, question, route, refusal, claim string }{
		{business.Name, "Logistik", "entity", "Ambiguous: the question matches more than one entity (Mueller Logistik Gmbh and Nordwind Logistik GmbH); please disambiguate.", ""},
		{business.Name, "What services does Logistik provide?", "lookup", "", ""},
		{business.Name, "Who are our Iberia contacts?", "lookup", "", ""},
		{business.Name, "Tell me about Kontor's operations.", "lookup", "", ""},
		{business.Name, "renewal", "lookup", "", ""},
		{business.Name, "When does the service agreement renew?", "lookup", "", ""},
		{business.Name, "What is the capital of France?", "lookup", engine.DefaultRefusal, ""},
		{business.Name, "What is Atlas Trading's total order value?", "entity", "", "Refused to sum across EUR and USD: the orders are in different currencies and are not directly comparable."},
		{business.Name, "Compare Maple Leaf Mining and Müller Logistik totals.", "multi", "Cannot compare: 'Maple eLaf Mining Corp.' has orders in CAD but 'Mueller Logistik Gmbh' in EUR; the totals are not directly comparable.", ""},
		{business.Name, "Compare Atlas Trading and Müller Logistik totals.", "multi", "Cannot compare: 'Atlas Trading GmbH' has orders in EUR and USD, which are not directly comparable.", ""},
		{business.Name, "Which entity has the highest total order value in EUR?", "multi", "", "Among 13 entities with EUR orders, 'Orion Datentechnik GmbH' has the highest total net order value: EUR 197,500.00."},
		{devex.Name, "Why did run R-1041 fail?", "rca", "Run R-1041 did not fail — it passed. There is no failure to explain.", ""},
		{devex.Name, "Why did run R-9999 fail?", "rca", "There is no run R-9999 in the knowledge graph.", ""},
		{devex.Name, "Did PR-201 break run R-1042?", "rca", "", ""},
		{devex.Name, "Who is on call for the espresso machine?", "lookup", "", ""},
		{devex.Name, "payments-service or checkout-service?", "service", "Ambiguous service reference — it could mean: 'checkout-service', 'payments-service'.", ""},
		{devex.Name, "What is notif-svc?", "service", "", ""},
		{devex.Name, "payments-service or auth-service?", "service", "", ""},
	} {
		d := cs[c.domain].decide(t, c.question)
		found := c.claim == ""
		for _, claim := range d.Claims {
			found = found || claim.Text == c.claim && claim.Verified
		}
		if d.Route.Kind != c.route || !found || c.refusal != "" && d.Refusal != c.refusal || c.refusal == "" && d.Refused {
			t.Errorf("%s: %+v", c.question, enginetest.Decided(d))
		}
	}
}
