package segments

import "fmt"

// Builder appends kinds to a chain. The zero value starts a chain; setting
// both fields goes on with one.
type Builder struct {
	Next uint64  // seq of the next segment
	Head *Digest // digest of the last segment; nil: none yet
}

// Append makes the next segment: numbered, linked to the head, digested. The
// segment shares k, atMS and the old head with the caller; none is written to.
func (b *Builder) Append(k Kind, atMS *uint64) Segment {
	s := Segment{Seq: b.Next, Prev: b.Head, Kind: k, EmittedAtMS: atMS}
	head := s.Digest()
	b.Next, b.Head = b.Next+1, &head
	return s
}

// Walk checks the links of a chain segment by segment (Plasm evidence format,
// section 8). The zero value stands before the first segment. Memory does not
// grow with the chain.
type Walk struct {
	Count uint64  // segments that passed
	Head  *Digest // computed digest of the last one; nil: none

	buf []byte // preimage, reused: a Walk and its copies belong to one goroutine
}

// Step checks that s links to the segment before it and makes its digest the
// head. A wrong link is a *[BrokenPrevError] and changes nothing.
func (w *Walk) Step(s *Segment) error {
	if err := w.Follows(s); err != nil {
		return err
	}
	w.Skip(s)
	return nil
}

// Follows is the check of [Walk.Step] alone.
func (w *Walk) Follows(s *Segment) error {
	if !sameDigest(s.Prev, w.Head) {
		return &BrokenPrevError{Seq: s.Seq, Index: w.Count}
	}
	return nil
}

// Skip takes s as the next segment whatever its link says, so that a caller
// who has noted the broken link can go on from here.
func (w *Walk) Skip(s *Segment) {
	w.buf = AppendPreimage(w.buf[:0], s.Seq, s.Prev, s.Kind)
	w.Add(Sum(w.buf))
}

// Add takes a segment with that digest as the next one, like [Walk.Skip].
func (w *Walk) Add(digest Digest) { w.Count, w.Head = w.Count+1, &digest }

func sameDigest(a, b *Digest) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// BrokenPrevError says that a segment's prev is not the digest of the segment
// before it (absent for the first).
type BrokenPrevError struct {
	Seq   uint64 // the stored seq
	Index uint64 // position in the array
}

func (e *BrokenPrevError) Error() string {
	return fmt.Sprintf("link to the previous segment is broken at index %d (seq %d)", e.Index, e.Seq)
}
