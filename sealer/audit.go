package sealer

import (
	"context"
	"fmt"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
)

// Audit counts what a look at existing evidence found.
type Audit struct {
	Checked   uint64 // sealed chains whose evidence was compared with what the store recorded
	Repaired  uint64 // evidence or pointers that were damaged or missing and are written anew
	Differing uint64 // evidence that is not what was recorded, is no damage either, and was left alone
	// Contradicting counts sealed chains without an evidence file, since the
	// evidence of another scope stands under their head.
	Contradicting uint64
	Failed        uint64 // chains whose evidence could not be checked or repaired
	Done          bool   // the last chain was reached
	LastError     string // of the chain that failed last; "": none
}

// runAudit compares the evidence of all sealed chains with what the store
// recorded when it was written, one chain at a time, beside the jobs: a file
// that was emptied or changed under an unchanged head must not wait for an
// event to be noticed.
func (s *Sealer) runAudit(ctx context.Context) {
	q := store.ChainQuery{Limit: store.MaxPage}
	for {
		page, next, err := s.cfg.Store.Chains(q)
		if err != nil {
			s.note(func(a *Audit) { a.Failed++; a.LastError = err.Error() })
			s.log.Error("existing evidence cannot be listed", "err", err)
			return
		}
		for i := range page {
			if ctx.Err() != nil {
				return
			}
			s.auditChain(ctx, &page[i])
		}
		if q.After = next; next == "" {
			break
		}
	}
	s.note(func(a *Audit) { a.Done = true })
	s.log.Info("existing evidence checked", "audit", s.Status().Audit)
}

// Audit looks at the evidence of all sealed chains once more, as Run does when it
// starts, and counts anew. It does nothing while that first look is under way.
func (s *Sealer) Audit(ctx context.Context) {
	if !s.cfg.SkipAudit && !s.Status().Audit.Done {
		return
	}
	s.note(func(a *Audit) { *a = Audit{} })
	s.runAudit(ctx)
}

func (s *Sealer) note(f func(*Audit)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.audit)
}

func (s *Sealer) auditChain(ctx context.Context, c *store.ChainSummary) {
	if c.Sealed == nil || c.Sealed.Path == "" && c.Sealed.BundlePath == "" {
		return
	}
	was, path, err := s.auditBoth(ctx, c)
	if ctx.Err() != nil {
		return
	}
	s.note(func(a *Audit) {
		a.Checked++
		if taken(c.Sealed) {
			a.Contradicting++
		}
		switch {
		case err != nil:
			a.Failed++
			a.LastError = err.Error()
		case was == sidecar.Kept:
			a.Differing++
		case was == sidecar.Repaired:
			a.Repaired++
		}
	})
	switch {
	case err != nil:
		s.log.Error("existing evidence cannot be checked", "path", path, "err", err)
	case was == sidecar.Kept:
		s.log.Error("existing evidence is not what was sealed", "path", path)
	case was == sidecar.Repaired:
		s.log.Warn("existing evidence was damaged and is written anew", "path", path)
	}
}

// auditBoth looks at the evidence of a chain and then at its trust bundle. It
// returns the worse of the two outcomes, and the path that it is about.
func (s *Sealer) auditBoth(ctx context.Context, c *store.ChainSummary) (was sidecar.Outcome, path string, err error) {
	was, path = sidecar.Stored, c.Sealed.Path
	if c.Sealed.Head != nil && !taken(c.Sealed) {
		if was, err = s.auditEvidence(ctx, c); err != nil {
			return "", path, err
		}
	}
	if c.Sealed.BundlePath == "" {
		return was, path, nil
	}
	also, err := s.auditBundle(ctx, c)
	if err != nil || was == sidecar.Stored || was == sidecar.Repaired && also == sidecar.Kept {
		return also, c.Sealed.BundlePath, err
	}
	return was, path, nil
}

// taken tells whether the evidence of another scope has a chain's head.
func taken(r *store.SealResult) bool { return r.Head != nil && r.Path == "" }

// auditEvidence returns Stored when the evidence of a chain is intact, Repaired
// when it is now, and Kept when something else that is a bundle stands there.
func (s *Sealer) auditEvidence(ctx context.Context, c *store.ChainSummary) (sidecar.Outcome, error) {
	e := sidecar.Evidence{
		Place: placeOf(c.Key),
		Class: sidecar.Class(c.Sealed.Class), Head: *c.Sealed.Head, RunIDs: c.RunIDs,
	}
	intact, err := s.cfg.Sidecars.Intact(ctx, e, c.Sealed.SHA256)
	if err != nil {
		return "", err
	}
	if intact {
		return sidecar.Stored, nil
	}
	d, err := s.redraft(ctx, c)
	if err != nil {
		return "", err
	}
	written, err := s.cfg.Sidecars.Write(ctx, d.evidence(d.sum == c.Sealed.SHA256))
	if err != nil {
		return "", err
	}
	if written.Outcome == sidecar.Kept && written.SHA256 != c.Sealed.SHA256 {
		return sidecar.Kept, nil
	}
	return sidecar.Repaired, nil
}

// redraft makes the evidence of a sealed chain again, signed if it was signed
// then and there still is a key.
func (s *Sealer) redraft(ctx context.Context, c *store.ChainSummary) (*draft, error) {
	record, err := s.sealedRecord(c.Key)
	if err != nil {
		return nil, err
	}
	if record.Fixed.State.Head == nil {
		return nil, fmt.Errorf("%w: sealed chain has no segment", ErrContradiction)
	}
	var signer *keys.Signer
	if c.Sealed.Signed {
		signer = s.signer()
	}
	p, err := s.plan(c.Key, record.Fixed, signer)
	if err != nil {
		return nil, err
	}
	return s.draft(ctx, p)
}
