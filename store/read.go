package store

import (
	"fmt"
	"math"

	"github.com/chaind/chaind/events"
)

func pageLimit(limit int) int {
	if limit <= 0 {
		return DefaultPage
	}
	return min(limit, MaxPage)
}

// peek copies what is in memory about a chain as of the last commit.
func (s *Store) peek(key events.Key) (chainView, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if c := s.chains[key]; c != nil {
		return c.view, true
	}
	return chainView{}, false
}

// withChain runs fn over one chain in a read transaction. Memory is looked at
// first: the transaction knows at least as much, and what it knows beyond is
// told apart by arrival numbers and ordinals.
func (s *Store) withChain(key events.Key, fn func(v *view, cv *chainView) error) error {
	cv, inMemory := s.peek(key)
	if err := s.isAside(key); err != nil {
		return err
	}
	return s.view(func(v *view) error {
		if !inMemory {
			if err := v.stored(key, &cv); err != nil {
				return err
			}
		}
		return inChain(fn(v, &cv), key)
	})
}

// stored takes a chain from the database alone.
func (v *view) stored(key events.Key, cv *chainView) error {
	no, err := v.chainNumber(key)
	if err != nil {
		return err
	}
	if no == 0 {
		return notFound(key)
	}
	rec, err := v.chainRecord(no)
	switch {
	case err != nil:
		return err
	case rec.lastArrival == 0:
		return notFound(key) // begun by a commit that is not published yet
	}
	*cv = rec.view(no)
	return nil
}

func notFound(key events.Key) error {
	return fmt.Errorf("chain %q/%q/%q/%q: %w", key.Tenant, key.PromptHash, key.Session, key.Chain, ErrNotFound)
}

// entries visits a page of the journal entries of a chain's list. The entry is
// visit's until it returns, what it points to for good. visit returns the bytes
// that it took beside the entry.
func (s *Store) entries(key events.Key, l listing, from uint64, limit int,
	visit func(v *view, ordinal uint64, e *entry) (int, error)) error {
	return s.withChain(key, func(v *view, cv *chainView) error {
		arrivals, err := v.arrivals(cv, l, from, pageLimit(limit))
		if err != nil {
			return err
		}
		bytes := 0
		var e entry
		for i, a := range arrivals {
			payload, err := v.journaled(a)
			if err == nil && payload == nil {
				err = missing(tableJournal, key64(a), "the entry")
			}
			if err == nil {
				err = e.decode(a, payload)
			}
			if err != nil {
				return err
			}
			more, err := visit(v, from+uint64(i), &e)
			if err != nil {
				return err
			}
			if bytes += len(payload) + more; bytes > maxPageBytes {
				break
			}
		}
		return nil
	})
}

// Segments returns the chain's segments from sequence number from on, at most
// limit (0: DefaultPage; at most MaxPage). A page also ends after some MiB, so
// only an empty one means that there are no more. It returns ErrNotFound for an
// unknown chain, and an error matching ErrCorrupt when a value is not what was
// written.
func (s *Store) Segments(key events.Key, from uint64, limit int) ([]SegmentRecord, error) {
	var out []SegmentRecord
	err := s.entries(key, listSegments, from, limit, func(_ *view, ordinal uint64, e *entry) (int, error) {
		if !e.segment || e.seq != ordinal {
			return 0, contradicts(tableJournal, key64(e.Arrival), fmt.Sprintf("not segment %d", ordinal))
		}
		out = append(out, e.record())
		return 0, nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Attempts returns the chain's attempts from ordinal from on, like
// [Store.Segments].
func (s *Store) Attempts(key events.Key, from uint64, limit int) ([]AttemptRecord, error) {
	var out []AttemptRecord
	err := s.entries(key, listAttempts, from, limit, func(_ *view, ordinal uint64, e *entry) (int, error) {
		out = append(out, AttemptRecord{Ordinal: ordinal, Phase: e.phase, StepID: e.stepID, StepIndex: e.stepIndex,
			Reason: e.reason, AtMS: e.atMS, Origin: e.Origin})
		return 0, nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Addenda returns the chain's late events from ordinal from on, like
// [Store.Segments].
func (s *Store) Addenda(key events.Key, from uint64, limit int) ([]Addendum, error) {
	var out []Addendum
	err := s.entries(key, listAddenda, from, limit, func(_ *view, ordinal uint64, e *entry) (int, error) {
		out = append(out, Addendum{Ordinal: ordinal, Kind: e.kind, Phase: e.phase, StepID: e.stepID,
			StepIndex: e.stepIndex, Outcome: e.outcome, Reason: e.reason, AtMS: e.atMS, Origin: e.Origin})
		return 0, nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Chain returns all about one chain but its segments, attempts, addenda,
// preimages and rejections; ErrNotFound when it is unknown.
func (s *Store) Chain(key events.Key) (*ChainRecord, error) {
	var r *ChainRecord
	err := s.withChain(key, func(v *view, cv *chainView) (err error) {
		r, err = v.chain(cv)
		return err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (v *view) chain(cv *chainView) (*ChainRecord, error) {
	state, last, err := v.current(cv)
	if err != nil {
		return nil, err
	}
	r := &ChainRecord{Key: *cv.key, State: state, FirstArrival: last.firstArrival,
		LastArrival: last.lastArrival, Epoch: last.epoch, StreamSeq: last.streamSeq}
	if r.Fixed, err = v.fixed(cv.no); err != nil {
		return nil, err
	}
	if r.Seal, err = v.sealResult(cv.no); err != nil {
		return nil, err
	}
	if r.Lost, err = v.lostAcross(&last, state.Begins()); err != nil {
		return nil, err
	}
	own, err := v.missed(cv, 0, math.MaxInt)
	if err != nil {
		return nil, err
	}
	r.Lost = append(r.Lost, own.lost...)
	state.Rejected += own.upTo(math.MaxUint64)
	if r.Fixed != nil {
		r.Fixed.State.Rejected += own.upTo(r.Fixed.RejectedUpTo)
	}
	r.Weak, err = v.settingsAcross(&last)
	return r, err
}

// WhyLost is the coverage reason of a chain that was open across a lost range.
const WhyLost = "lost_range"

// Coverage is what the state says of the chain's coverage, and incomplete in
// any case when the chain was open while events were lost.
func (r *ChainRecord) Coverage() (events.Coverage, []string) {
	coverage, why := r.State.Coverage()
	if len(r.Lost) == 0 {
		return coverage, why
	}
	if coverage != events.Incomplete {
		why = nil
	}
	return events.Incomplete, append(why, WhyLost)
}
