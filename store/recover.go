package store

import (
	"container/list"
	"errors"
	"fmt"

	"github.com/chaind/chaind/events"
)

// recover reads memory anew from the database: after opening, and after any
// transaction that did not go well.
func (s *Store) recover() error {
	chains, epochs := make(map[events.Key]*chain), make(map[string]*Epoch)
	var n counters
	var dirty []dirtyMark
	err := s.view(func(v *view) error {
		if found, err := v.read(tableMeta, metaCounters, &n); err != nil || !found {
			return errors.Join(err, missingCounters(found))
		}
		all, err := v.allEpochs()
		if err != nil {
			return err
		}
		for i := range all {
			epochs[all[i].Stream.Name] = &all[i]
		}
		dirty, err = v.readTail(&n, chains, s.noteDamage)
		return err
	})
	if err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	s.mu.Lock()
	s.chains, s.epochs, s.n = chains, epochs, n
	s.mu.Unlock()
	s.dirty, s.recent, s.stale, s.idSlots = dirty, list.New(), false, 0
	s.renew.Store(true) // as far as the last attempt took note of it
	return nil
}

func missingCounters(found bool) error {
	if found {
		return nil
	}
	return missing(tableMeta, metaCounters, "the counters")
}

// tail is the journal since the oldest entry that is not in its chain's stored
// state, while it is read.
type tail struct {
	*view
	byNumber map[uint64]*chain
	chains   map[events.Key]*chain // those with pending entries
	dirty    []dirtyMark
	damaged  map[uint64]bool // numbers of chains that cannot be read
	note     func(events.Key, error)
}

// readTail collects the entries that are in the journal only.
func (v *view) readTail(n *counters, chains map[events.Key]*chain, note func(events.Key, error)) ([]dirtyMark, error) {
	t := tail{view: v, byNumber: make(map[uint64]*chain), chains: chains, damaged: make(map[uint64]bool), note: note}
	want := n.tail
	err := v.eachEntry(n.tail, func(arrival uint64, payload []byte) error {
		if arrival != want {
			return missing(tableJournal, key64(want), "the entry")
		}
		want++
		e, err := decodeEntry(arrival, payload)
		if err == nil {
			err = t.add(e)
		}
		return err
	})
	if err == nil && want != n.arrivals+1 {
		err = missing(tableJournal, key64(want), "the entry")
	}
	for _, m := range t.dirty {
		m.c.view = m.c.next
	}
	return t.dirty, err
}

func (t *tail) add(e *entry) error {
	c := t.byNumber[e.chain]
	if c == nil && t.damaged[e.chain] {
		return nil
	}
	if c == nil {
		rec, err := t.chainRecord(e.chain)
		if err != nil && ofOneChain(err) {
			t.damaged[e.chain] = true
			t.note(events.Key{Chain: fmt.Sprint("number ", e.chain)}, err)
			return nil // as setAside does
		}
		if err != nil {
			return err
		}
		c = &chain{next: chainView{no: e.chain, stored: rec.standing, last: rec.standing}}
		t.byNumber[e.chain] = c
	}
	if e.Arrival <= c.next.stored.lastArrival {
		return nil
	}
	if len(c.next.pending) == 0 {
		t.dirty = append(t.dirty, dirtyMark{c, e.Arrival})
		t.chains[c.next.last.key] = c
	}
	lists := e.lists()
	c.next.pending = append(c.next.pending, pend{e.Arrival, lists})
	c.next.last.advance(e, lists)
	return nil
}
