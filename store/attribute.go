package store

import (
	"cmp"
	"errors"
	"slices"
)

// unreadable is what to do about an entry in the tail of the journal that cannot be
// read and belongs to nobody knows whom.
const unreadable = "which chain lost an acknowledged event with it cannot be told, so that none can go on: restore a backup, or build the database anew from the stream (chaind replay)"

// attribute finds out whose the damaged entries of the tail are, each of which would
// be missing in the state of one chain and does not say in which. It can be told
//
//   - by the event ids and by the rejections, which name the entries that they stand for:
//     what is in a chain's stored state already is not needed here at all
//   - by the other entries: where exactly one chain cannot be replayed without the one
//     that is damaged, and no other is, it is that chain's
//
// That chain is set aside. Where it cannot be told (an entry that is the last of its
// chain, a whole frame) the database is not opened: any of the chains might go on from
// an older state than was acknowledged.
func (t *tail) attribute(n *counters) error {
	if len(t.damaged) == 0 {
		return nil
	}
	stored, err := t.idsOf(t.damaged)
	if err != nil {
		return err
	}
	var open []uint64
	for _, arrival := range t.damaged {
		no, err := t.rejectedAt(arrival, n.rejections)
		if err != nil {
			return err
		}
		if no = cmp.Or(stored[arrival], no); no == 0 {
			open = append(open, arrival)
		} else if err := t.lose(no, arrival); err != nil {
			return err
		}
	}
	if len(open) == 0 {
		return nil
	}
	if no := t.contradicted(open[0]); no != 0 && len(open) == 1 {
		return t.lose(no, open[0])
	}
	return t.why[open[0]]
}

// idsOf finds the chains whose stored ids stand for the entries, by arrival number.
func (t *tail) idsOf(arrivals []uint64) (map[uint64]uint64, error) {
	chains := make(map[uint64]uint64)
	note := func(no uint64, h *holder) {
		if slices.Contains(arrivals, h.arrival) {
			chains[h.arrival] = no
		}
	}
	var block []heldID
	err := t.each(tableIDs, nil, func(k, payload []byte) (bool, error) {
		if len(k) < 9 {
			return true, nil
		}
		if !isBlock(k) {
			var h holder
			err := decode(tableIDs, k, payload, &h)
			note(number(k), &h)
			return true, err
		}
		var err error
		block, err = inBlock(block[:0], k, payload)
		for i := range block {
			note(number(k), &block[i].holder)
		}
		return true, err
	})
	return chains, err
}

// rejectedAt is the chain of the rejection that an entry is about; 0: there is none.
func (t *tail) rejectedAt(arrival, last uint64) (uint64, error) {
	for id := last; id > 0; id-- {
		r, err := t.rejection(id)
		if err != nil {
			return 0, err
		}
		if r.arrival == arrival {
			return t.chainNumber(r.Key)
		}
		if r.arrival != 0 && r.arrival < arrival {
			break
		}
	}
	return 0, nil
}

// contradicted is the only chain that cannot be replayed without the entry; 0:
// there is none, or more than one. Each has its other entries; that one of them
// contradicts its state for another reason would be a fault of the program.
func (t *tail) contradicted(arrival uint64) (only uint64) {
	for no, c := range t.byNumber {
		if len(c.next.pending) == 0 {
			continue
		}
		_, _, _, err := t.replay(&c.next)
		bad, ok := errors.AsType[*CorruptError](err)
		if !ok || bad.Class != Contradiction || len(bad.Key) != 8 || number(bad.Key) < arrival {
			continue
		}
		if only != 0 {
			return 0
		}
		only = no
	}
	return only
}

// lose sets the chain aside that the damaged entry belongs to, unless its stored
// state has the entry already.
func (t *tail) lose(no, arrival uint64) error {
	why := t.why[arrival]
	rec, err := t.chainRecord(no)
	switch {
	case err != nil && !ofOneChain(err):
		return err
	case err == nil && arrival <= rec.lastArrival:
		return nil
	case t.set[no] != nil:
		return why // it was set aside before, without the entry
	}
	a := t.unread[no]
	if a == nil {
		a = &aside{no: no, why: why.Error()}
		if a.key = t.chainKey(no); err == nil {
			a.key = rec.key
		}
		if c := t.byNumber[no]; c != nil {
			a.pending = slices.Clone(c.next.pending)
		}
	}
	a.pending = append(a.pending, pend{arrival: arrival}) // in which lists it stands is read when it can be
	slices.SortFunc(a.pending, func(a, b pend) int { return cmp.Compare(a.arrival, b.arrival) })
	t.putAside(a)
	t.note(a.key, why)
	return nil
}

// putAside sets a chain aside: now in memory, and in the next transaction for good.
func (t *tail) putAside(a *aside) {
	t.unread[a.no], t.asides[a.key] = a, a
	delete(t.chains, a.key)
	t.dirty = slices.DeleteFunc(t.dirty, func(m dirtyMark) bool { return m.c.next.no == a.no })
	delete(t.byNumber, a.no)
}
