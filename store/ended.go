package store

import (
	"cmp"
	"errors"
	"math"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// EndedQuery selects the chains of one session that have ended with a head, or
// with a seal of a run id: either is enough.
type EndedQuery struct {
	Tenant, PromptHash, Session string
	Head                        segments.Digest
	RunID                       string // "": by head only
}

// EndedChain is what is on record of a chain that has ended with segments.
type EndedChain struct {
	Key        events.Key
	Head       segments.Digest
	Conformity events.Conformity // only while Seal is nil: then Seal.Class says it
	Seal       *SealResult       // nil until FinishSeal
}

// Ended calls visit for the chains that a query selects, in the order of their
// names, until it returns false. It reads a few values of each chain of the
// session and no other chain; visit must not call the store. A chain whose
// values are damaged is passed over, and its error returned at the end unless
// visit stopped before: what could not be read is not what is not there.
func (s *Store) Ended(q EndedQuery, visit func(*EndedChain) (more bool)) error {
	key := events.Key{Tenant: q.Tenant, PromptHash: q.PromptHash, Session: q.Session}
	prefix := nameKey(key) // an empty chain: the prefix of all chains of the session
	sc := scan{table: tableNames, prefix: prefix, from: prefix, limit: math.MaxInt}
	var damage error
	sc.match = func(v *view, k, payload []byte) (bool, error) {
		found, err := v.ended(k, payload, &q)
		if errors.Is(err, ErrCorrupt) {
			damage = cmp.Or(damage, err)
			return false, nil
		}
		if err == nil && found != nil {
			sc.full = !visit(found)
		}
		return false, err
	}
	for more := true; more; sc.looked = 0 {
		last, err := sc.run(s)
		if err != nil {
			return err
		}
		if sc.full {
			return nil
		}
		more = last != nil
	}
	return damage
}

// ended reads one chain by its name; nil: it is open, empty, or not selected.
func (v *view) ended(name, payload []byte, q *EndedQuery) (*EndedChain, error) {
	key, no, err := readName(name, payload)
	if err != nil {
		return nil, err
	}
	c, err := v.end(key, no)
	if err != nil || c == nil {
		return nil, inChain(err, key)
	}
	if c.Head == q.Head {
		return c, nil
	}
	if q.RunID == "" {
		return nil, nil
	}
	if seal, err := v.get(tableRuns, runKey(q.RunID, no)); err != nil || seal == nil {
		return nil, inChain(err, key)
	}
	return c, nil
}

// end reads what is on record of the end of a chain; nil: it is open or empty.
func (v *view) end(key events.Key, no uint64) (*EndedChain, error) {
	c := &EndedChain{Key: key}
	var err error
	if c.Seal, err = v.sealResult(no); err != nil {
		return nil, err
	}
	if c.Seal != nil {
		return c.at(c.Seal.Head), nil
	}
	f, err := v.fixed(no)
	if err != nil || f == nil {
		return nil, err
	}
	c.Conformity, _ = f.State.Conformity()
	return c.at(f.State.Head), nil
}

func (c *EndedChain) at(head *segments.Digest) *EndedChain {
	if head == nil {
		return nil
	}
	c.Head = *head
	return c
}
