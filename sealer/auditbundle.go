package sealer

import (
	"bufio"
	"context"
	"fmt"

	"github.com/chaind/chaind/engine/run"
	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
)

// auditBundle is auditEvidence for the trust bundle. It comes second: the bundle
// is made over the evidence that stands.
func (s *Sealer) auditBundle(ctx context.Context, c *store.ChainSummary) (sidecar.Outcome, error) {
	known := sidecar.Bundle{Place: placeOf(c.Key), Chain: c.Key.Chain, Root: c.Sealed.BundleRoot}
	intact, err := s.cfg.Sidecars.IntactBundle(ctx, known, c.Sealed.BundleSHA256)
	if err != nil {
		return "", err
	}
	if intact {
		return sidecar.Stored, nil
	}
	record, err := s.sealedRecord(c.Key)
	if err != nil {
		return "", err
	}
	signature, err := s.standingSignature(ctx, c)
	if err != nil {
		return "", err
	}
	leave, err := s.enter(ctx, record)
	if err != nil {
		return "", err
	}
	defer leave()
	return s.remakeBundle(ctx, c, record, signature)
}

// remakeBundle writes the trust bundle of a sealed chain again. Its signature is
// that of the key there is now; its root is not another one as long as the
// evidence stands.
func (s *Sealer) remakeBundle(ctx context.Context, c *store.ChainSummary, record *store.ChainRecord, signature *segments.Signature) (sidecar.Outcome, error) {
	text, root, err := s.packAgain(ctx, c.Sealed.BundleRoot, record, signature)
	if err != nil {
		return "", err
	}
	if root != c.Sealed.BundleRoot {
		return "", fmt.Errorf("trust bundle of root %s cannot be made again: with the evidence that stands now it has root %s", c.Sealed.BundleRoot, root)
	}
	b := bundleOf(c.Key, root, text)
	b.Exact = segments.Sum([]byte(text)) == c.Sealed.BundleSHA256
	written, err := s.cfg.Sidecars.WriteBundle(ctx, b)
	if err != nil {
		return "", err
	}
	if written.Outcome == sidecar.Kept && written.SHA256 != c.Sealed.BundleSHA256 {
		return sidecar.Kept, nil
	}
	return sidecar.Repaired, nil
}

// packAgain makes the trust bundle under the version of the domain of runs that
// gives the root that is wanted; if none does, under one of them.
func (s *Sealer) packAgain(ctx context.Context, want segments.Digest, record *store.ChainRecord, signature *segments.Signature) (text string, root segments.Digest, err error) {
	signer := s.signer()
	for _, d := range run.Domains() {
		text, root, err = packAs(ctx, d.Version, s.cfg.Store, record, signature, signer)
		if err != nil || root == want {
			break
		}
	}
	if err == nil {
		err = emitCheck(text, root, signer)
	}
	return text, root, err
}

// standingSignature is the signature of the evidence bundle that stands; nil:
// it is unsigned, or there is none.
func (s *Sealer) standingSignature(ctx context.Context, c *store.ChainSummary) (*segments.Signature, error) {
	if c.Sealed.Head == nil || taken(c.Sealed) {
		return nil, nil
	}
	r, err := s.cfg.Sidecars.OpenEvidence(ctx, placeOf(c.Key), sidecar.Class(c.Sealed.Class), *c.Sealed.Head)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	env, _, err := segments.Read(bufio.NewReader(r), func(*segments.Segment) error { return nil })
	if err != nil {
		return nil, fmt.Errorf("read evidence: %w", err)
	}
	return env.Signature, nil
}

// sealedRecord reads a chain that has ended.
func (s *Sealer) sealedRecord(key events.Key) (*store.ChainRecord, error) {
	record, err := s.cfg.Store.Chain(key)
	if err != nil {
		return nil, fmt.Errorf("read chain: %w", err)
	}
	if record.Fixed == nil {
		return nil, fmt.Errorf("%w: sealed chain has no end", ErrContradiction)
	}
	return record, nil
}
