package server

import (
	"net/http"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/store"
)

func rejectedFilters() []string {
	return []string{"tenant", "prompt_hash", "session", "chain", "class", "after", "limit"}
}

// rejectionDocument is one rejected event. Its payload is not shown: it is
// whatever a publisher sent. Its digest finds it in the rejected stream.
type rejectionDocument struct {
	ID        uint64       `json:"id"`
	Chain     *keyDocument `json:"chain"` // null: the subject names none
	Subject   string       `json:"subject"`
	StreamSeq uint64       `json:"stream_seq"`
	BrokerMS  uint64       `json:"broker_ms"`
	EventID   string       `json:"event_id"` // "" when it cannot be read
	Class     string       `json:"class"`
	Detail    string       `json:"detail"`
	SHA256    string       `json:"payload_sha256"`
	Existing  *string      `json:"existing_sha256"` // conflict only
	AfterEnd  bool         `json:"after_end"`
}

type rejectionPage struct {
	Rejected []rejectionDocument `json:"rejected"`
	Next     *string             `json:"next"`
}

func describeRejection(e *events.Rejection) rejectionDocument {
	d := rejectionDocument{
		ID: e.ID, Subject: e.Subject, StreamSeq: e.StreamSeq, BrokerMS: e.BrokerMS, EventID: e.EventID,
		Class: string(e.Class), Detail: e.Detail, SHA256: e.Sum.String(), Existing: hexOf(e.Existing), AfterEnd: e.AfterEnd,
	}
	if e.Attributed {
		key := describeKey(e.Key)
		d.Chain = &key
	}
	return d
}

// rejected lists rejected events, oldest first. A caller bound to tenants sees
// only those that are attributed to one of them.
func (s *server) rejected(w http.ResponseWriter, r *http.Request, a access) error {
	q := newQuery(r)
	ask := store.RejectedQuery{
		Tenant: q.tenant(a),
		Class:  events.Class(q.oneOf("class", classNames()...)),
		After:  q.number(),
		Limit:  q.limit(),
	}
	ask.Key = q.wholeKey(ask.Tenant)
	if q.err != nil {
		return q.err
	}
	if s.Store == nil {
		return unavailable("this server has no store")
	}
	found, next, err := s.Store.Rejected(ask)
	if err != nil {
		return err
	}
	page := rejectionPage{Rejected: make([]rejectionDocument, len(found)), Next: countCursor(next)}
	for i := range found {
		page.Rejected[i] = describeRejection(&found[i])
	}
	return s.writeJSON(w, r, page)
}

// wholeKey is the one chain asked for, which takes all of its name; nil: any.
func (q *query) wholeKey(tenant *string) *events.Key {
	key := events.Key{PromptHash: q.hex("prompt_hash", 64), Session: q.hex("session", 32), Chain: q.token("chain")}
	if key == (events.Key{}) {
		return nil
	}
	if tenant == nil || key.PromptHash == "" || key.Session == "" || key.Chain == "" {
		q.fail("one chain is named by tenant, prompt_hash, session and chain together")
		return nil
	}
	key.Tenant = *tenant
	return &key
}

func classNames() []string {
	names := make([]string, len(classes))
	for i, c := range classes {
		names[i] = string(c)
	}
	return names
}
