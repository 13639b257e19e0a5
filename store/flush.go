package store

import (
	"cmp"
	"slices"

	"github.com/chaind/chaind/events"
)

// States, lists and ids of chains lie all over the file, so that writing them
// with every event would cost several pages an event. They are written now and
// then instead: the journal, which is written in arrival order, holds all that
// is needed to bring the stored ones up to date. That is done when the store is
// opened, over the entries from counters.tail on, of which there are never many.
type flushLimits struct {
	tail    uint64 // entries that opening reads again, at most, and a transaction's worth
	slack   uint64 // how far below the limit cutting begins, and how many entries a cut takes off, so that many chains are written as neighbours and are all written by the time the limit is reached
	pending int    // entries that one chain's state is rebuilt from, at most, and a transaction's worth
}

// cutAtLeast is how many chains that hold back the tail a transaction flushes
// beside as many as it has entries: all at once would stop the intake for as long
// as a third of a second.
const cutAtLeast = 64

// flushDue flushes the chains that ended, those with many pending entries, and
// those that hold back the tail.
func (w *writer) flushDue() error {
	var due []*chain
	for _, c := range w.touched {
		n := len(c.next.pending)
		if n > 0 && c.next.last.fixedArrival != 0 || n >= w.s.flush.pending {
			due = append(due, c)
			c.flushed = true
		}
	}
	due = append(due, w.holdingBack()...)
	slices.SortFunc(due, func(a, b *chain) int { return cmp.Compare(a.next.no, b.next.no) })
	for _, c := range due {
		if err := w.setAside(c, w.flush(c)); err != nil {
			return inChain(err, *c.next.key)
		}
	}
	return nil
}

// dirtyMark stands for a chain in the order of oldest pending entries. It is
// stale once that entry has been flushed. Every mark above the first living one
// has an arrival number of its own above the tail, which bounds their number.
type dirtyMark struct {
	c     *chain
	first uint64
}

func (m dirtyMark) stale() bool { return m.c.firstPending() != m.first }

// holdingBack finds the chains whose oldest pending entry is too old, some of them
// in each transaction, in the order of their numbers, and all once the tail is at
// its limit.
func (w *writer) holdingBack() []*chain {
	s, oldest := w.s, w.oldestDirty()
	if len(s.cut) == 0 && oldest != 0 && oldest+s.flush.tail <= w.n.arrivals+s.flush.slack {
		s.cut = w.olderThan(max(oldest+s.flush.slack, w.n.arrivals+s.flush.slack-s.flush.tail))
	}
	most := cutAtLeast + int(w.n.arrivals-s.n.arrivals)
	if oldest != 0 && oldest+s.flush.tail <= w.n.arrivals {
		most = len(s.cut)
	}
	var due []*chain
	for len(s.cut) > 0 && len(due) < most {
		m := s.cut[0]
		if s.cut = s.cut[1:]; m.stale() || m.c.flushed {
			continue
		}
		due = append(due, m.c)
		w.touch(m.c)
		m.c.flushed = true
	}
	if len(s.cut) == 0 {
		s.cut = nil // it would hold on to chains that are forgotten
	}
	return due
}

// olderThan are the marks of chains with an entry pending since before arrival.
func (w *writer) olderThan(arrival uint64) []dirtyMark {
	var old []dirtyMark
	for _, m := range w.s.dirty {
		if m.first >= arrival {
			break
		}
		if !m.stale() && !m.c.flushed {
			old = append(old, m)
		}
	}
	slices.SortFunc(old, func(a, b dirtyMark) int { return cmp.Compare(a.c.next.no, b.c.next.no) })
	return old
}

// oldestDirty is the first pending entry of any chain that is not flushed in
// this transaction; 0: there is none.
func (w *writer) oldestDirty() uint64 {
	for _, m := range w.s.dirty {
		if !m.stale() && !m.c.flushed {
			return m.first
		}
	}
	var oldest uint64
	for _, c := range w.touched {
		if first := c.firstPending(); first != 0 && !c.flushed && (oldest == 0 || first < oldest) {
			oldest = first
		}
	}
	return oldest
}

func (w *writer) tail() uint64 {
	if oldest := w.oldestDirty(); oldest != 0 {
		return oldest
	}
	return w.n.arrivals + 1
}

func (c *chain) firstPending() uint64 {
	if len(c.next.pending) == 0 {
		return 0
	}
	return c.next.pending[0].arrival
}

// flush writes a chain's state, its new ids and the new pieces of its lists.
func (w *writer) flush(c *chain) error {
	c.flushed = true
	if err := w.load(c); err != nil {
		return err
	}
	if err := w.storeIDs(c.next.no, c.ids.pending); err != nil {
		return err
	}
	if err := w.flushLists(c); err != nil {
		return err
	}
	var err error
	if w.state, err = c.state.AppendBinary(w.state[:0]); err != nil {
		return err
	}
	rec := chainRecord{key: *c.next.key, standing: c.next.last, state: w.state}
	if err := w.write(tableChains, key64(c.next.no), &rec); err != nil {
		return err
	}
	c.next.stored, c.next.pending = c.next.last, nil
	w.s.flushedIDs(c)
	return nil
}

func (w *writer) flushLists(c *chain) error {
	for l := range numLists {
		var piece []uint64
		for _, p := range c.next.pending {
			if p.lists&(1<<l) != 0 {
				piece = append(piece, p.arrival)
			}
		}
		if len(piece) == 0 {
			continue
		}
		w.scratch = appendArrivals(w.scratch[:0], piece)
		if err := w.put(tableLists, listKey(c.next.no, l, c.next.stored.counts[l]), w.scratch); err != nil {
			return err
		}
	}
	return nil
}

// touch makes the chain part of the running transaction.
func (w *writer) touch(c *chain) {
	if !c.touched {
		c.touched = true
		w.touched = append(w.touched, c)
	}
	if c.recent != nil {
		w.s.recent.MoveToFront(c.recent)
	}
}

// chain finds or makes the chain of an event.
func (w *writer) chain(key events.Key) (*chain, error) {
	if err := w.isAside(key); err != nil {
		return nil, err
	}
	c := w.s.chains[key]
	if c == nil {
		c = w.created[key]
	}
	if c == nil {
		var err error
		if c, err = w.fetch(key); err != nil {
			return nil, inChain(err, key)
		}
		w.created[key] = c
	}
	w.touch(c)
	return c, w.load(c)
}

// fetch takes a chain that is not in memory from the database, or begins it.
func (w *writer) fetch(key events.Key) (*chain, error) {
	no, err := w.chainNumber(key)
	if err != nil {
		return nil, err
	}
	if no != 0 {
		rec, err := w.chainRecord(no)
		if err != nil {
			return nil, err
		}
		return &chain{next: rec.view(no)}, nil
	}
	w.n.chains++
	no = w.n.chains
	if err := w.put(tableNames, nameKey(key), key64(no)); err != nil {
		return nil, err
	}
	// The record without state says whose number this is: the journal knows
	// numbers only.
	rec := chainRecord{key: key}
	if err := w.write(tableChains, key64(no), &rec); err != nil {
		return nil, err
	}
	return &chain{next: rec.view(no)}, nil
}

// load makes sure that the chain's state is in memory.
func (w *writer) load(c *chain) error {
	if c.state != nil {
		return nil
	}
	state, ids, _, err := w.replay(&c.next)
	if err != nil {
		return err
	}
	c.state, c.ids = state, chainIDs{complete: c.next.stored.lastArrival == 0}
	for i := range ids {
		w.s.hold(c, ids[i].id, ids[i].holder)
	}
	c.recent = w.s.recent.PushFront(c)
	return nil
}

// lookup finds what the store knows of an event id in a chain.
func (w *writer) lookup(c *chain, id string) (holder, error) {
	if id == "" {
		return holder{}, nil
	}
	if !c.ids.seen.has(w.s.hashID(id)) {
		if c.ids.complete {
			return holder{}, nil
		}
	} else if h := c.ids.find(id); h != nil {
		return *h, nil
	}
	if c.next.stored.lastArrival == 0 {
		return holder{}, nil // nothing of this chain is stored outside the journal
	}
	cursor, err := w.idCursor()
	if err != nil {
		return holder{}, err
	}
	return w.storedID(cursor, c.next.no, id)
}
