package store

import (
	"bytes"
	"context"
	"slices"

	"github.com/chaind/chaind/events"
)

// settings are the weakening settings under which events were read from one
// arrival number on, which is in the key, up to the next record. What has been
// written counts for the chains that it was in force for, and stays as it is.
type settings struct {
	number uint64 // counts the records from 1, so that a lost one shows
	epoch  uint32 // that was current when they were recorded
	weak   []events.Weakness
}

func (s *settings) fields(c *codec) {
	c.uint(&s.number)
	c.uint32(&s.epoch)
	names := make([]string, 0, len(s.weak))
	for _, w := range s.weak {
		names = append(names, string(w))
	}
	c.texts(&names)
	if !c.reading {
		return
	}
	s.weak = nil
	for _, n := range names {
		s.weak = append(s.weak, events.Weakness(n))
	}
}

var settingsPrefix = []byte("settings\x00")

func settingsKey(arrival uint64) []byte {
	return append(bytes.Clone(settingsPrefix), key64(arrival)...)
}

// settingsArrival is the arrival number in a key; ok is false for another key.
func settingsArrival(k []byte) (arrival uint64, ok bool) {
	rest, ok := bytes.CutPrefix(k, settingsPrefix)
	if !ok || len(rest) != 8 {
		return 0, false
	}
	return number(rest), true
}

// RecordSettings records under which weakening settings the stream is read from
// the next event on. It changes nothing when they are those that were recorded
// last, or when there are none and never were any. In an epoch with 64 records
// settings only add up: what is recorded then is what was in force, and them.
func (s *Store) RecordSettings(ctx context.Context, stream events.Stream, weak []events.Weakness) error {
	weak = sortedUnion(weak)
	return s.do(ctx, func(w *writer) error { return w.recordSettings(stream, weak) })
}

func (w *writer) recordSettings(stream events.Stream, weak []events.Weakness) error {
	ep := w.current(stream.Name)
	last, recorded, err := w.lastSettings(ep)
	if err != nil {
		return err
	}
	if ep != nil && ep.Stream == stream && recorded >= maxSettingsPerEpoch {
		weak = sortedUnion(weak, last.weak)
	}
	if slices.Equal(weak, last.weak) {
		return nil
	}
	if ep, err = w.epoch(stream); err != nil {
		return err
	}
	next := settings{number: last.number + 1, epoch: ep.Number, weak: weak}
	key := settingsKey(w.n.arrivals + 1)
	if old, err := w.get(tableMeta, key); err != nil {
		return err
	} else if old != nil {
		next.number-- // the last record was in force for no event: this one takes its place
	}
	return w.write(tableMeta, key, &next)
}

// lastSettings are those that were recorded last, whatever the epoch, and how
// many records there are of the epoch.
func (v *view) lastSettings(ep *Epoch) (last settings, recorded int, err error) {
	err = v.each(tableMeta, settingsPrefix, func(k, payload []byte) (bool, error) {
		if _, ok := settingsArrival(k); !ok {
			return false, nil
		}
		last = settings{}
		err := decode(tableMeta, k, payload, &last)
		if ep != nil && last.epoch == ep.Number {
			recorded++
		}
		return true, err
	})
	return last, recorded, err
}

// settingsAcross returns the settings that were in force at any time between
// the chain's first event and its end or, while it is open, its last one. What is
// recorded later is behind that and changes nothing.
func (v *view) settingsAcross(st *standing) ([]events.Weakness, error) {
	b, err := v.bucket(tableMeta)
	if err != nil {
		return nil, err
	}
	end := st.fixedArrival
	if end == 0 {
		end = st.lastArrival
	}
	var weak []events.Weakness
	c := b.Cursor()
	before := c.Prev
	if k, _ := c.Seek(settingsKey(end + 1)); k == nil {
		before = c.Last
	}
	for k, value := before(); k != nil; k, value = c.Prev() {
		arrival, ok := settingsArrival(k)
		if !ok {
			break
		}
		payload, err := v.open(tableMeta, k, value)
		if err != nil {
			return nil, err
		}
		var s settings
		if err := decode(tableMeta, k, payload, &s); err != nil {
			return nil, err
		}
		weak = sortedUnion(weak, s.weak)
		if arrival <= st.firstArrival {
			break
		}
	}
	return weak, nil
}

// sortedUnion is nil when there is none.
func sortedUnion(lists ...[]events.Weakness) []events.Weakness {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}
