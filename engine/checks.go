package engine

import (
	"fmt"
	"slices"

	"github.com/chaind/chaind/bundle"
)

// checkClaims judges every recorded claim by its recorded support. When one
// cannot be judged at all, the list stays empty.
func (e *execution) checkClaims() error {
	checks := make([]ClaimCheck, 0, len(e.result.Recorded.Claims))
	for i := range e.result.Recorded.Claims {
		check, err := e.checkClaim(i, &e.result.Recorded.Claims[i])
		if err != nil {
			return fmt.Errorf("claim %d: %w", i, err)
		}
		checks = append(checks, check)
	}
	e.result.Claims = checks
	return nil
}

func (e *execution) checkClaim(i int, c *RecordedClaim) (ClaimCheck, error) {
	out := ClaimCheck{Index: i, Text: c.Text, Recorded: c.Verified}
	if e.closure.Partial {
		if id, altered := e.alteredSupport(c); altered {
			out.Evaluated = true
			out.Cause = claimFinding(SupportAltered, i, "claim %d quotes the record %s differently from the packaged evidence", i, bundle.Quote(id))
			return out, nil
		}
	}
	if slices.ContainsFunc(c.Support, func(r *Record) bool { return e.closure.Withheld[r.ID] }) {
		return out, nil
	}
	ruling, err := e.domain.judge(&Claim{c.Text, c.Support}, e.closure.Graph)
	redacted := len(e.closure.Withheld) > 0 && len(c.Support) > 0
	if redacted && (err != nil || ruling.wholeGraph) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	out.Evaluated, out.Rederived = true, ruling.supported
	switch {
	case c.Verified && !out.Rederived:
		out.Cause = claimFinding(ClaimUnsupported, i, "claim %d is recorded as verified and does not re-derive from the packaged evidence", i)
	case !c.Verified && out.Rederived:
		out.Cause = claimFinding(ClaimAltered, i, "claim %d re-derives and is recorded as not verified: the recorded verdict was altered", i)
	}
	return out, nil
}

func claimFinding(code Code, i int, format string, args ...any) *Finding {
	return &Finding{Code: code, Where: fmt.Sprintf("result.claims[%d]", i), Detail: fmt.Sprintf(format, args...)}
}

// alteredSupport finds a support item that is not what its visible node says.
// In a whole bundle re-deriving the answer establishes as much.
func (e *execution) alteredSupport(c *RecordedClaim) (string, bool) {
	for _, r := range c.Support {
		n := e.closure.Graph.Node(r.ID)
		if n != nil && !n.Record.equal(r) {
			return r.ID, true
		}
	}
	return "", false
}

// checkAnswer answers the recorded question again and compares bytes.
func (e *execution) checkAnswer() error {
	question := e.result.Recorded.Question
	answer, err := e.domain.Route(question, e.closure.Graph, e.closure.KB)
	if err != nil {
		return err
	}
	fresh, err := e.domain.decision(question, answer, e.closure.Graph)
	if err != nil {
		return err
	}
	if e.records(fresh) {
		e.result.Answer = AnswerRederives
		return nil
	}
	tied, err := e.tied(answer)
	if err != nil {
		return err
	}
	if tied {
		e.result.Answer = AnswerTied
		e.result.AnswerCause = &Finding{Code: RankingTie, Where: "result",
			Detail: "the answer differs only by records whose scores are equal within 1e-12: such a tie is not reproducible"}
		return nil
	}
	code, detail := difference(e.result.Recorded, fresh)
	e.result.Answer = AnswerDiffers
	e.result.AnswerCause = &Finding{Code: code, Where: "result", Detail: detail}
	return nil
}

// records says that the file records this decision, byte for byte. An answer can
// be many times as long as the evidence, so one that is longer than what the file
// records is not written.
func (e *execution) records(d *Decision) bool {
	return d.leastSize() <= e.b.Result.Size() && e.b.Result.EqualCanonical(d.Append(nil))
}

// tied says that the recorded answer is the ranking's own but for records that
// share a rank: serialized from the recorded choice, the answer is the result
// section byte for byte.
func (e *execution) tied(answer *Answer) (bool, error) {
	claims := e.result.Recorded.Claims
	if answer.Ranking == nil || len(claims) != len(answer.Ranking.Hits) {
		return false, nil
	}
	byID := map[string][]int{}
	for i := range e.closure.KB {
		byID[e.closure.KB[i].ID] = append(byID[e.closure.KB[i].ID], i)
	}
	chosen := make([]int, len(claims))
	used := map[int]bool{}
	for rank := range claims {
		if len(claims[rank].Support) != 1 {
			return false, nil
		}
		i := slices.IndexFunc(byID[claims[rank].Support[0].ID], func(p int) bool {
			return !used[p] && answer.Ranking.tied(p, answer.Ranking.Hits[rank]) && e.closure.KB[p].equal(claims[rank].Support[0])
		})
		if i < 0 {
			return false, nil
		}
		chosen[rank] = byID[claims[rank].Support[0].ID][i]
		used[chosen[rank]] = true
	}
	other := *answer
	other.Claims = quoteRecords(e.closure.KB, chosen)
	decision, err := e.domain.decision(e.result.Recorded.Question, &other, e.closure.Graph)
	if err != nil {
		return false, err
	}
	return e.records(decision), nil
}

func (e *execution) checkAction() error {
	if e.domain.CheckAction == nil {
		e.result.structural(ActionUnknown, "action", "the domain %q has no actions, so this one cannot be re-derived", e.domain.Name)
		return nil
	}
	findings, err := e.domain.CheckAction(e.b.Action, e.result.Recorded, e.closure.Graph)
	if err != nil {
		return err
	}
	e.result.Structural = append(e.result.Structural, findings...)
	return nil
}
