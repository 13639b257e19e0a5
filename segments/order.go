package segments

import (
	"iter"
	"slices"
	"sort"
	"strings"
)

// Order checks, segment by segment, the order of a chain's kinds and that its
// steps follow its plan (Plasm evidence format, sections 11 and 16). The zero
// value stands before the first segment.
//
// It is plain data: a store may keep it in any encoding and go on from it
// later. Memory: the topology of the first and the last comp_committed and four
// bytes per step. Only a chain whose steps come before their comp, or leave its
// topology, costs more (the ids of those steps), unless Lean is set.
type Order struct {
	// Lean bounds the state by the topologies, for a caller who needs no
	// more than the first fault: KindOrder and the counts stay exact, but
	// once KindOrder is set First and Last stand still, Seqs and Tail stay
	// empty, and Missing is exact only while the steps fit.
	Lean bool

	Intents, Comps, Steps, Seals uint64

	Rank      uint8    // highest kind so far: 1 intent, 2 comp, 3 step, 4 seal
	KindOrder *Offence // first segment against intent_bound? comp_committed* step_executed* run_sealed*; nil: none

	First *Progress // against the first comp_committed, the reference's rule; nil: none yet
	Last  *Progress // against the last one; nil: its topology is the first one's

	Seqs []SeqRun // seqs of the executed steps
	Tail []string // ids of executed steps beyond First's, in chain order
}

// Offence is a segment that breaks a rule.
type Offence struct {
	Seq    uint64 // as stored
	StepID string // "" unless the segment is a step
}

// SeqRun says that executed step number Step (from 0), and each one after it
// until the next run, has the seq Seq, Seq+1, ...
type SeqRun struct {
	Step, Seq uint64
}

// Progress is how far the executed steps follow one topology: their ids must
// be a subsequence of it, each entry used at most once.
type Progress struct {
	Topo []string // never written to; shared with the comp_committed
	Ran  []uint32 // entries used, ascending: positions in Topo

	Broken *Offence // first step that does not fit; nil: all fit
}

// Add takes the next segment of the chain.
func (o *Order) Add(s *Segment) {
	o.rank(s)
	switch k := s.Kind.(type) {
	case *IntentBound:
		o.Intents++
	case *CompCommitted:
		o.Comps++
		o.comp(k.StepTopo)
	case *StepExecuted:
		o.note(s.Seq)
		o.step(k.StepID, s.Seq)
		o.Steps++
	case *RunSealed:
		o.Seals++
	}
}

func rankOf(k Kind) uint8 {
	switch k.(type) {
	case *IntentBound:
		return 1
	case *CompCommitted:
		return 2
	case *StepExecuted:
		return 3
	}
	return 4
}

func (o *Order) rank(s *Segment) {
	rank := rankOf(s.Kind)
	if o.KindOrder == nil && (rank < o.Rank || rank == 1 && o.Intents > 0) {
		o.KindOrder = &Offence{Seq: s.Seq}
		if k, ok := s.Kind.(*StepExecuted); ok {
			o.KindOrder.StepID = k.StepID
		}
	}
	o.Rank = max(o.Rank, rank)
}

// settled reports whether the rest is of no interest.
func (o *Order) settled() bool { return o.Lean && o.KindOrder != nil }

func (o *Order) note(seq uint64) {
	if n := len(o.Seqs); n > 0 && o.Seqs[n-1].Seq+(o.Steps-o.Seqs[n-1].Step) == seq {
		return
	}
	if !o.Lean {
		o.Seqs = append(o.Seqs, SeqRun{o.Steps, seq})
	}
}

// seqOf returns the seq of executed step number n.
func (o *Order) seqOf(n uint64) uint64 {
	i := sort.Search(len(o.Seqs), func(i int) bool { return o.Seqs[i].Step > n }) - 1
	return o.Seqs[i].Seq + (n - o.Seqs[i].Step)
}

func (o *Order) step(id string, seq uint64) {
	if o.settled() {
		return
	}
	if o.Last != nil {
		o.Last.step(id, seq)
	}
	fits := o.First != nil && o.First.step(id, seq)
	if !fits && !o.Lean {
		o.Tail = append(o.Tail, strings.Clone(id)) // the caller's may be part of a long text
	}
}

// comp takes a new topology and brings it up to the steps before it. Without
// a first one all of them are in Tail.
func (o *Order) comp(topo []string) {
	switch {
	case o.settled():
	case o.First == nil:
		o.First = &Progress{Topo: topo}
		fits := o.replay(o.First, slices.Values(o.Tail))
		o.Tail = slices.Clone(o.Tail[fits:])
	case slices.Equal(topo, o.First.Topo):
		o.Last = nil
	case o.Last == nil || !slices.Equal(topo, o.Last.Topo):
		o.Last = &Progress{Topo: topo}
		o.replay(o.Last, o.executed)
	}
}

// replay feeds steps to p and returns how many fit before the first misfit.
func (o *Order) replay(p *Progress, ids iter.Seq[string]) (n uint64) {
	for id := range ids {
		if !p.fits(id) {
			p.Broken = &Offence{Seq: o.seqOf(n), StepID: id}
			break
		}
		n++
	}
	return n
}

// executed yields the ids of all executed steps in chain order.
func (o *Order) executed(yield func(string) bool) {
	if o.First != nil {
		for _, at := range o.First.Ran {
			if !yield(o.First.Topo[at]) {
				return
			}
		}
	}
	for _, id := range o.Tail {
		if !yield(id) {
			return
		}
	}
}

// step takes an executed step and reports whether all so far fit.
func (p *Progress) step(id string, seq uint64) bool {
	if p.Broken == nil && !p.fits(id) {
		p.Broken = &Offence{Seq: seq, StepID: id}
	}
	return p.Broken == nil
}

// fits uses the next entry that is id; without one nothing changes. Over all
// steps it looks at each entry once, and at the rest once more for a misfit.
func (p *Progress) fits(id string) bool {
	next := 0
	if n := len(p.Ran); n > 0 {
		next = int(p.Ran[n-1]) + 1
	}
	i := slices.Index(p.Topo[next:], id)
	if i < 0 {
		return false
	}
	p.Ran = append(p.Ran, uint32(next+i))
	return true
}

// AgainstLast is the progress against the last comp_committed; nil: no comp
// yet.
func (o *Order) AgainstLast() *Progress {
	if o.Last != nil {
		return o.Last
	}
	return o.First
}

// Missing returns the ids that the last comp_committed lists and no step has
// executed, in topology order: the first limit of them, and how many there are.
func (o *Order) Missing(limit int) (ids []string, total int) {
	p := o.AgainstLast()
	if p == nil {
		return nil, 0
	}
	open := make(map[string]bool)
	ran := p.Ran
	for i, id := range p.Topo {
		if len(ran) > 0 && int(ran[0]) == i {
			ran = ran[1:]
			continue
		}
		open[id] = true
	}
	for _, at := range p.Ran {
		delete(open, p.Topo[at])
	}
	for id := range o.executed {
		delete(open, id)
	}
	for _, id := range p.Topo {
		if !open[id] {
			continue
		}
		delete(open, id)
		total++
		if len(ids) < limit {
			ids = append(ids, id)
		}
	}
	return ids, total
}
