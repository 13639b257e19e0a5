package sealer

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/chaind/chaind/engine/run"
	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/store"
)

// Records is what packing a chain needs of the store; *store.Store is one.
type Records interface {
	Segments(key events.Key, from uint64, limit int) ([]store.SegmentRecord, error)
	Attempts(key events.Key, from uint64, limit int) ([]store.AttemptRecord, error)
	Preimages(key events.Key, from uint64, limit int) ([]store.PreimageRecord, error)
	Rejected(q store.RejectedQuery) (page []events.Rejection, next uint64, err error)
	Epochs() ([]store.Epoch, error)
}

// packing reads a chain from the store as it stood at one event: the one that
// ended it or, while it is open, the last one that its record knows of. What
// came later is left out.
type packing struct {
	ctx      context.Context
	store    Records
	key      events.Key
	state    *events.State
	at       run.Position // of that event
	rejected uint64       // highest rejection ID; 0: none

	first  run.Position
	sorted bool // the store has the rejected events in the order of their positions
}

// chain gives what the domain of runs packages about a chain of the store.
// signature is that of its evidence bundle; nil: there is none.
func (p *packing) chain(record *store.ChainRecord, signature *segments.Signature) (*run.Chain, error) {
	attempts, err := p.attempts()
	if err != nil {
		return nil, err
	}
	if err := p.begin(attempts); err != nil {
		return nil, err
	}
	intake, err := p.intake(record)
	if err != nil {
		return nil, err
	}
	facts := p.facts(signature, intake)
	if facts.Declared, err = p.declared(); err != nil {
		return nil, err
	}
	return &run.Chain{
		Facts: facts, Miscounted: p.state.Facts.Miscount,
		Segments: p.segments(), Attempts: each(attempts), Preimages: p.preimages(), Rejected: p.rejections(),
	}, nil
}

func newPacking(ctx context.Context, st Records, record *store.ChainRecord) *packing {
	p := &packing{
		ctx: ctx, store: st, key: record.Key, state: record.State,
		at: run.Position{Epoch: record.Epoch, StreamSeq: record.StreamSeq}, rejected: math.MaxUint64,
	}
	if f := record.Fixed; f != nil {
		p.state, p.rejected = f.State, f.RejectedUpTo
		p.at = run.Position{Epoch: f.Epoch, StreamSeq: f.StreamSeq}
	}
	return p
}

func (p *packing) facts(signature *segments.Signature, intake *run.Intake) run.Facts {
	s := p.state
	conformity, _ := s.Conformity()
	f := run.Facts{
		Name: p.key.Chain, Scope: s.BoundScope(), Unscoped: s.Scope == nil,
		Outcome: run.Outcome(s.Outcome), Reason: s.Reason, Conformity: run.Conformity(conformity),
		Count: s.Segments, Head: s.Head, Signature: signature, Intake: intake,
	}
	if s.Outcome != events.Open {
		// The state is that of the moment when the end had been applied.
		f.End = &run.Event{ID: s.LastEventID, ProducerSeq: s.LastSeq, Position: p.at}
	}
	if s.GivenHead != nil {
		f.Producer = &run.Producer{Head: *s.GivenHead, Segments: s.GivenSegments, Signature: s.GivenSignature}
	}
	return f
}

// declared says which count the producer declared last, and where: with the end,
// or with a seal before it, which is a segment. States of earlier versions do not
// know which one, and leave it to the domain of runs to find out.
func (p *packing) declared() (*run.Declared, error) {
	facts := &p.state.Facts
	if facts.Declared == nil {
		return nil, nil
	}
	d := &run.Declared{Count: *facts.Declared}
	switch {
	case facts.End.Counted:
		d.At = p.at
	case facts.DeclaredSegments > 0:
		page, err := p.store.Segments(p.key, facts.DeclaredSegments-1, 1)
		if err != nil {
			return nil, fmt.Errorf("read segments: %w", err)
		}
		if len(page) == 0 {
			return nil, fmt.Errorf("%w: segment %d is missing", ErrContradiction, facts.DeclaredSegments-1)
		}
		d.At = place(&page[0].Origin)
	}
	return d, nil
}

func (p *packing) intake(record *store.ChainRecord) (*run.Intake, error) {
	list, err := p.store.Epochs()
	if err != nil {
		return nil, fmt.Errorf("read epochs: %w", err)
	}
	at := slices.IndexFunc(list, func(e store.Epoch) bool { return e.Number == p.at.Epoch })
	if at < 0 {
		return nil, fmt.Errorf("%w: epoch %d is missing", ErrContradiction, p.at.Epoch)
	}
	var weak []string
	for _, w := range record.Weak {
		weak = append(weak, string(w))
	}
	return &run.Intake{
		Stream: list[at].Stream.Name, CreatedNS: list[at].Stream.CreatedNS, First: p.first, Last: p.at,
		Duplicates: p.state.Duplicates, Lost: join(record.Lost), Weak: weak,
	}, nil
}

// join orders ranges and puts those together that one loss left: how many
// records the store made of it depends on how the stream was read.
func join(lost []store.LostRange) []run.Lost {
	lost = slices.Clone(lost)
	slices.SortFunc(lost, func(a, b store.LostRange) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.From, b.From))
	})
	var out []run.Lost
	for _, l := range lost {
		if n := len(out); n > 0 && out[n-1].Epoch == l.Epoch && out[n-1].Why == l.Why && l.From <= out[n-1].To+1 {
			out[n-1].To = max(out[n-1].To, l.To)
			continue
		}
		out = append(out, run.Lost{Epoch: l.Epoch, From: l.From, To: l.To, Why: l.Why})
	}
	return out
}

// begin finds the chain's first event, accepted or rejected, and whether those that
// were rejected came in stream order.
func (p *packing) begin(attempts []run.Attempt) error {
	p.first = p.at
	if len(attempts) > 0 {
		p.first = earlier(p.first, attempts[0].Position)
	}
	page, err := p.store.Segments(p.key, 0, 1)
	if err != nil {
		return fmt.Errorf("read segments: %w", err)
	}
	if len(page) > 0 && p.state.Segments > 0 {
		p.first = earlier(p.first, place(&page[0].Origin))
	}
	var last run.Position
	p.sorted = true
	return p.eachRejection(func(r *events.Rejection) bool {
		at := run.Position{Epoch: r.Epoch, StreamSeq: r.StreamSeq}
		p.first = earlier(p.first, at)
		p.sorted = p.sorted && comparePositions(last, at) < 0
		last = at
		return true
	})
}

func earlier(a, b run.Position) run.Position {
	if comparePositions(b, a) < 0 {
		return b
	}
	return a
}

func comparePositions(a, b run.Position) int {
	return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.StreamSeq, b.StreamSeq))
}

func place(o *store.Origin) run.Position {
	return run.Position{Epoch: o.Epoch, StreamSeq: o.StreamSeq}
}

func origin(o *store.Origin) run.Event {
	return run.Event{ID: o.EventID, ProducerSeq: o.ProducerSeq, Position: place(o)}
}

func each[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, item := range list {
			if !yield(item, nil) {
				return
			}
		}
	}
}

// pages yields the records of a list that is read page by page. read returns
// the records from an ordinal on, none at the end.
func pages[R any](ctx context.Context, what string, read func(from uint64) ([]R, error)) iter.Seq2[*R, error] {
	return func(yield func(*R, error) bool) {
		for next := uint64(0); ; {
			page, err := read(next)
			if err = cmp.Or(ctx.Err(), err); err != nil {
				yield(nil, fmt.Errorf("read %s: %w", what, err))
				return
			}
			for i := range page {
				if !yield(&page[i], nil) {
					return
				}
			}
			if len(page) == 0 {
				return
			}
			next += uint64(len(page))
		}
	}
}

func (p *packing) segments() iter.Seq2[run.Segment, error] {
	return func(yield func(run.Segment, error) bool) {
		left := p.state.Segments
		for s, err := range pages(p.ctx, "segments", func(from uint64) ([]store.SegmentRecord, error) {
			return p.store.Segments(p.key, from, int(min(left, pageSegments)))
		}) {
			if left == 0 {
				return
			}
			left--
			if err != nil {
				yield(run.Segment{}, err)
				return
			}
			event := origin(&s.Origin)
			if !yield(run.Segment{Segment: s.Segment, Event: &event}, nil) {
				return
			}
		}
		if left > 0 {
			yield(run.Segment{}, fmt.Errorf("%w: %d segments are missing", ErrContradiction, left))
		}
	}
}

// attempts are in the order of their positions, which is not that of arrival
// when a daemon was moved from one stream to another and back.
func (p *packing) attempts() ([]run.Attempt, error) {
	var out []run.Attempt
	for a, err := range pages(p.ctx, "attempts", func(from uint64) ([]store.AttemptRecord, error) {
		return p.store.Attempts(p.key, from, pageSegments)
	}) {
		if err != nil {
			return nil, err
		}
		if p.state.Outcome == events.Open && comparePositions(place(&a.Origin), p.at) > 0 {
			break
		}
		out = append(out, run.Attempt{Event: origin(&a.Origin), Phase: string(a.Phase), StepID: a.StepID,
			StepIndex: a.StepIndex, Reason: a.Reason, AtMS: a.AtMS})
	}
	slices.SortStableFunc(out, func(a, b run.Attempt) int { return comparePositions(a.Position, b.Position) })
	return out, nil
}

func (p *packing) preimages() iter.Seq2[run.Preimage, error] {
	return func(yield func(run.Preimage, error) bool) {
		for r, err := range pages(p.ctx, "preimages", func(from uint64) ([]store.PreimageRecord, error) {
			return p.store.Preimages(p.key, from, 0)
		}) {
			if err != nil {
				yield(run.Preimage{}, err)
				return
			}
			if r.Seq == nil || *r.Seq >= p.state.Segments {
				continue // of an event that brought no segment, or came later
			}
			if !yield(run.Preimage{Seq: *r.Seq, Text: r.Preimage.Text, Plan: r.Preimage.Comp,
				Parsed: r.Preimage.Parsed, Artifact: r.Preimage.Artifact}, nil) {
				return
			}
		}
	}
}

// rejections yields the rejected events in stream order. The store has them in the
// order of arrival, which is another one when a stream was left and gone back to, or
// when a sequence was delivered that had been given up: then they are collected.
func (p *packing) rejections() iter.Seq2[run.Rejected, error] {
	return func(yield func(run.Rejected, error) bool) {
		var all []run.Rejected
		if err := p.eachRejection(func(r *events.Rejection) bool {
			if p.sorted {
				return yield(describe(r), nil)
			}
			all = append(all, describe(r))
			return true
		}); err != nil {
			yield(run.Rejected{}, err)
			return
		}
		slices.SortStableFunc(all, func(a, b run.Rejected) int { return comparePositions(a.Position, b.Position) })
		for i := range all {
			if !yield(all[i], nil) {
				return
			}
		}
	}
}

// describe gives the producer's number for an event whose id can be read only: it
// does not count for another.
func describe(r *events.Rejection) run.Rejected {
	out := run.Rejected{
		Event: run.Event{ID: r.EventID, Position: run.Position{Epoch: r.Epoch, StreamSeq: r.StreamSeq}},
		Class: string(r.Class), Detail: r.Detail, Sum: r.Sum, Existing: r.Existing,
	}
	if r.EventID != "" {
		out.ProducerSeq = r.ProducerSeq
	}
	return out
}

// eachRejection visits the chain's rejected events until visit returns false.
func (p *packing) eachRejection(visit func(*events.Rejection) bool) error {
	if p.rejected == 0 || p.state.Rejected == 0 {
		return nil
	}
	q := store.RejectedQuery{Key: &p.key, UpTo: p.rejected, Limit: pageRejected}
	for {
		page, next, err := p.store.Rejected(q)
		if err = cmp.Or(p.ctx.Err(), err); err != nil {
			return fmt.Errorf("read rejected events: %w", err)
		}
		for i := range page {
			if p.beyond(&page[i]) {
				return nil
			}
			if !visit(&page[i]) {
				return nil
			}
		}
		if next == 0 {
			return nil
		}
		q.After = next
	}
}

// beyond: the event was rejected after the open chain's record was read.
func (p *packing) beyond(r *events.Rejection) bool {
	return p.state.Outcome == events.Open && comparePositions(run.Position{Epoch: r.Epoch, StreamSeq: r.StreamSeq}, p.at) > 0
}
