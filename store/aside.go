package store

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/chaind/chaind/events"
)

// aside is a value of meta under "aside", 0, chain number: a chain that is set aside
// since a value of it is damaged, so that its stored state cannot be brought up to
// date. It is written in the transaction that finds it so, and holds what that state
// lacks: without it the chain's record, where that can be read, would be taken for
// all there is, and the chain go on from an older state than was acknowledged.
//
// As long as it stands, every event of the chain is rejected as chain_damaged, and
// whoever asks for the chain is told; all other chains go on, and the tail of the
// journal with them. Nothing of the chain is gone: the entries are in the journal,
// and acknowledged events stay on record here. Opening the store tries to bring the
// state up to date again, which goes well when the value has been repaired; then the
// chain is taken up where it was. A replay makes a database without it.
//
// A crash leaves the mark with the advanced tail, or neither.
type aside struct {
	no      uint64 // chain number; in the key
	key     events.Key
	why     string // what could not be read
	sinceMS int64  // Unix milliseconds of this machine's clock
	pending []pend // entries that the stored state does not have
}

var asidePrefix = []byte("aside\x00")

func asideKey(no uint64) []byte { return append(bytes.Clone(asidePrefix), key64(no)...) }

func (a *aside) fields(c *codec) {
	c.key(&a.key)
	text(c, &a.why)
	c.int64(&a.sinceMS)
	n := uint64(len(a.pending))
	c.uint(&n)
	if n > uint64(len(c.buf)) && c.reading {
		c.err = errCoding
		return
	}
	if c.reading {
		a.pending = make([]pend, n)
	}
	var last uint64
	for i := range a.pending {
		p := &a.pending[i]
		d := p.arrival - last
		c.uint(&d)
		last += d
		p.arrival = last
		c.byte(&p.lists)
	}
}

// damage is what everybody is told who asks for the chain.
func (a *aside) damage() *CorruptError {
	return &CorruptError{Bucket: tableChains.name, Key: key64(a.no), Chain: a.key, Class: Mismatch, Detail: "the chain is set aside: " + a.why}
}

// has tells whether the entry is one of those that the state lacks.
func (a *aside) has(arrival uint64) bool {
	_, found := slices.BinarySearchFunc(a.pending, arrival, func(p pend, arrival uint64) int { return cmp.Compare(p.arrival, arrival) })
	return found
}

// asides reads the chains that are set aside.
func (v *view) asides() (map[events.Key]*aside, error) {
	all := make(map[events.Key]*aside)
	err := v.each(tableMeta, asidePrefix, func(k, payload []byte) (bool, error) {
		rest, ok := bytes.CutPrefix(k, asidePrefix)
		if !ok || len(rest) != 8 {
			return false, nil
		}
		a := &aside{no: number(rest)}
		err := decode(tableMeta, k, payload, a)
		all[a.key] = a
		return true, err
	})
	return all, err
}

// isAside is the error of a chain that is set aside; nil: it is not. Readers look at
// memory first: what is set aside in between has its entries there.
func (s *Store) isAside(key events.Key) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if a := s.aside[key]; a != nil {
		return a.damage()
	}
	return nil
}

// isAside is the writer's, who knows of the running transaction, too.
func (w *writer) isAside(key events.Key) error {
	if len(w.s.aside) == 0 && len(w.asides) == 0 {
		return nil
	}
	if a := w.s.aside[key]; a != nil {
		return a.damage()
	}
	for _, a := range w.asides {
		if a.key == key {
			return a.damage()
		}
	}
	return nil
}

// setAside sets a chain aside whose stored state cannot be brought up to date because
// one of its values is damaged. Other errors are returned as they are.
func (w *writer) setAside(c *chain, err error) error {
	if err == nil || !ofOneChain(err) {
		return err
	}
	a := &aside{no: c.next.no, key: *c.next.key, why: err.Error(), pending: slices.Clone(c.next.pending)}
	if err := w.putAside(a); err != nil {
		return err
	}
	w.s.noteDamage(a.key, err)
	c.next.pending = nil
	return nil
}

func (w *writer) putAside(a *aside) error {
	a.sinceMS = w.s.nowMS()
	w.asides = append(w.asides, a)
	return w.write(tableMeta, asideKey(a.no), a)
}

// putUnread sets those chains aside whose record could not be read when their
// entries in the tail of the journal were, which the tail is about to leave behind.
func (w *writer) putUnread() error {
	for _, a := range w.s.unread {
		if err := w.putAside(a); err != nil {
			return err
		}
	}
	return nil
}

// publishAsides lets readers see what the committed transaction set aside and took
// up; under Store.mu.
func (s *Store) publishAsides(w *writer) {
	if len(w.asides) == 0 && len(w.takenUp) == 0 {
		return
	}
	for _, a := range w.asides {
		s.aside[a.key] = a
		if c := s.chains[a.key]; c != nil {
			s.forget(c)
		}
	}
	for _, key := range w.takenUp {
		delete(s.aside, key)
	}
	s.unread = nil
}

// takeUp takes those chains up again whose values have been repaired, when the store
// is opened. Nobody reads yet.
func (s *Store) takeUp() error {
	var whole []*aside
	err := s.view(func(v *view) error {
		for _, a := range slices.SortedFunc(maps.Values(s.aside), func(a, b *aside) int { return cmp.Compare(a.no, b.no) }) {
			if _, _, _, err := v.replay(&chainView{no: a.no, key: &a.key, pending: a.pending}); err == nil {
				whole = append(whole, a)
			} else if !ofOneChain(err) {
				return err
			}
		}
		return nil
	})
	if err != nil || len(whole) == 0 {
		return err
	}
	op := func(w *writer) error {
		for _, a := range whole {
			if err := w.takeUp(a); err != nil && !ofOneChain(err) {
				return err
			}
		}
		return nil
	}
	return s.transact([]*request{{op: op, done: make(chan error, 1)}})
}

// takeUp brings the stored state of a chain up to date, which needs all its values.
func (w *writer) takeUp(a *aside) error {
	c := &chain{next: chainView{no: a.no, key: &a.key}}
	rec, err := w.chainRecord(a.no)
	if err != nil {
		return err
	}
	c.next.stored = rec.standing
	// The record may be further than was seen when it could not be read.
	c.next.pending = slices.DeleteFunc(slices.Clone(a.pending), func(p pend) bool { return p.arrival <= rec.lastArrival })
	for i := range c.next.pending {
		e, err := w.journal(c.next.pending[i].arrival)
		if err != nil || e == nil {
			return cmp.Or(err, error(missing(tableJournal, key64(c.next.pending[i].arrival), "the entry")))
		}
		c.next.pending[i].lists = e.lists()
	}
	if _, _, c.next.last, err = w.replay(&c.next); err != nil {
		return err
	}
	err = w.flush(c)
	w.s.forget(c)
	if err != nil {
		return err
	}
	b, err := w.table(tableMeta)
	if err != nil {
		return err
	}
	w.takenUp = append(w.takenUp, a.key)
	w.s.cfg.Logger.Warn("chain was set aside and is taken up again: its values are whole", "chain", a.key.Chain)
	return b.Delete(asideKey(a.no))
}

// chainKey finds whose number it is by the names, where the record does not say; a
// made-up key when they do not, either.
func (v *view) chainKey(no uint64) events.Key {
	unknown := events.Key{Chain: fmt.Sprint("number ", no)}
	b, err := v.bucket(tableNames)
	if err != nil {
		return unknown
	}
	c := b.Cursor()
	for k, value := c.First(); k != nil; k, value = c.Next() {
		payload, err := v.open(tableNames, k, value)
		if err != nil || len(payload) != 8 || number(payload) != no {
			continue
		}
		if key, ok := parseName(k); ok {
			return key
		}
	}
	return unknown
}

// noteAsides counts the chains that are set aside as damaged.
func (s *Store) noteAsides() {
	for key, a := range s.aside {
		s.noteDamage(key, a.damage())
	}
}
