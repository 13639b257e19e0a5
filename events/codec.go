package events

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/chaind/chaind/segments"
)

// StateVersion is the first byte of an encoded state. A later layout gets
// another number; a reader knows the earlier ones and refuses others.
const StateVersion = 2

// ErrBadState is wrapped by every error of [State.UnmarshalBinary].
var ErrBadState = errors.New("bad chain state")

// AppendBinary appends the state, as the package documentation lays it out.
// Equal states give equal bytes. The error is always nil.
func (s *State) AppendBinary(dst []byte) ([]byte, error) {
	w := writer{append(dst, StateVersion)}
	w.text(s.Key.Tenant, s.Key.PromptHash, s.Key.Session, s.Key.Chain)
	w.scope(s.Scope)
	w.text(string(s.Outcome), s.Reason)
	w.number(s.Segments)
	w.digest(s.Head)
	w.tallies(s.Steps)
	w.number(s.UntoldSteps.Begun, s.UntoldSteps.Ended, s.UntoldSteps.Failed)
	w.list(s.RunIDs)
	w.number(s.UntoldRuns)
	w.optionalText(s.Anchors.PlanCommitRef)
	w.optionalText(s.Anchors.TraceID)
	w.optional(s.Anchors.PlanCallIndex)
	w.number(s.Seals, s.Duplicates, s.Late, s.Rejected)
	w.order(&s.Order)
	w.facts(&s.Facts)
	w.text(string(s.ProducerHead), string(s.ProducerSignature))
	w.digest(s.GivenHead)
	w.signature(s.GivenSignature)
	w.number(s.GivenSegments)
	w.number(s.FirstStreamSeq, s.LastStreamSeq, s.EndStreamSeq, s.LastAtMS)
	w.text(s.LastEventID)
	w.optional(s.LastSeq)
	return w.b, nil
}

// UnmarshalBinary replaces the state by an encoded one, of which nothing is
// aliased. On error, which wraps [ErrBadState], the state is unchanged.
func (s *State) UnmarshalBinary(b []byte) error {
	if len(b) == 0 || b[0] == 0 || b[0] > StateVersion {
		return fmt.Errorf("%w: unknown version", ErrBadState)
	}
	r := reader{b: b[1:], version: b[0]}
	n := State{Key: Key{r.text(), r.text(), r.text(), r.text()}}
	n.Scope = r.scope()
	n.Outcome, n.Reason = Outcome(r.text()), r.text()
	n.Segments, n.Head = r.number(), r.digest()
	n.Steps = r.tallies()
	n.UntoldSteps = StepTally{Begun: r.number(), Ended: r.number(), Failed: r.number()}
	n.RunIDs, n.UntoldRuns = r.list(), r.number()
	n.Anchors = segments.Anchors{PlanCommitRef: r.optionalText(), TraceID: r.optionalText(), PlanCallIndex: r.optional()}
	n.Seals, n.Duplicates, n.Late, n.Rejected = r.number(), r.number(), r.number(), r.number()
	n.Order = r.order(len(n.Steps))
	n.Facts = r.facts()
	n.ProducerHead, n.ProducerSignature = Agreement(r.text()), Agreement(r.text())
	n.GivenHead, n.GivenSignature, n.GivenSegments = r.digest(), r.signature(), r.number()
	n.FirstStreamSeq, n.LastStreamSeq, n.EndStreamSeq, n.LastAtMS = r.number(), r.number(), r.number(), r.number()
	n.LastEventID, n.LastSeq = r.text(), r.optional()
	if r.bad || len(r.b) != 0 {
		return fmt.Errorf("%w: truncated, overlong or out of range", ErrBadState)
	}
	if r.version == 1 {
		n.infer()
	}
	*s = n
	return nil
}

// infer fills in what a state of version 1 does not tell, as far as the rest of
// it shows, in doubt against completeness.
func (s *State) infer() {
	s.Order.Intended = s.Order.Rank == rankIntent && !s.Order.Misplaced && len(s.Steps) == 0
	s.Facts.Unnumbered = s.Facts.Numbers.Count() < s.Facts.IDs || s.repeats()
	if s.Outcome == Open {
		return
	}
	s.Facts.End = Closing{
		Counted: s.Facts.Declared != nil && (s.Seals == 1 || s.countedLast()),
		Headed:  s.GivenHead != nil && s.GivenSegments == s.Segments && (s.Order.Rank < rankSeal || s.Seals == 1),
	}
}

// countedLast says that the count can only have come with the last of several
// seals: it was right at its seal, and no new id came since. An end that repeats
// the id of a rejected event is no new id.
func (s *State) countedLast() bool {
	return !s.Facts.Miscount && *s.Facts.Declared == s.Facts.IDs && s.Rejected == 0
}

// repeats says that rejected events may have repeated ids that others have, so
// that as many numbers as ids do not show that every event had one.
func (s *State) repeats() bool {
	taken := s.Segments + s.attempts()
	if s.Outcome != Open && (s.Order.Rank < rankSeal || s.Seals > 1) { // the end is no segment, or may be none
		taken++
	}
	return s.Rejected > 0 && s.Rejected+taken > s.Facts.IDs
}

// DecodeState is [State.UnmarshalBinary] into a fresh state.
func DecodeState(b []byte) (*State, error) {
	s := &State{}
	if err := s.UnmarshalBinary(b); err != nil {
		return nil, err
	}
	return s, nil
}

// writer appends the pieces of the layout: numbers as unsigned varints, texts
// with their length before them, flags and presence as one byte.
type writer struct{ b []byte }

func (w *writer) number(ns ...uint64) {
	for _, n := range ns {
		w.b = binary.AppendUvarint(w.b, n)
	}
}

func (w *writer) text(list ...string) {
	for _, s := range list {
		w.number(uint64(len(s)))
		w.b = append(w.b, s...)
	}
}

func (w *writer) list(list []string) {
	w.number(uint64(len(list)))
	w.text(list...)
}

func (w *writer) flag(f bool) bool {
	if f {
		w.b = append(w.b, 1)
	} else {
		w.b = append(w.b, 0)
	}
	return f
}

func (w *writer) optional(n *uint64) {
	if w.flag(n != nil) {
		w.number(*n)
	}
}

func (w *writer) optionalText(s *string) {
	if w.flag(s != nil) {
		w.text(*s)
	}
}

func (w *writer) digest(d *segments.Digest) {
	if w.flag(d != nil) {
		w.b = append(w.b, d[:]...)
	}
}

func (w *writer) signature(s *segments.Signature) {
	if w.flag(s != nil) {
		w.text(s.PublicKeyHex, s.SignatureHex)
	}
}

func (w *writer) scope(s *segments.Scope) {
	if !w.flag(s != nil) {
		return
	}
	w.number(uint64(s.SchemaVersion), uint64(s.DomainRevision))
	w.text(s.TenantID, s.PromptHash, s.ExecuteSessionID, s.CatalogCGSHash, s.EntryID)
	w.optionalText(s.LogicalSessionID)
}

func (w *writer) tallies(list []StepTally) {
	w.number(uint64(len(list)))
	for i := range list {
		w.text(list[i].StepID)
		w.number(list[i].Begun, list[i].Ended, list[i].Failed)
	}
}

func (w *writer) order(o *Order) {
	w.number(uint64(o.Rank))
	for _, f := range [...]bool{o.Misplaced, o.Planned, o.Same, o.Forgotten, o.First.Broken, o.Last.Broken, o.Intended} {
		w.flag(f)
	}
	w.list(o.First.Rest)
	w.list(o.Last.Rest)
	w.number(uint64(len(o.Executed)))
	for _, at := range o.Executed {
		w.number(uint64(at))
	}
}

func (w *writer) facts(f *Facts) {
	w.number(f.IDs, uint64(len(f.Numbers.Runs)))
	for _, run := range f.Numbers.Runs {
		w.number(run.From, run.To)
	}
	w.flag(f.Numbers.Overflow)
	w.optional(f.Declared)
	w.flag(f.Miscount)
	w.number(f.DeclaredSegments)
	for _, flag := range [...]bool{f.Unnumbered, f.End.Counted, f.End.Headed} {
		w.flag(flag)
	}
}

// reader takes the pieces off again. The first that does not fit sets bad,
// after which everything reads as zero; counts are held against the bytes
// left before anything is made.
type reader struct {
	b       []byte
	version byte
	bad     bool
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 || r.bad || size > 1 && r.b[size-1] == 0 {
		r.fail()
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *reader) fail() { r.b, r.bad = nil, true }

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) text() string { return string(r.bytes(r.number())) }

func (r *reader) count() int {
	n := r.number()
	if n > uint64(len(r.b)) {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *reader) list() []string {
	n := r.count()
	if n == 0 {
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = r.text()
	}
	return list
}

func (r *reader) flag() bool {
	b := r.bytes(1)
	if b == nil {
		return false
	}
	if b[0] > 1 {
		r.fail()
		return false
	}
	return b[0] == 1
}

func (r *reader) optional() *uint64 {
	if !r.flag() {
		return nil
	}
	return pointer(r.number())
}

func (r *reader) optionalText() *string {
	if !r.flag() {
		return nil
	}
	return pointer(r.text())
}

func (r *reader) digest() *segments.Digest {
	if !r.flag() {
		return nil
	}
	b := r.bytes(uint64(len(segments.Digest{})))
	if b == nil {
		return nil
	}
	return pointer(segments.Digest(b))
}

func (r *reader) signature() *segments.Signature {
	if !r.flag() {
		return nil
	}
	return &segments.Signature{PublicKeyHex: r.text(), SignatureHex: r.text()}
}

func (r *reader) u32() uint32 {
	n := r.number()
	if n > 1<<32-1 {
		r.fail()
	}
	return uint32(n)
}

func (r *reader) scope() *segments.Scope {
	if !r.flag() {
		return nil
	}
	s := &segments.Scope{SchemaVersion: r.u32(), DomainRevision: r.u32()}
	s.TenantID, s.PromptHash, s.ExecuteSessionID = r.text(), r.text(), r.text()
	s.CatalogCGSHash, s.EntryID, s.LogicalSessionID = r.text(), r.text(), r.optionalText()
	return s
}

func (r *reader) tallies() []StepTally {
	n := r.count()
	if n == 0 {
		return nil
	}
	list := make([]StepTally, n)
	for i := range list {
		list[i] = StepTally{r.text(), r.number(), r.number(), r.number()}
	}
	return list
}

func (r *reader) order(steps int) Order {
	rank := r.u32()
	if rank > rankSeal {
		r.fail()
	}
	o := Order{Rank: uint8(rank)}
	for _, f := range [...]*bool{&o.Misplaced, &o.Planned, &o.Same, &o.Forgotten, &o.First.Broken, &o.Last.Broken} {
		*f = r.flag()
	}
	o.Intended = r.version > 1 && r.flag()
	o.First.Rest, o.Last.Rest = r.list(), r.list()
	for n := r.count(); n > 0 && !r.bad; n-- {
		at := r.u32()
		if uint64(at) >= uint64(steps) {
			r.fail()
		}
		o.Executed = append(o.Executed, at)
	}
	return o
}

func (r *reader) facts() Facts {
	f := Facts{IDs: r.number()}
	for n := r.count(); n > 0 && !r.bad; n-- {
		f.Numbers.Runs = append(f.Numbers.Runs, Interval{r.number(), r.number()})
	}
	f.Numbers.Overflow = r.flag()
	f.Declared, f.Miscount = r.optional(), r.flag()
	if r.version > 1 {
		f.DeclaredSegments = r.number()
		f.Unnumbered = r.flag()
		f.End = Closing{Counted: r.flag(), Headed: r.flag()}
	}
	return f
}
