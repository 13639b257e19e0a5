package store

import (
	"bytes"
	"slices"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// What a chain misses of its own, beside the ranges that the stream lost, stands in
// meta under "missed", 0, the chain's name, 0 and
//
//	"d", rejection ID   an event that was rejected because the chain was damaged. No
//	                    entry of the chain tells of it, and nothing that the producer
//	                    declares may: a head does not cover attempts
//	"o", arrival        a segment or an end that came out of stream order: its sequence
//	                    had been given up, or its stream left and gone back to
//
// The value is the lost range of that one event. It is written in the transaction of
// the event and stays. The name, since the chain's number may be what is damaged.
//
// An event that was rejected so is not missed any more once the chain holds its very
// bytes under its id: it was published again after the repair, or it had been applied
// before and was delivered again.

// Reasons for what a chain misses of its own.
const (
	WhyDamaged    = string(events.ChainDamaged)
	WhyOutOfOrder = "out_of_order"
)

const (
	missedDamaged    = 'd'
	missedOutOfOrder = 'o'
)

var missedPrefix = []byte("missed\x00")

func missedKey(key events.Key, what byte, n uint64) []byte {
	b := append(bytes.Clone(missedPrefix), nameKey(key)...)
	return append(append(b, 0, what), key64(n)...)
}

// miss records that the chain misses an event.
func (w *writer) miss(ep *Epoch, e *events.Event, what byte, n uint64, why string) error {
	return w.write(tableMeta, missedKey(e.Key, what, n), &LostRange{Stream: ep.Stream, Epoch: ep.Number,
		From: e.StreamSeq, To: e.StreamSeq, Why: why, RecordedMS: w.s.nowMS(), Arrival: w.n.arrivals + 1})
}

// beyond: the last entry came at a place at or behind this one.
func (s *standing) beyond(epoch uint32, seq uint64) bool {
	return s.epoch > epoch || s.epoch == epoch && s.streamSeq >= seq
}

// missed is what a chain misses of its own.
type missed struct {
	lost     []LostRange // up to the chain's end, at most maxLostPerChain
	rejected []uint64    // IDs of the rejections of a damaged chain, ascending
}

// missed reads what the chain misses, of rejections those with an ID above after, and
// limit of them.
func (v *view) missed(cv *chainView, after uint64, limit int) (m missed, err error) {
	held := holders{view: v, cv: cv}
	err = v.eachMissed(*cv.key, missedDamaged, after+1, func(id uint64, l *LostRange) (bool, error) {
		r, err := v.rejection(id)
		if err != nil {
			return false, err
		}
		by, err := held.entry(r.EventID)
		if err != nil {
			return false, err
		}
		same := by != nil && by.Sum == r.Sum
		if same && by.Epoch == r.Epoch && by.StreamSeq == r.StreamSeq {
			return true, nil // delivered again
		}
		m.rejected = append(m.rejected, id)
		if !same || !cv.last.covers(by.Arrival) {
			m.add(cv, l)
		}
		return len(m.rejected) < limit, nil
	})
	if err != nil {
		return missed{}, err
	}
	err = v.eachMissed(*cv.key, missedOutOfOrder, 0, func(_ uint64, l *LostRange) (bool, error) {
		m.add(cv, l)
		return len(m.lost) < maxLostPerChain, nil
	})
	return m, err
}

func (m *missed) add(cv *chainView, l *LostRange) {
	if cv.last.covers(l.Arrival) && len(m.lost) < maxLostPerChain {
		m.lost = append(m.lost, *l)
	}
}

// upTo counts the rejections up to an ID.
func (m *missed) upTo(id uint64) uint64 {
	n, found := slices.BinarySearch(m.rejected, id)
	if found {
		n++
	}
	return uint64(n)
}

// covers: what has this arrival number came before the chain ended, or as its end.
func (s *standing) covers(arrival uint64) bool {
	return s.fixedArrival == 0 || arrival <= s.fixedArrival
}

// eachMissed visits what a chain misses for one reason, until visit wants no more.
func (v *view) eachMissed(key events.Key, what byte, from uint64, visit func(n uint64, l *LostRange) (bool, error)) error {
	first := missedKey(key, what, from)
	prefix := first[:len(first)-8]
	return v.each(tableMeta, first, func(k, payload []byte) (bool, error) {
		rest, ok := bytes.CutPrefix(k, prefix)
		if !ok || len(rest) != 8 {
			return false, nil
		}
		var l LostRange
		if err := decode(tableMeta, k, payload, &l); err != nil {
			return false, inChain(err, key)
		}
		return visit(number(rest), &l)
	})
}

// holders finds the entries that hold ids of a chain.
type holders struct {
	view    *view
	cv      *chainView
	read    bool
	pending map[string]holder // of the entries that are in the journal only
}

// entry is the one that holds an id; nil: there is none.
func (h *holders) entry(id string) (*entry, error) {
	if id == "" {
		return nil, nil
	}
	if !h.read {
		_, ids, _, err := h.view.replay(h.cv)
		if err != nil {
			return nil, err
		}
		h.read, h.pending = true, make(map[string]holder, len(ids))
		for i := range ids {
			h.pending[ids[i].id] = ids[i].holder
		}
	}
	by, known := h.pending[id]
	if !known {
		b, err := h.view.bucket(tableIDs)
		if err == nil {
			by, err = h.view.storedID(b.Cursor(), h.cv.no, id)
		}
		if err != nil {
			return nil, inChain(err, *h.cv.key)
		}
	}
	if !by.held || by.arrival == 0 {
		return nil, nil
	}
	return h.view.journal(by.arrival)
}

// late is a value of meta under "late", 0, epoch and stream sequence: the digest of the
// payload that was taken at a sequence which had been given up. Another payload at this
// sequence is from another history of the stream.
type late struct{ sum segments.Digest }

func (l *late) fields(c *codec) { c.digest(&l.sum) }

var latePrefix = []byte("late\x00")

// takeLate notes that an event is taken at a sequence that had been given up; first
// is false, and nothing noted, when one was before.
func (w *writer) takeLate(ep *Epoch, e *events.Event) (first bool, err error) {
	key := append(bytes.Clone(latePrefix), seenKey(ep.Number, e.StreamSeq)...)
	if before, err := w.get(tableMeta, key); err != nil || before != nil {
		return false, err
	}
	return true, w.write(tableMeta, key, &late{e.Sum})
}
