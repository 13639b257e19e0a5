package sealer

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
)

// seal makes and writes the evidence and the trust bundle of a finished chain
// (package comment, steps 1 to 5).
func (s *Sealer) seal(ctx context.Context, job *store.SealJob) (Sealed, error) {
	sealed := Sealed{Key: job.Key, Outcome: job.Fixed.State.Outcome, StreamSeq: job.Fixed.StreamSeq}
	record, err := s.sealedRecord(job.Key)
	if err != nil {
		return Sealed{}, err
	}
	if job.Fixed.State.Head == nil {
		if err := s.writeBundle(ctx, record, nil, &sealed.Result); err != nil {
			return Sealed{}, err
		}
		return sealed, nil
	}
	evidence, signature, err := s.sealEvidence(ctx, job, &sealed)
	if err != nil {
		return Sealed{}, err
	}
	// A crash here leaves evidence without a trust bundle; the next run of the
	// job finds the same evidence, and so makes the bundle over its signature.
	// That bundle and the names of the evidence do not need each other.
	pointed := make(chan error, 1)
	go func() {
		if evidence == nil {
			pointed <- nil
			return
		}
		pointed <- s.cfg.Sidecars.Point(ctx, *evidence)
	}()
	err = s.writeBundle(ctx, record, signature, &sealed.Result)
	if err = errors.Join(<-pointed, err); err != nil {
		return Sealed{}, err
	}
	return sealed, nil
}

// sealEvidence writes the evidence under its head, and returns it and the
// signature that the bundle that stands there carries; nil and none when that
// bundle has another scope and so is not this chain's.
func (s *Sealer) sealEvidence(ctx context.Context, job *store.SealJob, sealed *Sealed) (*sidecar.Evidence, *segments.Signature, error) {
	p, err := s.plan(job.Key, &job.Fixed, s.signer())
	if err != nil {
		return nil, nil, err
	}
	d, err := s.draft(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	// A crash here leaves snapshots, which belong to the run whether or not
	// there is evidence yet.
	if err := s.writeSnapshots(ctx, p); err != nil {
		return nil, nil, err
	}
	evidence := d.evidence(false)
	written, err := s.cfg.Sidecars.WriteHead(ctx, evidence)
	if err != nil {
		return nil, nil, err
	}
	if written.Outcome != sidecar.Kept && written.SHA256 != d.sum {
		return nil, nil, fmt.Errorf("%w: %s reads back differently", ErrContradiction, written.Path)
	}
	// A crash here leaves everything but the end of the job; the next run of it
	// finds the same bytes.
	sealed.Standing, sealed.Result = written.Outcome, d.result(written)
	signature := p.signature
	if written.Outcome == sidecar.Kept && !sameScope(&written.Standing.Scope, &p.scope) {
		s.log.Error("the evidence of another scope stands under this head: the chain has no evidence file", "tenant", job.Key.Tenant,
			"chain", job.Key.Chain, "path", written.Path)
		sealed.Standing, sealed.Result = written.Outcome, store.SealResult{Class: string(p.class), Head: &p.head}
		return nil, nil, nil
	}
	if written.Outcome == sidecar.Kept {
		signature = written.Standing.Signature
		s.log.Warn("another bundle with this head was first and stands", "path", written.Path, "signed", sealed.Result.Signed)
	}
	return &evidence, signature, nil
}

// sameScope compares scopes as a signature covers them. The head does not: two
// chains of one session with the same segments share it, whatever else they say.
func sameScope(a, b *segments.Scope) bool {
	var head segments.Digest
	return bytes.Equal(segments.AppendHeadMessage(nil, a, head), segments.AppendHeadMessage(nil, b, head))
}

func (s *Sealer) signer() *keys.Signer {
	if s.cfg.Signer == nil {
		return nil
	}
	return s.cfg.Signer()
}

// plan is what a bundle will say, but for its segments.
type plan struct {
	key       events.Key
	place     sidecar.Place
	class     sidecar.Class
	sealed    sidecar.Position
	scope     segments.Scope
	head      segments.Digest
	count     uint64 // segments
	anchors   segments.Anchors
	signature *segments.Signature // nil: unsigned
}

func (s *Sealer) plan(key events.Key, fixed *store.Fixed, signer *keys.Signer) (*plan, error) {
	conformity, _ := fixed.State.Conformity()
	p := &plan{
		key:     key,
		place:   placeOf(key),
		class:   classOf(conformity),
		sealed:  sidecar.Position{Epoch: fixed.Epoch, StreamSeq: fixed.StreamSeq},
		scope:   fixed.State.BoundScope(),
		head:    *fixed.State.Head,
		count:   fixed.State.Segments,
		anchors: fixed.State.Anchors,
	}
	if signer == nil {
		return p, nil
	}
	signature, err := signer.Sign(segments.AppendHeadMessage(nil, &p.scope, p.head))
	if err != nil {
		return nil, fmt.Errorf("sign evidence: %w", err)
	}
	p.signature = &segments.Signature{PublicKeyHex: signer.Public().String(), SignatureHex: hex.EncodeToString(signature)}
	return p, nil
}

func placeOf(key events.Key) sidecar.Place {
	return sidecar.Place{Tenant: key.Tenant, PromptHash: key.PromptHash, Session: key.Session}
}

func classOf(c events.Conformity) sidecar.Class {
	switch c {
	case events.Conforming:
		return sidecar.Heads
	case events.Unplanned:
		return sidecar.Unplanned
	}
	return sidecar.Nonconforming
}

// writeSnapshots keeps the run snapshots that came with the chain's seals. One
// that came late is in the addenda and nowhere else.
func (s *Sealer) writeSnapshots(ctx context.Context, p *plan) error {
	for next := uint64(0); ; {
		page, err := s.cfg.Store.Preimages(p.key, next, 0)
		if err != nil {
			return fmt.Errorf("read preimages: %w", err)
		}
		if len(page) == 0 {
			return nil
		}
		for i := range page {
			if err := s.writeSnapshot(ctx, p, &page[i]); err != nil {
				return err
			}
		}
		next = page[len(page)-1].Ordinal + 1
	}
}

func (s *Sealer) writeSnapshot(ctx context.Context, p *plan, record *store.PreimageRecord) error {
	if record.Preimage.Artifact == nil || record.Seq == nil {
		return nil
	}
	page, err := s.cfg.Store.Segments(p.key, *record.Seq, 1)
	if err != nil {
		return fmt.Errorf("read segment: %w", err)
	}
	if len(page) == 0 {
		return fmt.Errorf("%w: snapshot of segment %d, which is missing", ErrContradiction, *record.Seq)
	}
	run, ok := page[0].Segment.Kind.(*segments.RunSealed)
	if !ok {
		return fmt.Errorf("%w: snapshot of segment %d, which is no run seal", ErrContradiction, *record.Seq)
	}
	kept, err := s.cfg.Sidecars.WriteSnapshot(ctx, p.place, run.RunID, record.Preimage.Artifact)
	if kept {
		s.log.Warn("another snapshot of this run was first and stands", "run_id", run.RunID)
	}
	return err
}
