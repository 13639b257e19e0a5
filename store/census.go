package store

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/chaind/chaind/events"
)

// Census is a count of what is under way.
type Census struct {
	Chains   uint64 // that have not ended
	Attempts uint64 // steps in them that have begun and neither ended nor failed
}

// nameOf is a chain as the table of names knows it.
type nameOf struct {
	key events.Key
	no  uint64
}

// Census counts the open chains. It walks the names of all chains in short
// transactions, and reads of most that are in memory nothing but what stands there.
// Damaged chains are not counted. It ends early, with ctx's error, when ctx does.
func (s *Store) Census(ctx context.Context) (Census, error) {
	var c Census
	var names []nameOf
	sc := &scan{table: tableNames, limit: scanPerTx, match: func(_ *view, k, payload []byte) (bool, error) {
		key, ok := parseName(k)
		if !ok || len(payload) != 8 {
			return false, corrupt(tableNames, k, errCoding.Error())
		}
		names = append(names, nameOf{key, binary.BigEndian.Uint64(payload)})
		return true, nil
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
func (s *Store) countOpen(c *Census, names []nameOf) error {
	var views []chainView
	for i := range names {
		if v := s.countInMemory(c, &names[i]); v != nil {
			views = append(views, *v)
		}
	}
	if len(views) == 0 {
		return nil
	}
	return s.view(func(v *view) error {
		for i := range views {
			if err := v.countStored(c, &views[i]); err != nil && !errors.Is(err, ErrCorrupt) {
				return err
			}
		}
		return nil
	})
}

// countInMemory counts a chain, or gives what is to be read; nil: nothing.
func (s *Store) countInMemory(c *Census, n *nameOf) *chainView {
	s.mu.RLock()
	defer s.mu.RUnlock()
	known := s.chains[n.key]
	switch {
	case s.aside[n.key] != nil:
		return nil
	case known == nil:
		return &chainView{no: n.no, key: &n.key}
	case known.view.last.fixedArrival != 0:
		return nil
	case !known.counted:
		view := known.view
		return &view
	}
	c.Chains++
	c.Attempts += known.attempts
	return nil
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
