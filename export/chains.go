package export

import (
	"fmt"

	"github.com/chaind/chaind/verifier"
)

// origin is where evidence says it comes from.
type origin struct{ tenant, promptHash, session, head string }

// chains compares the evidence with the chain that it is listed for. Evidence
// that does not say where it comes from has failed already.
func (c *checking) chains() {
	for _, chain := range c.manifest.Chains {
		want := origin{chain.Tenant, chain.PromptHash, chain.Session, ""}
		if chain.Head != nil {
			want.head = *chain.Head
		}
		for _, path := range []*string{chain.Evidence, chain.Bundle} {
			if path == nil {
				continue
			}
			if got, known := c.origins[*path]; known && got != want {
				c.fail(CodeOther, *path, verifier.ExitEnvelope, "is evidence of another chain than it is listed for")
				continue
			}
			for _, d := range c.amounts[*path].differences(&chain) {
				c.fail(CodeDiffers, *path, verifier.ExitEnvelope, d)
			}
		}
	}
}

// amount is what evidence says beside where it comes from. Of an evidence
// bundle that is the number of segments, of a trust bundle whose claims re-derive
// the words of the manifest, too; the zero value says nothing.
type amount struct {
	known                      bool
	segments                   uint64
	words                      bool
	chain, outcome, conformity string
}

func amountOf(r *verifier.Report) amount {
	switch {
	case r.Content != nil && r.Content.Run != nil:
		run := r.Content.Run
		return amount{true, run.Segments, true, run.Chain, string(run.Outcome), string(run.Conformity)}
	case r.ComputedHead != nil:
		return amount{known: true, segments: r.Segments}
	}
	return amount{}
}

// differences compares with what the manifest says of the chain.
func (a amount) differences(c *Chain) []string {
	var found []string
	if a.known && a.segments != uint64(c.Segments) {
		found = append(found, fmt.Sprintf("has %d segments, and the manifest says %d", a.segments, c.Segments))
	}
	for _, word := range []struct{ what, own, listed string }{
		{"chain", a.chain, c.Chain}, {"outcome", a.outcome, c.Outcome}, {"conformity", a.conformity, c.Conformity},
	} {
		if a.words && word.own != word.listed {
			found = append(found, fmt.Sprintf("has the %s %s, and the manifest says %s", word.what, shown(word.own), shown(word.listed)))
		}
	}
	return found
}
