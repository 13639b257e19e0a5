package business

import "github.com/chaind/chaind/engine"

// Compose answers as if the question were routed to composition.
func Compose(question string, g *engine.Graph) (*engine.Answer, error) {
	b := engine.Derived(g, open)
	r, err := b.read(question)
	if err != nil {
		return nil, err
	}
	return b.compose(r)
}

// The scanners of expressions.
var (
	RenewalDate = renewalDate
	Amount      = amount
	RefusedPair = refusedPair
)

// The expressions of claims.
const (
	CompareForm = compareForm
	SuperForm   = superForm
	CountsForm  = countsForm
	QuotedForm  = quotedForm
)
