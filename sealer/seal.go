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
	d, err := s.prepare(ctx, job)
	if err != nil {
		return Sealed{}, err
	}
	done, err := s.sealBoth(ctx, record, d, &sealed)
	if err == nil && !done {
		err = s.sealApart(ctx, record, d, &sealed)
	}
	if err != nil {
		return Sealed{}, err
	}
	return sealed, nil
}

// prepare makes the evidence and keeps the snapshots. A crash after that leaves
// snapshots, which belong to the run whether or not there is evidence yet.
func (s *Sealer) prepare(ctx context.Context, job *store.SealJob) (*draft, error) {
	p, err := s.plan(job.Key, &job.Fixed, s.signer())
	if err != nil {
		return nil, err
	}
	d, err := s.draft(ctx, p)
	if err != nil {
		return nil, err
	}
	return d, s.writeSnapshots(ctx, p)
}

// sealBoth makes the trust bundle over the evidence as it was made now, and writes
// both together. It has done nothing when that cannot be, because other evidence
// stands under the head, or because the trust bundle fails or takes long, for which
// the evidence does not wait.
func (s *Sealer) sealBoth(ctx context.Context, record *store.ChainRecord, d *draft, sealed *Sealed) (done bool, err error) {
	if isLong(record) {
		return false, nil
	}
	signer := s.signer()
	text, root, err := pack(ctx, s.cfg.Store, record, d.signature, signer)
	if err != nil {
		return false, ctx.Err()
	}
	judge := func() error { return emitCheck(text, root, signer) }
	evidence, bundle, err := s.cfg.Sidecars.WriteBoth(ctx, d.evidence(false), bundleOf(record.Key, root, text), judge)
	if errors.Is(err, sidecar.ErrApart) || errors.Is(err, ErrContradiction) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if evidence.SHA256 != d.sum || bundle.Bytes != uint64(len(text)) {
		return false, fmt.Errorf("%w: %s or %s was written differently", ErrContradiction, evidence.Path, bundle.Path)
	}
	sealed.Standing, sealed.Result = evidence.Outcome, d.result(evidence)
	describeBundle(&sealed.Result, root, bundle)
	return true, nil
}

// sealApart writes the evidence, and then the trust bundle over what stands under
// the head, with the names of the evidence beside it.
func (s *Sealer) sealApart(ctx context.Context, record *store.ChainRecord, d *draft, sealed *Sealed) error {
	evidence, signature, err := s.sealEvidence(ctx, d, sealed)
	if err != nil {
		return err
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
	return errors.Join(<-pointed, err)
}

// sealEvidence writes the evidence under its head, and returns it and the
// signature that the bundle that stands there carries; nil and none when that
// bundle has another scope and so is not this chain's.
func (s *Sealer) sealEvidence(ctx context.Context, d *draft, sealed *Sealed) (*sidecar.Evidence, *segments.Signature, error) {
	evidence := d.evidence(false)
	written, err := s.cfg.Sidecars.WriteHead(ctx, evidence)
	if err != nil {
		return nil, nil, err
	}
	if written.Outcome != sidecar.Kept && written.SHA256 != d.sum {
		return nil, nil, fmt.Errorf("%w: %s was written differently", ErrContradiction, written.Path)
	}
	// A crash here leaves everything but the end of the job; the next run of it
	// finds the same bytes.
	sealed.Standing, sealed.Result = written.Outcome, d.result(written)
	signature := d.signature
	if written.Outcome == sidecar.Kept && !sameScope(&written.Standing.Scope, &d.scope) {
		s.log.Error("the evidence of another scope stands under this head: the chain has no evidence file", "tenant", d.key.Tenant,
			"chain", d.key.Chain, "path", written.Path)
		sealed.Standing, sealed.Result = written.Outcome, store.SealResult{Class: string(d.class), Head: &d.head}
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
