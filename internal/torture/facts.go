package main

import (
	"path/filepath"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/store"
)

// facts is what the store says of one chain.
type facts struct {
	record   *store.ChainRecord
	places   []place // segments, attempts, addenda and the end, each event once
	rejected []events.Rejection
}

// place is where an event stands in its chain.
type place struct {
	kind    string // segment, attempt, late, end
	id, sum string // sum "": the record does not say
	arrival uint64
	epoch   uint32
	seq     uint64
}

func placeOf(kind string, o store.Origin) place {
	return place{kind: kind, id: o.EventID, sum: o.Sum.String(), arrival: o.Arrival, epoch: o.Epoch, seq: o.StreamSeq}
}

func openStore(w *world) (*store.Store, error) {
	return store.OpenReadOnly(store.Config{Dir: filepath.Join(w.dataDir, "store")})
}

// chains lists all chains.
func chains(s *store.Store) ([]events.Key, error) {
	var all []events.Key
	q := store.ChainQuery{Limit: store.MaxPage}
	for {
		page, next, err := s.Chains(q)
		if err != nil {
			return nil, err
		}
		for i := range page {
			all = append(all, page[i].Key)
		}
		if q.After = next; next == "" {
			return all, nil
		}
	}
}

// pages reads a list of a chain to its end.
func pages[T any](key events.Key, list func(events.Key, uint64, int) ([]T, error), visit func(T)) error {
	for from := uint64(0); ; {
		page, err := list(key, from, store.MaxPage)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, v := range page {
			visit(v)
		}
		from += uint64(len(page))
	}
}

func readFacts(s *store.Store, key events.Key) (*facts, error) {
	f := &facts{}
	var err error
	if f.record, err = s.Chain(key); err != nil {
		return nil, err
	}
	err = pages(key, s.Segments, func(r store.SegmentRecord) { f.places = append(f.places, placeOf("segment", r.Origin)) })
	if err == nil {
		err = pages(key, s.Attempts, func(r store.AttemptRecord) { f.places = append(f.places, placeOf("attempt", r.Origin)) })
	}
	if err == nil {
		err = pages(key, s.Addenda, func(r store.Addendum) { f.places = append(f.places, placeOf("late", r.Origin)) })
	}
	if err != nil {
		return nil, err
	}
	f.addEnd()
	q := store.RejectedQuery{Key: &key, Limit: store.MaxPage}
	for {
		page, next, err := s.Rejected(q)
		if err != nil {
			return nil, err
		}
		f.rejected = append(f.rejected, page...)
		if q.After = next; next == 0 {
			return f, nil
		}
	}
}

// addEnd adds the seal that ended the chain when it is no segment.
func (f *facts) addEnd() {
	end := f.record.Fixed
	if end == nil {
		return
	}
	for _, p := range f.places {
		if p.arrival == end.Arrival {
			return
		}
	}
	f.places = append(f.places, place{kind: "end", id: end.State.LastEventID, arrival: end.Arrival, epoch: end.Epoch, seq: end.StreamSeq})
}

// at finds the places of a message.
func (f *facts) at(t *told) []place {
	var found []place
	for _, p := range f.places {
		if p.id == t.id && (p.sum == t.sum || p.sum == "" || t.sum == "") {
			found = append(found, p)
		}
	}
	return found
}

// refused tells whether the message is recorded as rejected.
func (f *facts) refused(t *told) bool {
	for _, r := range f.rejected {
		if r.Sum.String() == t.sum {
			return true
		}
	}
	return false
}

// upTo gives the places that the chain had when it ended, and whether more came
// afterwards.
func (f *facts) upTo(end *store.Fixed) (places []place, later bool) {
	for _, p := range f.places {
		if p.kind != "late" {
			places = append(places, p)
		}
	}
	rejected := f.rejectedUpTo(end.RejectedUpTo)
	return places, len(places) < len(f.places) || len(rejected) < len(f.rejected)
}

// rejectedUpTo gives the first rejections, up to one of the store's numbers.
func (f *facts) rejectedUpTo(id uint64) []events.Rejection {
	for i, r := range f.rejected {
		if r.ID > id {
			return f.rejected[:i]
		}
	}
	return f.rejected
}
