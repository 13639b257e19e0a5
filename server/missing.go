package server

import (
	"net/http"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
)

// missingRun says why there is no evidence for a run id. To the format that is
// one answer, 404; a run that is not sealed yet, or whose chain did not
// conform, must not look like one that nobody has heard of.
func (s *server) missingRun(t target) error {
	if s.Store == nil {
		return unknownRun()
	}
	q := store.RunQuery{RunID: t.runID, Tenant: &t.place.Tenant, Limit: store.MaxPage}
	for range maxRunPages {
		page, next, err := s.Store.Runs(q)
		if err != nil {
			return err
		}
		for i := range page {
			if k := page[i].Key; k.PromptHash == t.place.PromptHash && k.Session == t.place.Session {
				return s.unsealedRun(k)
			}
		}
		if next == "" {
			return unknownRun()
		}
		q.After = next
	}
	// The run is known in so many other sessions that looking further would
	// cost more than the better explanation is worth.
	return unknownRun()
}

// unsealedRun explains a run that the store knows and no pointer names.
func (s *server) unsealedRun(key events.Key) error {
	record, err := s.Store.Chain(key)
	if err != nil {
		return err
	}
	switch p := notSealed(record); {
	case p != nil && record.State.Outcome == events.Open:
		return &problem{typeRunOpen, http.StatusNotFound, "Not Found", "the run's chain has not ended; it is at " + chainURL(key)}
	case p != nil:
		return p
	case sidecar.Class(record.Seal.Class) != sidecar.Heads:
		return &problem{typeRunNonconforming, http.StatusNotFound, "Not Found",
			"the run's chain is " + record.Seal.Class + "; its evidence is at " + chainURL(key) + "/evidence"}
	}
	return s.gone("evidence", record.Seal.Path)
}

// missingHead says why there is no evidence under a head. When the store
// recorded that it was written, that is a loss and not a "not found".
func (s *server) missingHead(t target) error {
	known := t.recorded != nil
	if !known && s.Store != nil {
		q := store.EndedQuery{Tenant: t.place.Tenant, PromptHash: t.place.PromptHash, Session: t.place.Session, Head: t.head}
		err := s.Store.Ended(q, func(c *store.EndedChain) bool {
			known = c.Seal != nil && sidecar.Class(c.Seal.Class) == t.class && c.Seal.Path != ""
			return !known
		})
		if err != nil {
			return err
		}
	}
	if !known {
		return unknownEvidence(&t)
	}
	return s.gone("evidence", t.place.EvidencePath(t.class, t.head))
}

// gone says that a file of a chain is gone; what names its kind.
func (s *server) gone(what, path string) error {
	s.Metrics.verified(resultMissing)
	s.Logger.Error("stored evidence is missing", "file", path)
	return &problem{typeEvidenceLost, http.StatusInternalServerError, "Evidence is missing", "the " + what + " was written when the chain was sealed and is not there any more"}
}
