package main

import (
	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/verifier"
)

// explanation is a trust bundle told to people. Texts are raw.
type explanation struct {
	Question string           `json:"question"`
	Refusal  *string          `json:"refusal"`
	Claims   []explainedClaim `json:"claims"`
	Evidence evidenceCount    `json:"evidence"`
	Action   *explainedAction `json:"action"`

	answer string // mark of the answer as a whole
}

type explainedClaim struct {
	Index    int             `json:"index"`
	Text     string          `json:"text"`
	Verdict  string          `json:"verdict"`
	Evidence []explainedItem `json:"evidence"`

	mark string
}

type explainedItem struct {
	ID      string `json:"id"`
	Source  string `json:"source"`
	Locator string `json:"locator"`
	Text    string `json:"text"`
}

type evidenceCount struct {
	Cited    int `json:"cited"`
	Packaged int `json:"packaged"`
	Withheld int `json:"withheld"`
}

type explainedAction struct {
	Kind    string          `json:"kind"`
	Verdict string          `json:"verdict"`
	Method  string          `json:"method"`
	Path    string          `json:"path"`
	Body    string          `json:"body"` // canonical JSON
	Outcome string          `json:"outcome"`
	Slots   []explainedSlot `json:"slots"`
}

type explainedSlot struct {
	Part  string `json:"part"`
	Role  string `json:"role"`
	Value string `json:"value"`
}

// unreliable is the mark of whatever stands in a file that is not what was
// sealed.
const unreliable = "broken file"

// explain projects a report; nil when there is nothing that could be shown.
func explain(r *verifier.Report) *explanation {
	c := r.Content
	if c == nil || c.Result == nil {
		return nil
	}
	recorded := c.Result.Recorded
	e := &explanation{Question: recorded.Question, Claims: []explainedClaim{}, Evidence: count(c), Action: explainAction(c), answer: answerMark(r)}
	if recorded.HasRefusal {
		e.Refusal = &recorded.Refusal
	}
	for i := range c.Claims {
		verdict := c.Claims[i].Verdict
		out := explainedClaim{Index: i, Text: c.Claims[i].Text, Verdict: string(verdict), Evidence: []explainedItem{}, mark: claimMark(r, verdict)}
		for _, s := range recorded.Claims[i].Support {
			out.Evidence = append(out.Evidence, explainedItem{s.ID, s.Source, s.Locator.Render(), s.Text})
		}
		e.Claims = append(e.Claims, out)
	}
	return e
}

// claimMark is the verdict on a claim for people: what fails is loud, and
// nothing in a broken file is called re-derived.
func claimMark(r *verifier.Report, v verifier.ClaimVerdict) string {
	switch {
	case v == verifier.ClaimUnsupported:
		return "UNSUPPORTED"
	case v == verifier.ClaimAltered:
		return "ALTERED"
	case r.Verdict == verifier.Broken:
		return unreliable
	case v == verifier.ClaimNotEvaluable:
		return "not evaluated"
	}
	return string(v)
}

func answerMark(r *verifier.Report) string {
	switch {
	case r.Content.Result.Answer == engine.AnswerDiffers:
		return "DOES NOT RE-DERIVE"
	case r.Verdict == verifier.Broken:
		return unreliable
	case r.Content.Result.Answer == engine.AnswerRederives:
		return "re-derived"
	}
	return "not evaluated"
}

// count tells distinct cited records from those that the file packages.
func count(c *verifier.Content) evidenceCount {
	cited := map[string]bool{}
	for i := range c.Result.Recorded.Claims {
		for _, s := range c.Result.Recorded.Claims[i].Support {
			cited[s.ID] = true
		}
	}
	return evidenceCount{len(cited), c.Bundle.Closure.Get("graph").Get("nodes").Len(), len(c.Withheld)}
}

func explainAction(c *verifier.Content) *explainedAction {
	action := c.Bundle.Action
	if action.Kind() != bundle.Object {
		return nil
	}
	request := action.Get("request")
	out := &explainedAction{
		Kind: action.Get("kind").Text(), Verdict: string(c.Action), Outcome: action.Get("outcome").Text(), Slots: []explainedSlot{},
		Method: request.Get("method").Text(), Path: request.Get("path").Text(), Body: string(request.Get("body").AppendCanonical(nil)),
	}
	for _, slot := range action.Get("slots").Items() {
		out.Slots = append(out.Slots, explainedSlot{slot.Get("part").Text(), slot.Get("role").Text(), slot.Get("value").Text()})
	}
	return out
}
