package events

import "slices"

// Coverage says whether a chain's facts are all there, as far as its producer
// declared anything.
type Coverage string

const (
	Complete    Coverage = "complete"
	Incomplete  Coverage = "incomplete"
	Unspecified Coverage = "unspecified"
)

// Reasons for a coverage that is not complete.
const (
	WhySeqHole     = "producer_seq_hole"
	WhyEventCount  = "event_count_differs"
	WhyHead        = "producer_head_differs"
	WhyOpen        = "open"
	WhyNotDeclared = "nothing_declared"
)

// Facts are what a chain's producer declared and what was seen of it up to
// the chain's end.
type Facts struct {
	IDs      uint64  // distinct readable event ids, accepted or rejected
	Numbers  SeqSet  // producer_seq of accepted and rejected events with a readable id
	Declared *uint64 // event_count last given; nil: none
	Miscount bool    // the last event_count was not IDs at its seal
}

// see counts an event with a readable id; known tells whether the id was seen
// in this chain before.
func (f *Facts) see(e *Event, known bool) {
	if !known {
		f.IDs++
	}
	if e.ProducerSeq != nil {
		f.Numbers.Add(*e.ProducerSeq)
	}
}

func (f *Facts) declare(count *uint64) {
	if count == nil {
		return
	}
	f.Declared = count
	f.Miscount = *count != f.IDs
}

// Interval is a run of numbers, both ends included.
type Interval struct{ From, To uint64 }

// SeqSet is a set of producer numbers in ascending intervals that neither
// touch nor overlap. At most MaxSeqIntervals are kept: a numbering with more
// gaps than that has a hole for good.
type SeqSet struct {
	Runs     []Interval
	Overflow bool
}

// Add puts n, at most 2^53-1, into the set.
func (s *SeqSet) Add(n uint64) {
	i, found := slices.BinarySearchFunc(s.Runs, n, func(r Interval, n uint64) int {
		switch {
		case r.To < n:
			return -1
		case r.From > n:
			return 1
		}
		return 0
	})
	if found {
		return
	}
	joinsLeft := i > 0 && s.Runs[i-1].To+1 == n
	joinsRight := i < len(s.Runs) && n+1 == s.Runs[i].From
	switch {
	case joinsLeft && joinsRight:
		s.Runs[i-1].To = s.Runs[i].To
		s.Runs = slices.Delete(s.Runs, i, i+1)
	case joinsLeft:
		s.Runs[i-1].To = n
	case joinsRight:
		s.Runs[i].From = n
	case len(s.Runs) >= MaxSeqIntervals:
		s.Overflow = true
	default:
		s.Runs = slices.Insert(s.Runs, i, Interval{n, n})
	}
}

// Empty reports whether no number was ever added.
func (s *SeqSet) Empty() bool { return len(s.Runs) == 0 }

// Hole reports whether the numbers are not 0, 1, 2, … without a gap.
func (s *SeqSet) Hole() bool {
	return s.Overflow || len(s.Runs) > 1 || len(s.Runs) == 1 && s.Runs[0].From != 0
}

// Coverage judges the chain: incomplete with its reasons, complete when
// anything was declared and nothing contradicts it, unspecified (open, or
// nothing_declared) otherwise. Ranges lost at the broker are not looked at
// here; only the store knows them.
func (s *State) Coverage() (Coverage, []string) {
	if s.Outcome == Open {
		return Unspecified, []string{WhyOpen}
	}
	why := []string{}
	if s.Facts.Numbers.Hole() {
		why = append(why, WhySeqHole)
	}
	if s.Facts.Miscount {
		why = append(why, WhyEventCount)
	}
	if s.ProducerHead == HeadDiffers {
		why = append(why, WhyHead)
	}
	switch {
	case len(why) > 0:
		return Incomplete, why
	case s.declared():
		return Complete, why
	}
	return Unspecified, []string{WhyNotDeclared}
}

// declared reports whether anything speaks of the chain up to its end: numbers,
// a count, or a producer head that no segment follows.
func (s *State) declared() bool {
	return !s.Facts.Numbers.Empty() || s.Facts.Declared != nil ||
		s.ProducerHead == HeadAgrees && s.GivenSegments == s.Segments
}

// Begins reports whether the chain's beginning is known to be there: by a
// producer_seq of 0, or, where events are not numbered, by what the producer
// declared in the end, or because a plan came before any step. Of another chain nobody can say that messages which were lost just
// before its first event were not its own.
func (s *State) Begins() bool {
	if numbers := s.Facts.Numbers.Runs; len(numbers) > 0 {
		return numbers[0].From == 0
	}
	covered, _ := s.Coverage()
	return covered == Complete || s.Order.Planned && !s.Order.Misplaced
}
