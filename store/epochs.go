package store

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/chaind/chaind/events"
)

var errEmptyRange = errors.New("range of stream sequences is empty")

// epoch is the current epoch of a stream, begun when there is none yet.
func (w *writer) epoch(stream events.Stream) (*Epoch, error) {
	ep := w.current(stream.Name)
	switch {
	case ep == nil:
		return w.beginEpoch(stream, 0, WhyFirstSeen)
	case ep.Stream != stream:
		return w.beginEpoch(stream, 0, WhyRecreated)
	}
	w.epochs[stream.Name] = ep
	return ep, nil
}

// current is the running transaction's copy of a stream name's last epoch.
func (w *writer) current(name string) *Epoch {
	if ep := w.epochs[name]; ep != nil {
		return ep
	}
	if ep := w.s.epochs[name]; ep != nil {
		own := *ep
		return &own
	}
	return nil
}

func (w *writer) beginEpoch(stream events.Stream, base uint64, why string) (*Epoch, error) {
	if old := w.epochs[stream.Name]; old != nil {
		if err := w.write(tableEpochs, key64(uint64(old.Number)), old); err != nil {
			return nil, err
		}
	}
	w.n.epochs++
	ep := &Epoch{Number: w.n.epochs, Stream: stream, Base: base, Applied: base, Why: why, StartedMS: w.s.nowMS()}
	w.epochs[stream.Name] = ep
	return ep, nil
}

// recordLost records what of from..to is not recorded yet. Only ranges that
// were recorded ahead of the watermark can overlap it.
func (w *writer) recordLost(ep *Epoch, from, to uint64, why string) error {
	if from <= ep.ahead {
		known, err := w.lostIn(ep.Number, from, to)
		if err != nil {
			return err
		}
		for _, l := range known {
			if from < l.From {
				if err := w.putLost(ep, from, l.From-1, why); err != nil {
					return err
				}
			}
			from = max(from, l.To+1)
		}
	}
	if from > to {
		return nil
	}
	return w.putLost(ep, from, to, why)
}

func (w *writer) putLost(ep *Epoch, from, to uint64, why string) error {
	w.n.lost++
	w.n.lostEvents += to - from + 1
	return w.write(tableLost, key64(w.n.lost), &LostRange{Stream: ep.Stream, Epoch: ep.Number, From: from, To: to,
		Why: why, RecordedMS: w.s.nowMS(), Arrival: w.n.arrivals + 1})
}

// lostIn returns the lost ranges of an epoch that touch from..to, in the order
// of their sequences.
func (v *view) lostIn(epoch uint32, from, to uint64) ([]LostRange, error) {
	var out []LostRange
	err := v.each(tableLost, nil, func(k, payload []byte) (bool, error) {
		var l LostRange
		err := decode(tableLost, k, payload, &l)
		if l.Epoch == epoch && l.From <= to && from <= l.To {
			out = append(out, l)
		}
		return true, err
	})
	slices.SortFunc(out, func(a, b LostRange) int { return cmp.Compare(a.From, b.From) })
	return out, err
}

// Watermark says how far the stream has been applied. It is zero for a stream
// whose name and creation time were not seen together last.
func (s *Store) Watermark(stream events.Stream) (Watermark, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	ep := s.epochs[stream.Name]
	if ep == nil || ep.Stream != stream {
		return Watermark{}, nil
	}
	return Watermark{Epoch: ep.Number, Applied: ep.Applied}, nil
}

// BeginEpoch begins a new epoch of the stream: the caller found that the broker
// lost what lies above the sequence base (its last sequence is below the
// watermark). It changes nothing when the watermark is at or below base.
func (s *Store) BeginEpoch(ctx context.Context, stream events.Stream, base uint64, why string) (Watermark, error) {
	var mark Watermark
	err := s.do(ctx, func(w *writer) error {
		ep, err := w.epoch(stream)
		if err == nil && ep.Applied > base {
			ep, err = w.beginEpoch(stream, base, why)
		}
		if err == nil {
			mark = Watermark{Epoch: ep.Number, Applied: ep.Applied}
		}
		return err
	})
	if err != nil {
		return Watermark{}, err
	}
	return mark, nil
}

// RecordLost records that the sequences from..to will never be delivered. A
// range that follows the watermark moves it; one further on is kept until the
// watermark gets there. What is applied or recorded already is left out, so that
// a second call changes nothing.
func (s *Store) RecordLost(ctx context.Context, stream events.Stream, from, to uint64, why string) error {
	if from == 0 || from > to || to == math.MaxUint64 {
		return errEmptyRange
	}
	return s.do(ctx, func(w *writer) error {
		ep, err := w.epoch(stream)
		if err != nil {
			return err
		}
		from := max(from, ep.Applied+1)
		if from > to {
			return nil
		}
		if err := w.recordLost(ep, from, to, why); err != nil {
			return err
		}
		if from == ep.Applied+1 {
			ep.Applied = to
		} else {
			ep.ahead = max(ep.ahead, to)
		}
		return nil
	})
}

// LostRanges lists lost ranges with an ID above after, oldest first.
func (s *Store) LostRanges(after uint64, limit int) ([]LostRange, error) {
	var out []LostRange
	err := s.view(func(v *view) (err error) {
		out, err = v.lostRanges(after, pageLimit(limit))
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (v *view) lostRanges(after uint64, limit int) ([]LostRange, error) {
	var out []LostRange
	err := v.each(tableLost, key64(after+1), func(k, payload []byte) (bool, error) {
		l := LostRange{ID: number(k)}
		err := decode(tableLost, k, payload, &l)
		out = append(out, l)
		return len(out) < limit, err
	})
	return out, err
}

// Epochs lists all epochs, oldest first.
func (s *Store) Epochs() ([]Epoch, error) {
	var out []Epoch
	err := s.view(func(v *view) (err error) {
		out, err = v.allEpochs()
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (v *view) allEpochs() ([]Epoch, error) {
	var out []Epoch
	err := v.each(tableEpochs, nil, func(k, payload []byte) (bool, error) {
		var e Epoch
		err := decode(tableEpochs, k, payload, &e)
		out = append(out, e)
		return true, err
	})
	return out, err
}
