package segments

import (
	"bytes"
	"slices"
)

const (
	// batchBytes is how much text a batch of segments has, unless one alone is
	// longer. With a quarter of it, two cores had 1.75 times the speed of one
	// instead of 1.95: waking a worker costs as much as several segments.
	batchBytes = 64 << 10

	// maxRoomStrings is how many fingerprints a room keeps place for.
	maxRoomStrings = 64
)

// room is the memory of one decoded segment, used again and again. Kinds other
// than steps are rare, and are made anew.
type room struct {
	Scanned
	prev  Digest
	atMS  uint64
	entry string
	step  StepExecuted

	start, end int // of its text in that of the batch
	found      deviations
}

// batch is a piece of the array of segments: their text, and what it decodes to.
type batch struct {
	done chan struct{} // has one token when a worker is through

	path  []part // of the array
	depth int    // inside of it
	names int    // claimed by the objects around it
	first int64  // index of the first segment
	text  []byte
	rooms []room // one per segment, and more from earlier use
	count int    // segments

	decoded int   // segments that are ready to be looked at
	err     error // of the segment after them; nil: there is none

	preimage, written []byte // reused
}

func (b *batch) begin(at *cursor) {
	last := len(at.path) - 1
	b.path = append(b.path[:0], at.path[:last]...)
	b.depth, b.names, b.first = at.depth, at.claimed, at.path[last].at
	b.text, b.count, b.decoded, b.err = b.text[:0], 0, 0, nil
}

func (b *batch) add(at *cursor) {
	if b.count == len(b.rooms) {
		b.rooms = append(b.rooms, room{})
	}
	r := &b.rooms[b.count]
	b.count++
	r.start = len(b.text)
	b.text = append(b.text, at.text...)
	r.end = len(b.text)
	r.Offset, r.Length = at.base, int64(len(at.text))
}

// shrink gives up the memory that one long segment took.
func (b *batch) shrink() {
	if cap(b.text) > 2*batchBytes {
		b.text, b.preimage, b.written = nil, nil, nil
	}
}

// decode works through the batch up to the first error. The strings of all its
// segments share one copy of the text.
func (b *batch) decode() {
	keep := string(b.text)
	c := cursor{depth: b.depth, claimed: b.names, path: slices.Clone(b.path)}
	for i := range b.count {
		r := &b.rooms[i]
		c.text, c.keep, c.pos, c.base = b.text[r.start:r.end], keep[r.start:r.end], 0, r.Offset
		c.room, c.found = r, &r.found
		r.Segment, r.found = Segment{}, deviations{}
		c.pushIndex(b.first + int64(i))
		if b.err = decodeRecord(&c, &r.Segment, segmentFields); b.err != nil {
			return
		}
		c.pop()
		b.digest(r)
		b.decoded++
	}
}

func (b *batch) digest(r *room) {
	b.preimage = AppendPreimage(b.preimage[:0], r.Seq, r.Prev, r.Kind)
	r.Digest = Sum(b.preimage)
	b.written = AppendSegment(b.written[:0], &r.Segment)
	r.Written = bytes.Equal(b.written, b.text[r.start:r.end])
}

// newStep is where a step is decoded to.
func (c *cursor) newStep() *StepExecuted {
	if c.room == nil {
		return new(StepExecuted)
	}
	list := c.room.step.RequestFingerprints
	if cap(list) > maxRoomStrings {
		list = nil
	}
	c.room.step = StepExecuted{RequestFingerprints: list[:0]}
	return &c.room.step
}

func readPrev(c *cursor, s *Segment) error {
	if c.room == nil {
		return c.optDigest(&s.Prev)
	}
	s.Prev = &c.room.prev
	return c.digest(s.Prev)
}

func readTime(c *cursor, s *Segment) error {
	if c.room == nil {
		return c.optU64(&s.EmittedAtMS)
	}
	s.EmittedAtMS = &c.room.atMS
	return c.u64(s.EmittedAtMS)
}

func readEntry(c *cursor, k *StepExecuted) error {
	if c.room == nil {
		return c.optStr(&k.EntryID)
	}
	k.EntryID = &c.room.entry
	return c.str(k.EntryID)
}
