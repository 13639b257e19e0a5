package store

import (
	"errors"
	"fmt"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// chain checks one chain: state, segments, lists, ids, end and seal.
func (c *checker) chain(no uint64) error {
	var key events.Key
	err := c.s.view(func(v *view) error {
		rec, err := v.chainRecord(no)
		if err == nil {
			key = rec.key
		}
		return err
	})
	if err != nil {
		return err
	}
	rec, err := c.s.Chain(key)
	if errors.Is(err, ErrNotFound) {
		return nil // a commit that is being published
	}
	if err != nil {
		return inChain(err, key)
	}
	for _, part := range []func(uint64, *ChainRecord) error{c.segments, c.lists, c.ids, c.end} {
		if err := c.add(inChain(part(no, rec), key)); err != nil {
			return err
		}
	}
	return nil
}

// segments hashes and links the chain again.
func (c *checker) segments(no uint64, rec *ChainRecord) error {
	var walk segments.Walk
	for walk.Count < rec.State.Segments {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		page, err := c.s.Segments(rec.Key, walk.Count, MaxPage)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return missing(tableLists, listKey(no, listSegments, walk.Count), fmt.Sprintf("segment %d", walk.Count))
		}
		for i := range page[:min(uint64(len(page)), rec.State.Segments-walk.Count)] {
			if err := walk.Step(&page[i].Segment); err != nil {
				return contradicts(tableJournal, key64(page[i].Arrival), "the segment does not follow the one before: "+err.Error())
			}
			c.place.report.Segments++
		}
	}
	if (walk.Head == nil) != (rec.State.Head == nil) || walk.Head != nil && *walk.Head != *rec.State.Head {
		return contradicts(tableChains, key64(no), "the segments lead to another head than the state has")
	}
	return nil
}

// lists holds the chain's lists against the journal.
func (c *checker) lists(no uint64, rec *ChainRecord) error {
	for l := range numLists {
		last := uint64(0)
		for from := uint64(0); ; {
			seen := uint64(0)
			err := c.s.entries(rec.Key, l, from, MaxPage, func(v *view, ordinal uint64, e *entry) (int, error) {
				seen++
				switch {
				case e.chain != no || e.lists()&(1<<l) == 0:
					return 0, contradicts(tableLists, listKey(no, l, ordinal), "the entry does not belong into this list")
				case e.Arrival <= last:
					return 0, contradicts(tableLists, listKey(no, l, ordinal), "the list is out of order")
				}
				if last = e.Arrival; last <= c.place.n.arrivals {
					c.place.listed[l]++
				}
				return 0, c.entry(v, e)
			})
			if err != nil {
				return err
			}
			if seen == 0 {
				break
			}
			from += seen
		}
	}
	return nil
}

// entry checks what an entry of a list has in other tables.
func (c *checker) entry(v *view, e *entry) error {
	if e.preimages {
		payload, err := v.get(tablePreimages, key64(e.Arrival))
		if err == nil && payload == nil {
			err = missing(tablePreimages, key64(e.Arrival), "the preimage")
		}
		if err != nil {
			return err
		}
	}
	if run, ok := e.kind.(*segments.RunSealed); ok && e.segment {
		payload, err := v.get(tableRuns, runKey(run.RunID, e.chain))
		if err == nil && payload == nil {
			err = missing(tableRuns, runKey(run.RunID, e.chain), "the run")
		}
		return err
	}
	return nil
}

// ids holds the chain's event ids against the journal.
func (c *checker) ids(no uint64, rec *ChainRecord) error {
	return c.s.withChain(rec.Key, func(v *view, cv *chainView) error {
		_, ids, _, err := v.replay(cv)
		if err != nil {
			return err
		}
		pending := make(map[string]holder, len(ids))
		for i := range ids {
			pending[ids[i].id] = ids[i].holder
		}
		err = v.eachID(no, func(id string, h *holder) error {
			if _, newer := pending[id]; newer {
				return nil
			}
			return c.id(v, no, id, h)
		})
		for id, h := range pending {
			if err == nil {
				err = c.id(v, no, id, &h)
			}
		}
		return err
	})
}

func (c *checker) id(v *view, no uint64, id string, h *holder) error {
	key := idKey(nil, no, id)
	e, err := v.journal(h.arrival)
	switch {
	case err != nil:
		return err
	case e == nil:
		return missing(tableJournal, key64(h.arrival), "the entry that an event id leads to")
	case e.chain != no || e.EventID != id || e.holds() != h.held || h.held && h.sum != e.Sum:
		return contradicts(tableIDs, key, "the event id leads to another event")
	}
	if h.held && h.arrival <= c.place.n.arrivals {
		c.place.held++
	}
	return nil
}

// end checks what a finished chain has besides, and that an open one has not.
func (c *checker) end(no uint64, rec *ChainRecord) error {
	key := key64(no)
	if finished := rec.State.Outcome != events.Open; finished != (rec.Fixed != nil) {
		return contradicts(tableFixed, key, "the chain is "+string(rec.State.Outcome)+", and its end says otherwise")
	}
	if rec.Fixed == nil {
		if rec.Seal != nil {
			return contradicts(tableSeals, key, "the chain is open and sealed")
		}
		return nil
	}
	if rec.Seal == nil {
		c.place.unsealed++
	}
	same := func(a, b *segments.Digest) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }
	switch {
	case rec.Fixed.State.Outcome != rec.State.Outcome || !same(rec.Fixed.State.Head, rec.State.Head):
		return contradicts(tableFixed, key, "the chain has changed since its end")
	case rec.Seal != nil && !same(rec.Seal.Head, rec.State.Head):
		return contradicts(tableSeals, key, "the seal is over another head than the chain has")
	}
	return nil
}
