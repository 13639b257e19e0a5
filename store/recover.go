package store

import (
	"container/list"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/chaind/chaind/events"
)

// recover reads memory anew from the database: after opening, and after any
// transaction that did not go well.
func (s *Store) recover() error {
	chains, epochs := make(map[events.Key]*chain), make(map[string]*Epoch)
	var n counters
	t := tail{note: s.noteDamage}
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
		return v.readTail(&n, chains, &t)
	})
	if err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	s.mu.Lock()
	s.chains, s.epochs, s.n, s.aside = chains, epochs, n, t.asides
	s.mu.Unlock()
	s.dirty, s.cut, s.recent, s.stale, s.idSlots = t.dirty, nil, list.New(), false, 0
	s.unread = slices.Collect(maps.Values(t.unread))
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
	asides   map[events.Key]*aside
	set      map[uint64]*aside // the same by number
	unread   map[uint64]*aside // chains that are to be set aside, since their record or an entry cannot be read
	damaged  []uint64          // entries that cannot be read
	why      map[uint64]error  // the same, and why
	note     func(events.Key, error)
}

// readTail collects the entries that are in the journal only.
func (v *view) readTail(n *counters, chains map[events.Key]*chain, t *tail) (err error) {
	t.view, t.byNumber, t.chains = v, make(map[uint64]*chain), chains
	t.unread, t.why = make(map[uint64]*aside), make(map[uint64]error)
	if t.asides, err = v.asides(); err != nil {
		return err
	}
	t.set = make(map[uint64]*aside, len(t.asides))
	for _, a := range t.asides {
		t.set[a.no] = a
	}
	want := n.tail
	err = v.eachRaw(n.tail, func(arrival uint64, raw []byte) error {
		if arrival != want {
			return missing(tableJournal, key64(want), "the entry")
		}
		want++
		return t.read(arrival, raw)
	})
	if err == nil && want != n.arrivals+1 {
		err = missing(tableJournal, key64(want), "the entry")
	}
	if err == nil {
		err = t.attribute(n)
	}
	if err != nil && ofOneChain(err) {
		err = fmt.Errorf("%w; %s", err, unreadable)
	}
	for _, m := range t.dirty {
		m.c.view = m.c.next
	}
	return err
}

// read takes one entry. A damaged one does not say whose it is; where a chain is set
// aside for it, that is known, else it is found out when all are read.
func (t *tail) read(arrival uint64, raw []byte) error {
	payload, err := t.open(tableJournal, key64(arrival), raw)
	var e *entry
	if err == nil {
		e, err = decodeEntry(arrival, payload)
	}
	if err == nil {
		return t.add(e)
	}
	for _, a := range t.asides {
		if a.has(arrival) {
			return nil
		}
	}
	if !ofOneChain(err) {
		return err
	}
	t.damaged = append(t.damaged, arrival)
	t.why[arrival] = err
	return nil
}

func (t *tail) add(e *entry) error {
	if t.set[e.chain] != nil {
		return nil // it has its entries, and gets no more
	}
	if a := t.unread[e.chain]; a != nil {
		a.pending = append(a.pending, pend{e.Arrival, e.lists()})
		return nil
	}
	c := t.byNumber[e.chain]
	if c == nil {
		rec, err := t.chainRecord(e.chain)
		if err != nil && ofOneChain(err) {
			a := &aside{no: e.chain, key: t.chainKey(e.chain), why: err.Error(), pending: []pend{{e.Arrival, e.lists()}}}
			t.putAside(a)
			t.note(a.key, err)
			return nil
		}
		if err != nil {
			return err
		}
		c = &chain{next: rec.view(e.chain)}
		t.byNumber[e.chain] = c
	}
	if e.Arrival <= c.next.stored.lastArrival {
		return nil
	}
	if len(c.next.pending) == 0 {
		t.dirty = append(t.dirty, dirtyMark{c, e.Arrival})
		t.chains[*c.next.key] = c
	}
	lists := e.lists()
	c.next.pending = append(c.next.pending, pend{e.Arrival, lists})
	c.next.last.advance(e, lists)
	return nil
}
