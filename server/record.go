package server

import (
	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
)

// Values of the header Chaind-Record.
const (
	recordMatched = "matched" // the stored bytes are those that the store recorded when it sealed a chain
	recordPending = "pending" // a chain with this head has ended, and its seal is not on record yet
	recordUnknown = "unknown" // the store knows neither this head nor, for a run, the run
)

// compare holds stored bytes that verify against what the store has on record
// of its own chains. Bytes that are consistent in themselves may still not be
// those that were sealed: no digest covers times and anchors, no head covers the
// scope, and an unsigned transcript can be invented whole. Only of what the store
// knows nothing about, evidence that Plasm wrote itself, is there nothing to
// compare. A match is remembered in the verdict, since what is on record of a
// sealed chain never changes; whether something is unknown is asked each time.
func (s *server) compare(t target, q *question, v *verdict) error {
	if v.problem != nil || v.record == recordMatched {
		return nil
	}
	v.record = recordUnknown
	if t.recorded != nil {
		v.hold(*t.recorded == q.file, true)
		return nil
	}
	if s.Store == nil {
		return nil
	}
	head, err := segments.ParseDigest(v.head)
	if err != nil {
		return err
	}
	var found onRecord
	err = s.Store.Ended(store.EndedQuery{
		Tenant: v.tenant, PromptHash: q.place.PromptHash, Session: q.place.Session, Head: head, RunID: q.runID,
	}, func(c *store.EndedChain) bool { return found.note(c, q, head) })
	switch {
	case found.matched:
		v.hold(true, true)
	case err != nil:
		return err
	case found.pending && !found.sealed:
		v.record = recordPending
	case found.head:
		v.hold(false, true)
	case found.run && !s.signedHere(v):
		v.hold(false, false)
	}
	return nil
}

// onRecord sums up the ended chains of a session that have the head or the run.
type onRecord struct {
	matched bool // one was sealed with exactly these bytes
	head    bool // one has this head
	sealed  bool // of those one is sealed
	pending bool // of those one is conforming and not sealed yet
	run     bool // one has the run, under another head
}

func (o *onRecord) note(c *store.EndedChain, q *question, head segments.Digest) (more bool) {
	switch {
	case c.Head != head:
		o.run = true
	case c.Seal == nil:
		o.head = true
		o.pending = o.pending || c.Conformity == events.Conforming
	default:
		o.head, o.sealed = true, true
		o.matched = sidecar.Class(c.Seal.Class) == q.class && c.Seal.Path != "" && c.Seal.SHA256 == q.file
	}
	return !o.matched
}

// hold enters the outcome of a comparison. sameHead tells whether it was with a
// chain that has the bundle's head.
func (v *verdict) hold(matched, sameHead bool) {
	switch {
	case matched:
		v.record = recordMatched
		return
	case sameHead:
		v.problem = refused("the stored bytes are not those that were written when the chain was sealed")
	default:
		v.problem = refused("the run was sealed here, and not in a chain with head " + v.head + "; the evidence that was sealed is at /v1/chains")
	}
	v.result = resultRefused
}

// signedHere tells whether the daemon's own key signed a bundle: then it is of a
// chain that the store knew before it was restored from a backup, and has not
// been told of again.
func (s *server) signedHere(v *verdict) bool {
	if s.Signing == nil {
		return false
	}
	key := s.Signing()
	return key != nil && v.signer == key.String()
}
