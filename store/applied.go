package store

import (
	"cmp"
	"encoding/binary"
	"sort"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// Applied is what the store has recorded under one sequence of a stream.
type Applied struct {
	Sum      segments.Digest // payload digest; zero when Lost
	BrokerMS uint64          // the broker's timestamp, Unix milliseconds; zero when Lost
	Lost     bool            // recorded as a message that will never come
}

// AppliedAt tells what was recorded under a sequence of the stream's current
// history: in its last epoch, or, at or below that one's base, in the one
// before. known is false above the watermark, for another stream identity, and
// where the sequence left no record of its own (a redelivery). The journal is
// halved to find it, so a call costs some twenty reads. Where streams were read
// by turns it may say unknown, never something wrong.
func (s *Store) AppliedAt(stream events.Stream, seq uint64) (a Applied, known bool, err error) {
	err = s.view(func(v *view) error {
		epoch, err := v.epochOf(stream, seq)
		if epoch == 0 || err != nil {
			return err
		}
		a, known, err = v.appliedAt(epoch, seq)
		return err
	})
	if err != nil {
		return Applied{}, false, err
	}
	return a, known, nil
}

// epochOf is the last epoch of the stream that the sequence belongs to; 0: none.
func (v *view) epochOf(stream events.Stream, seq uint64) (uint32, error) {
	all, err := v.allEpochs()
	if err != nil {
		return 0, err
	}
	current := false // the newest epoch of this name has been passed
	for i := len(all) - 1; i >= 0; i-- {
		ep := &all[i]
		switch {
		case ep.Stream.Name != stream.Name:
			continue
		case ep.Stream != stream, !current && seq > ep.Applied:
			return 0, nil // another stream's history, or above the watermark
		case seq > ep.Base:
			return ep.Number, nil
		}
		current = true
	}
	return 0, nil
}

func (v *view) appliedAt(epoch uint32, seq uint64) (Applied, bool, error) {
	if id, err := v.get(tableSeen, seenKey(epoch, seq)); err != nil {
		return Applied{}, false, err
	} else if id != nil {
		r, err := v.rejection(binary.BigEndian.Uint64(id))
		return Applied{Sum: r.Sum, BrokerMS: r.BrokerMS}, err == nil, err
	}
	e, err := v.entryAt(epoch, seq)
	if err != nil {
		return Applied{}, false, err
	}
	if e != nil {
		return Applied{Sum: e.Sum, BrokerMS: e.BrokerMS}, true, nil
	}
	lost, err := v.lostIn(epoch, seq, seq)
	return Applied{Lost: true}, len(lost) > 0, err
}

// entryAt halves the journal: the entries of one stream lie in the order of
// their epochs and sequences.
func (v *view) entryAt(epoch uint32, seq uint64) (found *entry, err error) {
	var n counters
	if _, err := v.read(tableMeta, metaCounters, &n); err != nil {
		return nil, err
	}
	sort.Search(int(n.arrivals), func(i int) bool {
		e, failed := v.journal(uint64(i) + 1)
		if failed != nil {
			err = failed
		}
		if e == nil {
			return true
		}
		order := cmp.Or(cmp.Compare(e.Epoch, epoch), cmp.Compare(e.StreamSeq, seq))
		if order == 0 {
			found = e
		}
		return order >= 0
	})
	return found, err
}
