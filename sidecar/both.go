package sidecar

import (
	"context"
	"errors"
	"fmt"
)

// Blob is a blob to be put.
type Blob struct {
	Name string
	Body Body
	Once bool // as PutOnce does, else as Put
}

// grouped is what a back end offers that puts many blobs for little more than one:
// all of first in order, then all of then. None has its new bytes before meanwhile,
// unless it is nil, has returned nil; its error is in that of the group. None of then
// has its new bytes before all of first are durable, and a [*ConflictError] or [ErrNotRegular] of one of
// first leaves those that follow as they were. No name is given twice.
type grouped interface {
	PutGroup(ctx context.Context, first, then []Blob, meanwhile func() error) error
}

var _ grouped = (*Dir)(nil)

// put is what grouped says, for every back end.
func (s *Sidecars) put(ctx context.Context, first, then []Blob, meanwhile func() error) error {
	if g, ok := s.blobs.(grouped); ok {
		return g.PutGroup(ctx, first, then, meanwhile)
	}
	if meanwhile != nil {
		if err := meanwhile(); err != nil {
			return err
		}
	}
	for i := range first {
		if err := s.putOne(ctx, &first[i]); err != nil {
			return err
		}
	}
	return parallel(len(then), func(i int) error { return s.putOne(ctx, &then[i]) })
}

func (s *Sidecars) putOne(ctx context.Context, b *Blob) error {
	if b.Once {
		return s.blobs.PutOnce(ctx, b.Name, b.Body)
	}
	return s.blobs.Put(ctx, b.Name, b.Body)
}

// maxGroup bounds the run ids whose names are written as one group, which has its
// files open.
const maxGroup = 64

// ErrApart is returned by [Sidecars.WriteBoth] when the two have to be written one
// after the other.
var ErrApart = errors.New("evidence and trust bundle cannot be written at once")

// WriteBoth is [Sidecars.Write] and [Sidecars.WriteBundle] for evidence and the
// trust bundle made over it, in the time of one of them. The files of head and
// root are durable before anything points to them. judge, unless it is nil, runs while
// the bytes are on their way to the disk; after its error, which is in that of
// WriteBoth, nothing has been written.
//
// When something else stands under the head or the root already, or there are too
// many run ids, the error wraps [ErrApart] and nothing points to what may have been
// written of the evidence: what stands decides what the trust bundle has to say, and
// the caller asks for it by Write. The outcome of both is Stored otherwise.
func (s *Sidecars) WriteBoth(ctx context.Context, e Evidence, b Bundle, judge func() error) (evidence, bundle Written, err error) {
	if err := errors.Join(e.validate(), b.validate()); err != nil {
		return Written{}, Written{}, fmt.Errorf("write evidence and bundle: %w", err)
	}
	if len(e.RunIDs) > maxGroup {
		return Written{}, Written{}, ErrApart
	}
	evidence = Written{Path: e.Place.EvidencePath(e.Class, e.Head), Outcome: Stored}
	bundle = Written{Path: BundlePath(b.Root), Outcome: Stored}
	ours, packed := measure{body: e.Body}, measure{body: b.Body}
	defer s.locks.lock(append(e.pointers(), evidence.Path)...)()
	then, err := s.names(ctx, &e)
	if err == nil {
		// A crash between the two of first leaves the evidence alone: the job, which
		// is still there, comes here again with the same bytes, or, if the key has
		// changed, finds the evidence and makes the bundle that goes with it. Where a
		// file system does not keep the order of names, a power cut can leave the
		// bundle alone, with nothing that points to it.
		err = s.put(ctx, []Blob{{evidence.Path, ours.write, true}, {bundle.Path, packed.write, true}}, append(then, b.names()...), judge)
	}
	if _, conflict := errors.AsType[*ConflictError](err); conflict || errors.Is(err, ErrNotRegular) {
		return Written{}, Written{}, fmt.Errorf("%w: %w", ErrApart, err)
	}
	if err != nil {
		return Written{}, Written{}, fmt.Errorf("write evidence of head %s and bundle of root %s: %w", e.Head, b.Root, err)
	}
	evidence.Bytes, evidence.SHA256 = ours.n, ours.sum
	bundle.Bytes, bundle.SHA256 = packed.n, packed.sum
	return evidence, bundle, nil
}
