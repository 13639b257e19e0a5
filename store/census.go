package store

import (
	"context"
	"errors"

	"github.com/chaind/chaind/events"
)

// Census is a count of what is under way.
type Census struct {
	Chains   uint64 // that have not ended
	Attempts uint64 // steps in them that have begun and neither ended nor failed
}

// Census counts the open chains. It walks the names of all chains in short
// transactions, and reads of most that are in memory nothing but what stands there.
// Damaged chains are not counted. It ends early, with ctx's error, when ctx does.
func (s *Store) Census(ctx context.Context) (Census, error) {
	var c Census
	var names []chainView // number and key alone
	sc := &scan{table: tableNames, limit: scanPerTx, match: func(_ *view, k, payload []byte) (bool, error) {
		key, no, err := readName(k, payload)
		names = append(names, chainView{no: no, key: &key})
		return true, err
	}}
	for {
		names, sc.found, sc.looked = names[:0], 0, 0
		last, err := sc.run(s)
		if err == nil {
			err = s.countOpen(&c, names)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || last == nil {
			return c, err
		}
	}
}

// countOpen counts chains: first those of which memory knows enough, then, in a
// transaction that begins afterwards and so has what memory had (see withChain),
// the others.
func (s *Store) countOpen(c *Census, names []chainView) error {
	rest := names[:0]
	for _, cv := range names {
		if !s.countInMemory(c, &cv) {
			rest = append(rest, cv)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	return s.view(func(v *view) error {
		for i := range rest {
			if err := v.countStored(c, &rest[i]); err != nil && !errors.Is(err, ErrCorrupt) {
				return err
			}
		}
		return nil
	})
}

// countInMemory tells whether memory knows all that is to be counted of a chain;
// otherwise it puts what memory has into the view.
func (s *Store) countInMemory(c *Census, cv *chainView) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	known := s.chains[*cv.key]
	switch {
	case s.aside[*cv.key] != nil:
		return true
	case known == nil:
		return false
	case known.view.last.fixedArrival != 0:
		return true
	case !known.counted:
		*cv = known.view
		return false
	}
	c.Chains++
	c.Attempts += known.attempts
	return true
}

// countStored counts a chain from the database and the entries that it lacks.
func (v *view) countStored(c *Census, cv *chainView) error {
	if cv.last.lastArrival == 0 { // not in memory
		rec, err := v.chainRecord(cv.no)
		if err != nil || rec.lastArrival == 0 || rec.fixedArrival != 0 {
			return err // of a commit that is not published yet, or ended
		}
		*cv = rec.view(cv.no)
	}
	state, _, err := v.current(cv)
	if err == nil && state.Outcome == events.Open {
		c.Chains++
		c.Attempts += state.UnderWay()
	}
	return err
}
