package server

import (
	"net/http"
)

// epochDocument is one unbroken history of a stream. A stream that was made
// anew, or whose broker lost what it had, continues in another one.
type epochDocument struct {
	Number    uint32 `json:"number"`
	Stream    string `json:"stream"`
	CreatedNS int64  `json:"stream_created_ns"`
	Base      uint64 `json:"base"`    // sequence before the epoch's first
	Applied   uint64 `json:"applied"` // last sequence of it that is durable here
	Why       string `json:"why"`
	StartedMS int64  `json:"started_ms"`
}

type epochPage struct {
	Epochs []epochDocument `json:"epochs"`
	Next   *string         `json:"next"`
}

type lostPage struct {
	Lost []lostDocument `json:"lost"`
	Next *string        `json:"next"`
}

// epochs lists the histories of streams, oldest first. They belong to no
// tenant, so that only a caller who may read everything sees them.
func (s *server) epochs(w http.ResponseWriter, r *http.Request, a access) error {
	after, limit, err := s.wholeStore(r, a)
	if err != nil {
		return err
	}
	all, err := s.Store.Epochs()
	if err != nil {
		return err
	}
	page := epochPage{Epochs: []epochDocument{}}
	for i, e := range all {
		if uint64(e.Number) <= after {
			continue
		}
		if len(page.Epochs) == limit {
			page.Next = countCursor(uint64(all[i-1].Number))
			break
		}
		page.Epochs = append(page.Epochs, epochDocument{Number: e.Number, Stream: e.Stream.Name, CreatedNS: e.Stream.CreatedNS,
			Base: e.Base, Applied: e.Applied, Why: e.Why, StartedMS: e.StartedMS})
	}
	return s.writeJSON(w, r, page)
}

// lost lists the ranges of stream sequences that never came, oldest first.
func (s *server) lost(w http.ResponseWriter, r *http.Request, a access) error {
	after, limit, err := s.wholeStore(r, a)
	if err != nil {
		return err
	}
	ranges, err := s.Store.LostRanges(after, limit)
	if err != nil {
		return err
	}
	page := lostPage{Lost: describeLost(ranges)}
	if len(ranges) == limit {
		page.Next = countCursor(ranges[limit-1].ID)
	}
	return s.writeJSON(w, r, page)
}

// wholeStore reads the page asked for of a list that belongs to no tenant.
func (s *server) wholeStore(r *http.Request, a access) (after uint64, limit int, err error) {
	q := newQuery(r)
	after, limit = q.number(), q.limit()
	switch {
	case q.err != nil:
		return 0, 0, q.err
	case !a.all:
		return 0, 0, notFound()
	case s.Store == nil:
		return 0, 0, unavailable("this server has no store")
	}
	return after, limit, nil
}
