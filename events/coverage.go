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

// Reasons for a coverage that is not complete: the first three of an incomplete
// one, the others of an unspecified one.
const (
	WhySeqHole     = "producer_seq_hole"
	WhyEventCount  = "event_count_differs"
	WhyHead        = "producer_head_differs"
	WhyOpen        = "open"
	WhyNotDeclared = "nothing_declared"
	WhyUnnumbered  = "unnumbered_events"    // some events have a number, and others, maybe the last, have none
	WhyEnd         = "end_not_covered"      // count or head were given before the end, and not with it
	WhyHeadAlone   = "attempts_not_covered" // a head came with the end and nothing else did, and a head does not cover attempts, of which there are some
)

// Facts are what a chain's producer declared and what was seen of it up to
// the chain's end.
type Facts struct {
	IDs        uint64  // distinct readable event ids, accepted or rejected
	Numbers    SeqSet  // producer_seq of accepted and rejected events with a readable id
	Unnumbered bool    // an event that took effect had none, so that no number would be missed with such a one
	Declared   *uint64 // event_count last given; nil: none
	Miscount   bool    // the last event_count was not IDs at its seal

	DeclaredSegments uint64 // segments that the chain had then, that of the seal included; 0: none, or not known
	End              Closing
}

// Closing tells which of the producer's declarations came with the event that
// ended the chain. Only those speak of all that came before the end: behind a
// count or a head that an earlier seal gave, events may be lost that nothing
// misses. Of an open chain both are false.
type Closing struct {
	Counted bool // an event_count
	Headed  bool // a producer_head that no earlier seal can have given: the end is a segment, or no run seal came before it
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

func (f *Facts) declare(count *uint64, segments uint64) {
	if count == nil {
		return
	}
	f.Declared, f.DeclaredSegments = count, segments
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

// Count is how many numbers the set holds.
func (s *SeqSet) Count() uint64 {
	n := uint64(0)
	for _, r := range s.Runs {
		n += r.To - r.From + 1
	}
	return n
}

// Coverage judges the chain: incomplete with its reasons when something that
// was declared is contradicted; complete when nothing is, and what was declared
// speaks of everything up to the end; else unspecified with the reason. A head
// speaks of segments alone, and so is enough only for a chain without attempts
// whose events have no numbers. Ranges lost at the broker are not looked at here;
// only the store knows them.
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
	switch numbers, attempts := !s.Facts.Numbers.Empty(), s.attempts() > 0; {
	case len(why) > 0:
		return Incomplete, why
	case numbers && !s.Facts.Unnumbered, s.Facts.End.Counted, s.Facts.End.Headed && !numbers && !attempts:
		return Complete, why
	case numbers:
		return Unspecified, []string{WhyUnnumbered}
	case s.Facts.End.Headed:
		return Unspecified, []string{WhyHeadAlone}
	case s.Facts.Declared != nil || s.ProducerHead != "":
		return Unspecified, []string{WhyEnd}
	}
	return Unspecified, []string{WhyNotDeclared}
}

// attempts counts those that took effect.
func (s *State) attempts() uint64 {
	n := s.UntoldSteps.Begun + s.UntoldSteps.Failed
	for i := range s.Steps {
		n += s.Steps[i].Begun + s.Steps[i].Failed
	}
	return n
}

// Begins reports whether the chain's beginning is known to be there: by a
// producer_seq of 0, or, where events are not numbered, by what the producer
// declared in the end, or because an intent came before anything else. A plan
// is no beginning: an intent may have come before it. Of another chain nobody
// can say that messages which were lost just before its first event were not
// its own.
func (s *State) Begins() bool {
	if numbers := s.Facts.Numbers.Runs; len(numbers) > 0 {
		return numbers[0].From == 0
	}
	covered, _ := s.Coverage()
	return covered == Complete || s.Order.Intended
}
