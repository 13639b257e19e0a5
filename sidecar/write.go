package sidecar

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

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
	// Sealed is where in the stream of events the chain was sealed. Of several
	// heads of one run id the one sealed last has the pointer.
	Sealed Position
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
	// Standing is the envelope of the bundle that was first; nil unless Kept.
	Standing *segments.Envelope
}

// Write keeps an evidence bundle and, for a conforming one, completes the
// pointers and the history of its run ids (package comment, "Writing"). All of
// it is durable when Write returns nil; after an error the same call completes
// what is missing.
func (s *Sidecars) Write(ctx context.Context, e Evidence) (Written, error) {
	w, err := s.WriteHead(ctx, e)
	if err != nil {
		return Written{}, err
	}
	// A crash from here on leaves a head with no or some pointers: harmless for
	// readers, and the seal job, which is still there, comes here again.
	if err := s.Point(ctx, e); err != nil {
		return Written{}, err
	}
	return w, nil
}

// WriteHead is the first half of [Sidecars.Write]: the bundle under its head. The
// other half, [Sidecars.Point], must not begin before it has succeeded.
func (s *Sidecars) WriteHead(ctx context.Context, e Evidence) (Written, error) {
	if err := e.validate(); err != nil {
		return Written{}, fmt.Errorf("write evidence: %w", err)
	}
	w, err := s.writeHead(ctx, &e)
	if err != nil {
		return Written{}, fmt.Errorf("write evidence of head %s: %w", e.Head, err)
	}
	return w, nil
}

// Point is the second half of [Sidecars.Write]: pointers and histories of the run
// ids of a conforming bundle that [Sidecars.WriteHead] has written. For others it
// does nothing.
func (s *Sidecars) Point(ctx context.Context, e Evidence) error {
	if e.Class != Heads {
		return nil
	}
	for ids := range slices.Chunk(e.RunIDs, maxGroup) {
		some := e
		some.RunIDs = ids
		if err := s.pointSome(ctx, &some); err != nil {
			return fmt.Errorf("write pointers of run %s and %d more: %w", ids[0], len(ids)-1, err)
		}
	}
	return nil
}

func (s *Sidecars) pointSome(ctx context.Context, e *Evidence) error {
	defer s.locks.lock(e.pointers()...)()
	names, err := s.names(ctx, e)
	if err != nil {
		return err
	}
	return s.put(ctx, nil, names, nil)
}

func (e *Evidence) validate() error {
	if err := checkClass(e.Place, e.Class); err != nil {
		return err
	}
	for _, id := range e.RunIDs {
		if err := checkRun(e.Place, id); err != nil {
			return err
		}
	}
	return nil
}

// maxParallel bounds the writes of one bundle that wait for the disk at once.
const maxParallel = 8

// parallel calls do for 0 to n-1, several at a time, so that their fsyncs
// overlap, and waits for all.
func parallel(n int, do func(i int) error) error {
	errs := make([]error, n)
	running := make(chan struct{}, maxParallel)
	var wg sync.WaitGroup
	for i := range n {
		running <- struct{}{}
		wg.Go(func() {
			errs[i] = do(i)
			<-running
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (s *Sidecars) writeHead(ctx context.Context, e *Evidence) (Written, error) {
	w := Written{Path: e.Place.EvidencePath(e.Class, e.Head), Outcome: Stored}
	defer s.locks.lock(w.Path)()
	ours := measure{body: e.Body}
	err := s.blobs.PutOnce(ctx, w.Path, ours.write)
	_, conflict := errors.AsType[*ConflictError](err)
	switch {
	case conflict && !e.Exact:
		w.Standing, err = s.verify(ctx, w.Path, e)
		w.Outcome = Kept
	case conflict, errors.Is(err, ErrNotRegular):
		err = errDamaged
	}
	if errors.Is(err, errDamaged) {
		w.Outcome, w.Standing = Repaired, nil
		err = s.blobs.Put(ctx, w.Path, ours.write)
	}
	if err != nil {
		return Written{}, err
	}
	return s.describe(ctx, w, &ours)
}

// measure digests a body while it is written.
type measure struct {
	body Body
	n    uint64
	sum  segments.Digest
}

func (m *measure) write(w io.Writer) error {
	h := sha256.New()
	counted := &counter{w: io.MultiWriter(w, h)}
	if err := m.body(counted); err != nil {
		return err
	}
	m.n = counted.n
	h.Sum(m.sum[:0])
	return nil
}

type counter struct {
	w io.Writer
	n uint64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += uint64(n)
	return n, err
}

// describe tells what stands under the name: the bytes that were just written or,
// when another body was first, what reading that gives.
func (s *Sidecars) describe(ctx context.Context, w Written, ours *measure) (Written, error) {
	if w.Outcome != Kept {
		w.Bytes, w.SHA256 = ours.n, ours.sum
		return w, nil
	}
	r, err := s.blobs.Open(ctx, w.Path)
	if err != nil {
		return Written{}, fmt.Errorf("read back: %w", err)
	}
	defer r.Close()
	h := sha256.New()
	n, err := io.Copy(h, r)
	if err != nil {
		return Written{}, fmt.Errorf("read back: %w", err)
	}
	w.Bytes = uint64(n)
	h.Sum(w.SHA256[:0])
	return w, nil
}

// errDamaged: what stands under a head is no bundle with that head in that place.
var errDamaged = errors.New("damaged")

// verify decides whether what stands under a head can be the first bytes: a
// bundle written as section 4 has it (whitespace aside), whose links, head,
// place and signature, if it has one, are right. Only errDamaged says that it
// is not; other errors say that it could not be read.
func (s *Sidecars) verify(ctx context.Context, name string, e *Evidence) (*segments.Envelope, error) {
	r, err := s.blobs.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	src := &errorKeeper{r: r}
	var walk segments.Walk
	env, deviations, err := segments.Read(src, walk.Step)
	if src.err != nil {
		return nil, fmt.Errorf("read blob %q: %w", name, src.err)
	}
	if err != nil || len(deviations) > 0 || !fits(env, walk.Head, e) {
		return nil, errDamaged
	}
	if env.Signature != nil && segments.VerifySignature(env.Signature, &env.Scope, e.Head) != nil {
		return nil, errDamaged
	}
	return env, nil
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
			ok, err = s.pointsTo(ctx, &e, e.RunIDs[i])
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
