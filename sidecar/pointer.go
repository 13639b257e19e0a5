package sidecar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/chaind/chaind/segments"
)

// Position is where in the stream of events a chain was sealed. The zero
// Position comes before all others; it stands for heads that we did not seal.
type Position struct {
	Epoch     uint32 // epoch of the stream, as the store counts them
	StreamSeq uint64 // of the seal event
}

func (p Position) compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Epoch, q.Epoch), cmp.Compare(p.StreamSeq, q.StreamSeq))
}

// RunHead is one head that a run id has had.
type RunHead struct {
	Head   segments.Digest
	Sealed Position // last time that it was sealed
}

func (a RunHead) compare(b RunHead) int {
	return cmp.Or(a.Sealed.compare(b.Sealed), slices.Compare(a.Head[:], b.Head[:]))
}

// pointers are the names of the pointers that the evidence has to have.
func (e *Evidence) pointers() []string {
	if e.Class != Heads {
		return nil
	}
	names := make([]string, len(e.RunIDs), len(e.RunIDs)+1)
	for i, id := range e.RunIDs {
		names[i] = e.Place.pointer(id)
	}
	return names
}

// names are the blobs that lead from the run ids to the head. The caller holds the
// locks of the pointers until it has put them.
func (s *Sidecars) names(ctx context.Context, e *Evidence) ([]Blob, error) {
	if e.Class != Heads {
		return nil, nil
	}
	blobs := make([]Blob, 0, 2*len(e.RunIDs)+2)
	for _, id := range e.RunIDs {
		entry, pointer, err := s.point(ctx, e, id)
		if err != nil {
			return nil, fmt.Errorf("read pointer of run %s: %w", id, err)
		}
		blobs = append(blobs, entry, pointer)
	}
	return blobs, nil
}

// point enters the head into the history of a run id and gives it the pointer
// unless a head that was sealed later has it. A crash that leaves one of the two
// out, or a failed call, is made good by the same call: each blob is written anew
// even if it reads right, since it may never have reached the disk.
func (s *Sidecars) point(ctx context.Context, e *Evidence, runID string) (entry, pointer Blob, err error) {
	history := e.Place.history(runID)
	ours := RunHead{Head: e.Head, Sealed: e.Sealed}
	have, err := s.readEntry(ctx, history, e.Head)
	if err == nil && have.compare(ours) > 0 {
		ours = have
	}
	if err != nil && !replaceable(err) {
		return Blob{}, Blob{}, err
	}
	last, err := s.lastHead(ctx, e.Place, runID, err == nil)
	if err != nil {
		return Blob{}, Blob{}, err
	}
	if last.compare(ours) < 0 {
		last = ours
	}
	return Blob{Name: history + e.Head.String(), Body: entryBody(ours.Sealed)},
		Blob{Name: e.Place.pointer(runID), Body: Bytes([]byte(last.Head.String()))}, nil
}

// lastHead is the head that the pointer names, or the last one of the history
// when the pointer is damaged, or missing although the head to be written is
// known: a run id without either is a new one, and looking for its history would
// cost a listing, which grows with the store in some back ends. A head that is not in the history was
// pointed to by the reference, which keeps none: it is entered, if its file is
// there, before it loses the pointer.
func (s *Sidecars) lastHead(ctx context.Context, p Place, runID string, known bool) (RunHead, error) {
	history := p.history(runID)
	head, err := s.readPointer(ctx, p.pointer(runID))
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errMalformed) && !known {
		return RunHead{}, nil
	}
	if replaceable(err) {
		list, err := s.readHistory(ctx, history)
		if err != nil || len(list) == 0 {
			return RunHead{}, err
		}
		return slices.MaxFunc(list, RunHead.compare), nil
	}
	if err != nil {
		return RunHead{}, err
	}
	last, err := s.readEntry(ctx, history, head)
	if !replaceable(err) {
		return last, err
	}
	r, err := s.blobs.Open(ctx, p.EvidencePath(Heads, head))
	if replaceable(err) {
		return RunHead{}, nil // a pointer to nothing
	}
	if err != nil {
		return RunHead{}, err
	}
	if err := r.Close(); err != nil {
		return RunHead{}, err
	}
	return RunHead{Head: head}, s.blobs.Put(ctx, history+head.String(), entryBody(Position{}))
}

// RunHeads lists the heads that a run id has had here in the order in which
// they were last sealed; the last one is the one that the pointer names, unless
// somebody else set the pointer. It is empty for an unknown run id.
func (s *Sidecars) RunHeads(ctx context.Context, p Place, runID string) ([]RunHead, error) {
	if err := checkRun(p, runID); err != nil {
		return nil, fmt.Errorf("list heads: %w", err)
	}
	list, err := s.readHistory(ctx, p.history(runID))
	if err != nil {
		return nil, fmt.Errorf("list heads of run %s: %w", runID, err)
	}
	head, err := s.readPointer(ctx, p.pointer(runID))
	if err == nil && !slices.ContainsFunc(list, func(h RunHead) bool { return h.Head == head }) {
		list = append(list, RunHead{Head: head})
	}
	slices.SortFunc(list, RunHead.compare)
	return list, nil
}

func (s *Sidecars) readHistory(ctx context.Context, history string) (list []RunHead, err error) {
	var heads []segments.Digest
	err = s.blobs.List(ctx, history, func(name string) error {
		if head, err := segments.ParseDigest(strings.TrimPrefix(name, history)); err == nil {
			heads = append(heads, head)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, head := range heads {
		h, err := s.readEntry(ctx, history, head)
		if err != nil && !replaceable(err) {
			return nil, err
		}
		h.Head = head // a damaged entry still says that there was this head
		list = append(list, h)
	}
	return list, nil
}

// pointsTo tells whether the head is in the history of the run id, and the
// pointer names it or one that was sealed later.
func (s *Sidecars) pointsTo(ctx context.Context, e *Evidence, runID string) (bool, error) {
	if err := checkRun(e.Place, runID); err != nil {
		return false, err
	}
	history := e.Place.history(runID)
	head, err := s.readPointer(ctx, e.Place.pointer(runID))
	var ours, pointed RunHead
	if err == nil {
		ours, err = s.readEntry(ctx, history, e.Head)
	}
	if err == nil {
		pointed, err = s.readEntry(ctx, history, head)
	}
	if replaceable(err) {
		return false, nil
	}
	return err == nil && ours.compare(pointed) <= 0, err
}

// readEntry reads the history entry of a head. Text that is no entry counts as
// one that does not exist.
func (s *Sidecars) readEntry(ctx context.Context, history string, head segments.Digest) (RunHead, error) {
	b, err := read(ctx, s.blobs, history+head.String(), maxPointer)
	if err != nil {
		return RunHead{}, err
	}
	epoch, seq, _ := strings.Cut(strings.TrimSuffix(string(b), "\n"), " ")
	e, errEpoch := strconv.ParseUint(epoch, 10, 32)
	q, errSeq := strconv.ParseUint(seq, 10, 64)
	if errEpoch != nil || errSeq != nil {
		return RunHead{}, fmt.Errorf("history entry is malformed: %w", fs.ErrNotExist)
	}
	return RunHead{Head: head, Sealed: Position{Epoch: uint32(e), StreamSeq: q}}, nil
}

func entryBody(p Position) Body {
	return Bytes(fmt.Appendf(nil, "%d %d\n", p.Epoch, p.StreamSeq))
}

// readPointer reads a pointer, trimmed as the reference does. Text that is no
// head counts as a pointer that does not exist.
func (s *Sidecars) readPointer(ctx context.Context, name string) (segments.Digest, error) {
	b, err := read(ctx, s.blobs, name, maxPointer)
	if err != nil {
		return segments.Digest{}, err
	}
	head, err := segments.ParseDigest(strings.TrimSpace(string(b)))
	if err != nil {
		return segments.Digest{}, errMalformed
	}
	return head, nil
}

// errMalformed: what stands in the place of a pointer is none, so that there is
// no pointer.
var errMalformed = fmt.Errorf("pointer is malformed: %w", fs.ErrNotExist)

// replaceable tells errors of reading that writing the blob anew cures.
func replaceable(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNotRegular) || errors.Is(err, ErrTooLarge)
}
