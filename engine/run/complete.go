package run

import (
	"fmt"
	"slices"
)

// complete holds what the producer declared against what is packaged, and
// tells what the daemon recorded as lost.
func (m *model) complete() *claim {
	coverage, why := m.coverage()
	c := newClaim("Intake: ", "%s", coverage)
	c.holds = coverage == Complete
	switch {
	case coverage == NotRecorded:
		c.say(", no daemon recorded how the events came in.")
		return c
	case coverage == Unspecified && m.facts.Outcome == Open:
		c.say(", the run has not ended.")
	case coverage == Unspecified:
		m.tellUndeclared(c)
	default:
		c.say(".")
	}
	for _, reason := range why {
		c.say(" %s", reason)
	}
	m.tellEvents(c)
	m.tellDaemon(c)
	c.cite(kindIntake)
	return c
}

// tellUndeclared says why nothing that the producer declared is enough.
func (m *model) tellUndeclared(c *claim) {
	if m.stated() {
		c.say(", the producer declared a head up to the end, which does not cover attempts, and neither a count nor numbers.")
	} else {
		c.say(", the producer declared neither a count, nor numbers, nor a head up to the end.")
	}
	if len(m.numbers()) > 0 {
		c.say(" Not every event has a number.")
	}
}

// coverage judges the intake, as the daemon does and with the lost ranges, and
// says why it is not complete.
func (m *model) coverage() (Coverage, []string) {
	if m.intake == nil {
		return NotRecorded, nil
	}
	numbers := m.numbers()
	var why []string
	add := func(format string, args ...any) { why = append(why, fmt.Sprintf(format, args...)) }
	if gap := len(numbers) > 1 || len(numbers) == 1 && numbers[0].from != 0; gap {
		add("The producer's numbers have a hole: %s.", rangesShort(numbers))
	}
	if d := m.facts.Declared; d != nil {
		if here := m.seen(&d.At); here != d.Count {
			add("The producer declared %s, and there are %d.", plural(d.Count, "event"), here)
		}
	}
	if p := m.facts.Producer; p != nil && !m.producerHeadAgrees() {
		add("The producer stated another head.")
	}
	for _, l := range m.intake.Lost {
		if len(why) > maxListed {
			add("The daemon recorded more losses.")
			break
		}
		add("The daemon recorded stream sequences %d to %d of epoch %d as lost: %s.", l.From, l.To, l.Epoch, quote(l.Why))
	}
	if m.intake.rest != nil && m.intake.rest.overflow {
		add("There are too many rejections to count their events.")
	}
	if contradiction := m.contradiction(); contradiction != "" {
		add("The record contradicts itself: %s.", contradiction)
	}
	switch {
	case m.facts.Outcome == Open:
		return Unspecified, why
	case len(why) > 0:
		return Incomplete, why
	case m.covered(len(numbers) > 0):
		return Complete, nil
	}
	return Unspecified, nil
}

// covered says that what the producer declared is enough, as the version has it.
func (m *model) covered(numbers bool) bool {
	if m.midway {
		return numbers || m.declaredMidway()
	}
	return m.coversEnd(numbers)
}

// coversEnd says that something which the producer declared speaks of everything up
// to the end. A head speaks of segments alone, and so is enough only where nothing
// speaks of attempts.
func (m *model) coversEnd(numbers bool) bool {
	return numbers && m.numbered() || m.counted() || m.stated() && !numbers && len(m.attempts) == 0
}

// numbered says that every event that took effect has a number: one without
// could be lost and no number would be missing.
func (m *model) numbered() bool {
	for e := range m.accepted() {
		if e.ProducerSeq == nil {
			return false
		}
	}
	return true
}

// counted says that the count came with the end, so that it covers all before.
func (m *model) counted() bool {
	return m.facts.Declared != nil && m.facts.End != nil && m.facts.Declared.At == m.facts.End.Position
}

// stated says that the producer's head came with the end. When the end is no
// segment, a run seal before it may have brought the head, and more after it
// may be lost.
func (m *model) stated() bool {
	p := m.facts.Producer
	return p != nil && p.Segments == uint64(len(m.segments)) && m.producerHeadAgrees() &&
		m.facts.End != nil && (!m.bareEnd() || m.order.Seals == 0)
}

func (m *model) producerHeadAgrees() bool {
	p := m.facts.Producer
	return p.Segments > 0 && p.Segments <= uint64(len(m.segments)) &&
		m.segments[p.Segments-1].Kind != nil && m.segments[p.Segments-1].Digest() == p.Head
}

// seen counts the distinct readable event ids, accepted or rejected, up to where the
// count was declared; nil: all.
func (m *model) seen(until *Position) uint64 {
	n := uint64(len(m.packagedIDs(until)))
	switch rest := m.intake.rest; {
	case rest == nil:
	case until != nil && rest.counted != nil:
		n += *rest.counted
	default:
		n += rest.ids
	}
	return n
}

// packagedIDs are the readable event ids, accepted or rejected, that are packaged, up
// to a position; nil: all.
func (m *model) packagedIDs(until *Position) map[string]bool {
	ids := map[string]bool{}
	note := func(e *Event) {
		if e.ID != "" && (until == nil || e.Position.compare(*until) <= 0) {
			ids[e.ID] = true
		}
	}
	for e := range m.accepted() {
		note(e)
	}
	for i := range m.rejected {
		note(&m.rejected[i].Event)
	}
	return ids
}

// numbers are the producer's numbers of all events with a readable id.
func (m *model) numbers() []numberRange {
	var out []numberRange
	note := func(e *Event) {
		if e.ID != "" && e.ProducerSeq != nil {
			out = append(out, numberRange{*e.ProducerSeq, *e.ProducerSeq})
		}
	}
	for e := range m.accepted() {
		note(e)
	}
	for i := range m.rejected {
		note(&m.rejected[i].Event)
	}
	if m.intake.rest != nil {
		out = append(out, m.intake.rest.numbers...)
	}
	return join(out)
}

// rangesShort tells the first ranges.
func rangesShort(ranges []numberRange) string {
	var l list
	for _, r := range ranges {
		l.add(func() string { return fmt.Sprintf("%d to %d", r.from, r.to) })
	}
	return l.String()
}

// contradiction finds what no intake can have recorded: an accepted id twice,
// events out of stream order or outside of what was taken in.
func (m *model) contradiction() string {
	seen := map[string]bool{}
	for e := range m.accepted() {
		if e.ID == "" || seen[e.ID] {
			return "an event is there twice, or without an id"
		}
		seen[e.ID] = true
	}
	lists := [][]Position{nil, nil, nil}
	for i := range m.segments {
		if m.segments[i].Event == nil {
			return "a segment came with no event"
		}
		lists[0] = append(lists[0], m.segments[i].Event.Position)
	}
	for i := range m.attempts {
		lists[1] = append(lists[1], m.attempts[i].Position)
	}
	for i := range m.rejected {
		lists[2] = append(lists[2], m.rejected[i].Position)
	}
	var all []Position
	for _, l := range lists {
		if !ascending(l) {
			return "events are not in stream order"
		}
		all = append(all, l...)
	}
	if m.bareEnd() {
		all = append(all, m.facts.End.Position)
	}
	slices.SortFunc(all, Position.compare)
	switch n := len(all); {
	case !ascending(all):
		return "two events have one stream sequence"
	case n > 0 && (all[0].compare(m.intake.First) < 0 || all[n-1].compare(m.intake.Last) > 0):
		return "events lie outside of the stream sequences that were taken in"
	case m.facts.Declared != nil && m.facts.Declared.At.compare(m.intake.Last) > 0:
		return "the count was declared after the end"
	}
	return ""
}

func ascending(l []Position) bool {
	for i := 1; i < len(l); i++ {
		if l[i-1].compare(l[i]) >= 0 {
			return false
		}
	}
	return true
}

// tellEvents says what is packaged and what was declared.
func (m *model) tellEvents(c *claim) {
	c.say(" %s: %s, %s", plural(m.seen(nil), "distinct event"), plural(len(m.segments), "segment"), plural(len(m.attempts), "attempt"))
	if m.bareEnd() {
		c.say(", the end without a segment")
	}
	c.say(", %s.", plural(m.intake.rejected, "rejection"))
	if d := m.facts.Declared; d != nil {
		c.say(" The producer declared %d.", d.Count)
	}
	if numbers := m.numbers(); len(numbers) == 1 {
		c.say(" The producer's numbers are %d to %d.", numbers[0].from, numbers[0].to)
	}
	if m.facts.End != nil && m.facts.End.ProducerSeq == nil && !m.counted() && !m.stated() && !(m.midway && m.declaredMidway()) {
		c.say(" Nothing that the producer declared covers the end.")
	}
	if rest := m.intake.rest; rest != nil {
		c.say(" Of the rejections %d are not packaged, only their digest %s.", rest.count, rest.digest)
	}
}

// tellDaemon says what rests on the daemon's word.
func (m *model) tellDaemon(c *claim) {
	i := m.intake
	c.say(" The daemon recorded %s and %s, on stream %s from sequence %d to %d of epoch %d.",
		plural(len(i.Lost), "lost range"), plural(i.Duplicates, "duplicate"), quote(i.Stream), i.First.StreamSeq, i.Last.StreamSeq, i.Last.Epoch)
	if len(i.Weak) > 0 {
		c.say(" It recorded stream settings that weaken evidence: %s.", quoted(i.Weak))
	}
}
