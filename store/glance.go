package store

import (
	"math"
	"sync/atomic"

	"github.com/chaind/chaind/events"
)

// watchedFor is for how many arrivals (of all chains) a chain that somebody has
// listed counts as watched.
const watchedFor = 1 << 16

// glance is what a list says of a chain, kept beside the chain in memory by the
// writer while somebody lists it, so that lists beside a running intake need not
// replay what it has in memory already.
//
// It is safe because a reader sees nothing that it would not have found in the
// database: the writer takes it from a state after the commit that the state is
// as of, and hands it over together with the view of the chain (Store.publish,
// under Store.mu); nobody changes it afterwards, and a state replaces what it
// points to and never writes there. A reader takes it before its transaction
// begins, which so has all that the glance has.
type glance struct {
	sum    ChainSummary // without Sealed; Coverage as if nothing was lost
	last   standing
	begins bool // events.State.Begins
}

// watched is until which arrival number the glance of a chain is kept up.
type watched struct{ until atomic.Uint64 }

func (w *watched) note(arrivals uint64) {
	if until := arrivals + watchedFor; w.until.Load() < until {
		w.until.Store(until)
	}
}

// look takes the glance of a state.
func look(key *events.Key, state *events.State, last *standing) *glance {
	conformity, _ := state.Conformity()
	coverage, _ := state.Coverage()
	return &glance{last: *last, begins: state.Begins(), sum: ChainSummary{
		Key: *key, Outcome: state.Outcome, Reason: state.Reason, Conformity: conformity, Segments: state.Segments,
		Head: state.Head, RunIDs: state.RunIDs, Duplicates: state.Duplicates, Late: state.Late, Rejected: state.Rejected,
		Coverage: coverage, Epoch: last.epoch, StreamSeq: last.streamSeq, Anchors: state.Anchors,
		LastAtMS: state.LastAtMS, Attempts: state.UnderWay()}}
}

// memory is what is in memory of a chain, for a list.
type memory struct {
	view   chainView
	glance *glance // nil: none is kept
	there  bool    // the chain is in memory
	aside  *aside  // nil: it is not set aside
}

// remember looks at memory, and lets the writer know that the chain is looked at.
// What it returns is for a transaction that begins afterwards: all of it is in there.
func (s *Store) remember(key events.Key) memory {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := s.chains[key]
	if c == nil {
		return memory{aside: s.aside[key]}
	}
	c.watched.note(s.n.arrivals)
	return memory{c.view, c.glance, true, nil}
}

// glance is the writer's of the chain, or else made anew.
func (s *Store) glance(v *view, key events.Key, m *memory) (*glance, uint64, error) {
	if m.aside != nil {
		return nil, 0, m.aside.damage()
	}
	if m.glance != nil {
		return m.glance, m.view.no, nil
	}
	cv := m.view
	if !m.there {
		if err := v.stored(key, &cv); err != nil {
			return nil, 0, err
		}
	}
	state, last, err := v.current(&cv)
	if err != nil {
		return nil, 0, err
	}
	made := look(&key, state, &last)
	s.keepGlance(made)
	return made, cv.no, nil
}

// keepGlance keeps what a reader has made for the next one, if it is still how
// the chain stands.
func (s *Store) keepGlance(g *glance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.chains[g.sum.Key]; c != nil && c.view.last.lastArrival == g.last.lastArrival {
		c.glance = g
	}
}

// summary is a list's line about a chain, of which m was remembered before v began.
func (s *Store) summary(v *view, key events.Key, m *memory) (*ChainSummary, error) {
	g, no, err := s.glance(v, key, m)
	if err != nil {
		return nil, err
	}
	sum := g.sum
	if sum.Sealed, err = v.sealResult(no); err != nil {
		return nil, err
	}
	lost, err := v.lostAcross(&g.last, g.begins)
	if err != nil {
		return nil, err
	}
	cv := m.view
	if !m.there {
		cv = chainView{no: no, key: &key, stored: g.last, last: g.last}
	}
	own, err := v.missed(&cv, 0, math.MaxInt)
	if err != nil {
		return nil, err
	}
	if sum.Rejected += own.upTo(math.MaxUint64); len(lost)+len(own.lost) != 0 {
		sum.Coverage = events.Incomplete
	}
	return &sum, nil
}
