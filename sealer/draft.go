package sealer

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"

	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
)

// draft is a bundle that has passed the checks.
type draft struct {
	*plan
	runIDs []string // distinct, in order
	sum    segments.Digest
	size   uint64
	body   sidecar.Body
}

// draft makes the bundle and checks the bytes as they are made.
func (s *Sealer) draft(ctx context.Context, p *plan) (*draft, error) {
	pr, pw := io.Pipe()
	tape := &tape{hash: sha256.New()}
	ended := make(chan error, 1)
	go func() {
		err := s.generate(ctx, p, io.MultiWriter(tape, pw))
		pw.CloseWithError(err)
		ended <- err
	}()
	check := &check{plan: p}
	checkErr := check.bundle(pr)
	// Whatever the reader ended with, the writer must not wait for it.
	pr.CloseWithError(checkErr)
	if err := <-ended; err != nil && checkErr == nil {
		return nil, err
	}
	if checkErr != nil {
		return nil, checkErr
	}
	d := &draft{plan: p, runIDs: check.runIDs, size: tape.size}
	tape.hash.Sum(d.sum[:0])
	d.body = sidecar.Bytes(tape.kept)
	if tape.size > maxKept {
		d.body = s.again(ctx, d)
	}
	return d, nil
}

// generate writes the bundle, segments page by page.
func (s *Sealer) generate(ctx context.Context, p *plan, w io.Writer) error {
	bundle := segments.NewBundleWriter(w, &p.scope)
	for next := uint64(0); next < p.count; {
		if err := ctx.Err(); err != nil {
			return err
		}
		page, err := s.cfg.Store.Segments(p.key, next, pageSegments)
		if err != nil {
			return fmt.Errorf("read segments: %w", err)
		}
		if len(page) == 0 {
			return fmt.Errorf("%w: %d of %d segments are there", ErrContradiction, next, p.count)
		}
		for i := range page {
			if err := bundle.Write(&page[i].Segment); err != nil {
				return err
			}
		}
		next += uint64(len(page))
	}
	return bundle.Close(&p.head, p.anchors, p.signature)
}

// again generates a bundle that is too large to be kept once more for each
// writing, and fails the writing when the bytes are not those that were checked.
func (s *Sealer) again(ctx context.Context, d *draft) sidecar.Body {
	return func(w io.Writer) error {
		h := sha256.New()
		if err := s.generate(ctx, d.plan, io.MultiWriter(w, h)); err != nil {
			return err
		}
		if segments.Digest(h.Sum(nil)) != d.sum {
			return fmt.Errorf("%w: bundle came out differently the second time", ErrContradiction)
		}
		return nil
	}
}

func (d *draft) evidence(exact bool) sidecar.Evidence {
	return sidecar.Evidence{
		Place: d.place, Class: d.class, Head: d.head, Body: d.body,
		RunIDs: d.runIDs, Sealed: d.sealed, Exact: exact,
	}
}

// result describes what stands under the head.
func (d *draft) result(w sidecar.Written) store.SealResult {
	signed := d.signature != nil
	if w.Standing != nil {
		signed = w.Standing.Signature != nil
	}
	return store.SealResult{
		Class: string(d.class), Head: &d.head, Path: w.Path, Bytes: w.Bytes, SHA256: w.SHA256, Signed: signed,
	}
}

// tape digests what passes and keeps it up to maxKept bytes.
type tape struct {
	hash hash.Hash
	size uint64
	kept []byte
}

func (t *tape) Write(b []byte) (int, error) {
	t.size += uint64(len(b))
	t.hash.Write(b)
	if t.size > maxKept {
		t.kept = nil
	} else {
		t.kept = append(t.kept, b...)
	}
	return len(b), nil
}
