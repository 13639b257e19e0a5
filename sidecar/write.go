package sidecar

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/chaind/chaind/segments"
)

// Evidence is an evidence bundle to be kept.
type Evidence struct {
	Place Place
	Class Class
	Head  segments.Digest // declared head of the bundle
	Body  Body            // the bundle's bytes
	// RunIDs are the run ids of the bundle's run seals. They get pointers when
	// the class is Heads.
	RunIDs []string
	// Exact replaces whatever else stands under the head: the caller knows
	// these to be the first bytes.
	Exact bool
}

// Outcome says what a write found.
type Outcome string

// The outcomes of writing evidence.
const (
	Stored   Outcome = "stored"   // the bytes are there, as they may have been before
	Kept     Outcome = "kept"     // another bundle with this head was first and stands
	Repaired Outcome = "repaired" // what stood there was damaged and was replaced
)

// Written says what stands under a head after a write.
type Written struct {
	Path    string
	Outcome Outcome
	Bytes   uint64          // length of what stands there
	SHA256  segments.Digest // of what stands there
	Signed  bool            // what stands there carries a signature
}

// Write keeps an evidence bundle and, for a conforming one, completes the
// pointers and the history of its run ids (package comment, "Writing"). All of
// it is durable when Write returns nil; after an error the same call completes
// what is missing.
func (s *Sidecars) Write(ctx context.Context, e Evidence) (Written, error) {
	if err := checkClass(e.Place, e.Class); err != nil {
		return Written{}, fmt.Errorf("write evidence: %w", err)
	}
	for _, id := range e.RunIDs {
		if err := checkRun(e.Place, id); err != nil {
			return Written{}, fmt.Errorf("write evidence: %w", err)
		}
	}
	w, err := s.writeHead(ctx, &e)
	if err != nil {
		return Written{}, fmt.Errorf("write evidence of head %s: %w", e.Head, err)
	}
	// A crash from here on leaves a head with no or some pointers: harmless for
	// readers, and the seal job, which is still there, comes here again.
	if e.Class != Heads {
		return w, nil
	}
	for _, id := range e.RunIDs {
		if err := s.point(ctx, e.Place, id, e.Head); err != nil {
			return Written{}, fmt.Errorf("write pointer of run %s: %w", id, err)
		}
	}
	return w, nil
}

func (s *Sidecars) writeHead(ctx context.Context, e *Evidence) (Written, error) {
	w := Written{Path: e.Place.EvidencePath(e.Class, e.Head), Outcome: Stored}
	err := s.blobs.PutOnce(ctx, w.Path, e.Body)
	_, conflict := errors.AsType[*ConflictError](err)
	if !conflict && !errors.Is(err, ErrNotRegular) {
		return s.describe(ctx, w, err)
	}
	if conflict && !e.Exact {
		err := s.verify(ctx, w.Path, e)
		if err == nil {
			w.Outcome = Kept
			return s.describe(ctx, w, nil)
		}
		if !errors.Is(err, errDamaged) {
			return Written{}, err
		}
	}
	w.Outcome = Repaired
	return s.describe(ctx, w, s.blobs.Put(ctx, w.Path, e.Body))
}

// describe reads back what stands under the name, so that what is reported is
// what readers will get.
func (s *Sidecars) describe(ctx context.Context, w Written, err error) (Written, error) {
	if err != nil {
		return Written{}, err
	}
	r, err := s.blobs.Open(ctx, w.Path)
	if err != nil {
		return Written{}, err
	}
	defer r.Close()
	h := sha256.New()
	count := &counter{w: h}
	env, _, err := segments.Read(io.TeeReader(r, count), func(*segments.Segment) error { return nil })
	if err != nil {
		return Written{}, fmt.Errorf("read back evidence: %w", err)
	}
	if _, err := io.Copy(count, r); err != nil {
		return Written{}, fmt.Errorf("read back evidence: %w", err)
	}
	w.Bytes, w.Signed = count.n, env.Signature != nil
	h.Sum(w.SHA256[:0])
	return w, nil
}

type counter struct {
	w io.Writer
	n uint64
}

func (c *counter) Write(b []byte) (int, error) {
	c.n += uint64(len(b))
	return c.w.Write(b)
}

// errDamaged: what stands under a head is no bundle with that head in that place.
var errDamaged = errors.New("damaged")

// verify decides whether what stands under a head can be the first bytes: a
// bundle written as section 4 has it (whitespace aside), whose links, head,
// place and signature, if it has one, are right. Only errDamaged says that it
// is not; other errors say that it could not be read.
func (s *Sidecars) verify(ctx context.Context, name string, e *Evidence) error {
	r, err := s.blobs.Open(ctx, name)
	if err != nil {
		return err
	}
	defer r.Close()
	src := &errorKeeper{r: r}
	var walk segments.Walk
	env, deviations, err := segments.Read(src, walk.Step)
	if src.err != nil {
		return fmt.Errorf("read blob %q: %w", name, src.err)
	}
	if err != nil || len(deviations) > 0 || !fits(env, walk.Head, e) {
		return errDamaged
	}
	if env.Signature != nil && segments.VerifySignature(env.Signature, &env.Scope, e.Head) != nil {
		return errDamaged
	}
	return nil
}

func fits(env *segments.Envelope, computed *segments.Digest, e *Evidence) bool {
	at := Place{Tenant: env.Scope.TenantID, PromptHash: env.Scope.PromptHash, Session: env.Scope.ExecuteSessionID}
	return env.Head != nil && *env.Head == e.Head && computed != nil && *computed == e.Head && at == e.Place
}

// errorKeeper remembers an error of reading, which a decoder may dress up as
// one of the text.
type errorKeeper struct {
	r   io.Reader
	err error
}

func (k *errorKeeper) Read(b []byte) (int, error) {
	n, err := k.r.Read(b)
	if err != nil && err != io.EOF {
		k.err = err
	}
	return n, err
}

// point completes history and pointer of a run id. The entry of the own head
// comes last: when it is there, the head has had the pointer, and a later head
// may rightly have it now. A crash before it repeats the step, with the same
// result.
func (s *Sidecars) point(ctx context.Context, p Place, runID string, head segments.Digest) error {
	old, err := s.readPointer(ctx, p.pointer(runID))
	if err != nil && !replaceable(err) {
		return err
	}
	pointed := err == nil
	entry := p.history(runID) + head.String()
	recorded, err := s.readPointer(ctx, entry)
	if err != nil && !replaceable(err) {
		return err
	}
	had := err == nil && recorded == head
	if pointed && old != head {
		// The reference, which keeps no history, may have set this pointer.
		if err := s.record(ctx, p.history(runID)+old.String(), old); err != nil {
			return err
		}
	}
	if !had || !pointed {
		if err := s.blobs.Put(ctx, p.pointer(runID), pointerBody(head)); err != nil {
			return err
		}
	}
	return s.record(ctx, entry, head)
}

// record writes a history entry unless it is there and right.
func (s *Sidecars) record(ctx context.Context, name string, head segments.Digest) error {
	have, err := s.readPointer(ctx, name)
	if err == nil && have == head {
		return nil
	}
	if err != nil && !replaceable(err) {
		return err
	}
	return s.blobs.Put(ctx, name, pointerBody(head))
}

// replaceable tells errors of reading that writing the blob anew cures.
func replaceable(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNotRegular) || errors.Is(err, ErrTooLarge)
}

func pointerBody(head segments.Digest) Body { return Bytes([]byte(head.String())) }

// Intact tells whether evidence stands as it was written: the blob of the head
// has the given digest, and for a conforming head each run id has a pointer and
// the head in its history. An error means that it could not be told.
func (s *Sidecars) Intact(ctx context.Context, e Evidence, sum segments.Digest) (bool, error) {
	if err := checkClass(e.Place, e.Class); err != nil {
		return false, fmt.Errorf("check evidence: %w", err)
	}
	ok, err := s.hasSum(ctx, e.Place.EvidencePath(e.Class, e.Head), sum)
	if err == nil && e.Class == Heads {
		for i := 0; ok && err == nil && i < len(e.RunIDs); i++ {
			ok, err = s.pointsTo(ctx, e.Place, e.RunIDs[i], e.Head)
		}
	}
	if err != nil {
		return false, fmt.Errorf("check evidence of head %s: %w", e.Head, err)
	}
	return ok, nil
}

func (s *Sidecars) hasSum(ctx context.Context, name string, sum segments.Digest) (bool, error) {
	r, err := s.blobs.Open(ctx, name)
	if err != nil {
		if replaceable(err) {
			err = nil
		}
		return false, err
	}
	defer r.Close()
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return false, err
	}
	return segments.Digest(h.Sum(nil)) == sum, nil
}

func (s *Sidecars) pointsTo(ctx context.Context, p Place, runID string, head segments.Digest) (bool, error) {
	if err := checkRun(p, runID); err != nil {
		return false, err
	}
	_, err := s.readPointer(ctx, p.pointer(runID))
	if err == nil {
		var recorded segments.Digest
		recorded, err = s.readPointer(ctx, p.history(runID)+head.String())
		if err == nil {
			return recorded == head, nil
		}
	}
	if replaceable(err) {
		return false, nil
	}
	return false, err
}
