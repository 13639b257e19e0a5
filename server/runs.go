package server

import (
	"net/http"
	"strings"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/store"
)

// runDocument is one chain that carries a seal of a run id. The same run id
// may stand in many.
type runDocument struct {
	RunID      string            `json:"run_id"`
	Chain      keyDocument       `json:"chain"`
	Seq        uint64            `json:"seq"` // segment of the first seal
	Outcome    events.Outcome    `json:"outcome"`
	Conformity events.Conformity `json:"conformity"`
	Head       *string           `json:"head"`
	Sealed     bool              `json:"sealed"` // its evidence has been written
	ChainURL   string            `json:"chain_url"`
}

type runPage struct {
	Runs []runDocument `json:"runs"`
	Next *string       `json:"next"`
}

// runs lists (run id, chain) pairs.
func (s *server) runs(w http.ResponseWriter, r *http.Request, a access) error {
	q := newQuery(r)
	ask := store.RunQuery(q.chains(a))
	if q.err != nil {
		return q.err
	}
	if s.Store == nil {
		return unavailable("this server has no store")
	}
	found, next, err := s.Store.Runs(ask)
	if err != nil {
		return err
	}
	page := runPage{Runs: make([]runDocument, len(found)), Next: cursor(next)}
	for i := range found {
		if page.Runs[i], err = s.describeRun(&found[i]); err != nil {
			return err
		}
	}
	return s.writeJSON(w, r, page)
}

func (s *server) describeRun(found *store.RunRecord) (runDocument, error) {
	chain, err := s.Store.Chain(found.Key)
	if err != nil {
		return runDocument{}, err
	}
	conformity, _ := chain.State.Conformity()
	return runDocument{
		RunID: found.RunID, Chain: describeKey(found.Key), Seq: found.Seq, Outcome: chain.State.Outcome,
		Conformity: conformity, Head: hexOf(chain.State.Head), Sealed: chain.Seal != nil, ChainURL: chainURL(found.Key),
	}, nil
}

func (q *query) runID() string {
	if !q.values.Has("run_id") {
		return ""
	}
	digits, ok := strings.CutPrefix(strings.TrimSpace(q.values.Get("run_id")), "pr")
	if !ok || digits == "" || len(digits) > 64 || !isHex(digits, len(digits)) {
		q.fail("run_id must be pr and up to 64 hex digits: a run id or the beginning of one")
	}
	return "pr" + strings.ToLower(digits)
}
