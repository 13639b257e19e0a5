package daemon

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"path"
	"strings"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
)

// EvidenceCheck compares the evidence files with what the store says was sealed.
type EvidenceCheck struct {
	Sealed   uint64          // chains whose evidence was looked at
	Files    uint64          // evidence files that are there
	Findings []store.Finding // the first store.MaxFindings
	More     uint64
}

// CheckEvidence reads the evidence of every sealed chain and looks for evidence
// that the store does not know. It changes nothing. Findings:
//
//	torn           a file, or a name that leads to it, is missing: the daemon
//	               makes it again when it starts
//	mismatch       a file is not what was sealed
//	contradiction  a file that no chain of the store has: it is newer than the
//	               store (a restored backup), or another store's
//
// progress is told the chains looked at; nil: nobody is. Memory is some 40 bytes
// a chain. Open chains have no evidence and are not mentioned. A store that is too
// damaged to list its chains is a finding, too.
func CheckEvidence(ctx context.Context, s *store.Store, artifacts string, progress func(done uint64)) (*EvidenceCheck, error) {
	files, err := sidecar.OpenDirReadOnly(artifacts)
	if err != nil {
		return nil, err
	}
	defer files.Close()
	sidecars, err := sidecar.Open(ctx, sidecar.Config{Blobs: files})
	if err != nil {
		return nil, err
	}
	c := &evidenceCheck{files: files, sidecars: sidecars, seed: maphash.MakeSeed(), known: map[uint64]struct{}{}, report: &EvidenceCheck{}}
	q := store.ChainQuery{Limit: store.MaxPage}
	for {
		page, next, err := s.Chains(q)
		if damage, ok := errors.AsType[*store.CorruptError](err); ok {
			// What the chains behind it have cannot be told from strays.
			c.add(store.Finding{Class: store.Mismatch, Chain: damage.Chain, Bucket: damage.Bucket, Key: damage.Key,
				Detail: damage.Detail + ": the list of chains ends here, and the evidence of those behind was not looked at"})
			return c.report, nil
		}
		if err != nil {
			return nil, err
		}
		for i := range page {
			if err := c.chain(ctx, &page[i]); err != nil {
				return nil, err
			}
		}
		if progress != nil {
			progress(c.report.Sealed)
		}
		if q.After = next; next == "" {
			break
		}
	}
	return c.report, c.strays(ctx)
}

type evidenceCheck struct {
	files    *sidecar.Dir
	sidecars *sidecar.Sidecars
	seed     maphash.Seed
	known    map[uint64]struct{} // hashes of the names that chains have
	unsealed bool                // a chain has ended and is not sealed: its trust bundle may be there
	report   *EvidenceCheck
}

func (c *evidenceCheck) add(f store.Finding) {
	if len(c.report.Findings) == store.MaxFindings {
		c.report.More++
		return
	}
	c.report.Findings = append(c.report.Findings, f)
}

// chain looks at the evidence of one chain.
func (c *evidenceCheck) chain(ctx context.Context, s *store.ChainSummary) error {
	if s.Sealed == nil {
		c.expect(s)
		return ctx.Err()
	}
	if s.Sealed.Head == nil {
		return c.bundle(ctx, s)
	}
	c.report.Sealed++
	if s.Sealed.Path == "" {
		c.add(store.Finding{Class: store.Contradiction, Chain: s.Key,
			Detail: fmt.Sprintf("head %s belongs to the evidence of another scope in this session: the chain has no evidence file", s.Sealed.Head)})
		return c.bundle(ctx, s)
	}
	c.known[maphash.String(c.seed, s.Sealed.Path)] = struct{}{}
	e := sidecar.Evidence{
		Place: sidecar.Place{Tenant: s.Key.Tenant, PromptHash: s.Key.PromptHash, Session: s.Key.Session},
		Class: sidecar.Class(s.Sealed.Class), Head: *s.Sealed.Head, RunIDs: s.RunIDs,
	}
	intact, err := c.sidecars.Intact(ctx, e, s.Sealed.SHA256)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		c.add(store.Finding{Class: store.Mismatch, Chain: s.Key, Detail: fmt.Sprintf("evidence %s cannot be read: %v", s.Sealed.Path, err)})
	case !intact:
		c.add(c.broken(ctx, s))
	}
	return c.bundle(ctx, s)
}

// expect knows the name that a seal job which was interrupted may have written:
// the file is there before the store says so.
func (c *evidenceCheck) expect(s *store.ChainSummary) {
	if s.Outcome == events.Open || s.Head == nil {
		return
	}
	c.unsealed = true
	class := sidecar.Class(s.Conformity)
	if s.Conformity == events.Conforming {
		class = sidecar.Heads
	}
	p := sidecar.Place{Tenant: s.Key.Tenant, PromptHash: s.Key.PromptHash, Session: s.Key.Session}
	c.known[maphash.String(c.seed, p.EvidencePath(class, *s.Head))] = struct{}{}
}

// bundle looks at the trust bundle of a chain.
func (c *evidenceCheck) bundle(ctx context.Context, s *store.ChainSummary) error {
	if s.Sealed.BundlePath == "" {
		return nil
	}
	c.known[maphash.String(c.seed, s.Sealed.BundlePath)] = struct{}{}
	b := sidecar.Bundle{Place: sidecar.Place{Tenant: s.Key.Tenant, PromptHash: s.Key.PromptHash, Session: s.Key.Session},
		Chain: s.Key.Chain, Root: s.Sealed.BundleRoot}
	intact, err := c.sidecars.IntactBundle(ctx, b, s.Sealed.BundleSHA256)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		c.add(store.Finding{Class: store.Mismatch, Chain: s.Key, Detail: fmt.Sprintf("trust bundle %s cannot be read: %v", s.Sealed.BundlePath, err)})
	case !intact:
		c.add(store.Finding{Class: store.Mismatch, Chain: s.Key, Detail: fmt.Sprintf("trust bundle %s is missing, is not what was sealed, or has no pointer from its chain", s.Sealed.BundlePath)})
	}
	return nil
}

// broken tells a missing file from a changed one.
func (c *evidenceCheck) broken(ctx context.Context, s *store.ChainSummary) store.Finding {
	f, err := c.files.Open(ctx, s.Sealed.Path)
	if err != nil {
		return store.Finding{Class: store.Torn, Chain: s.Key, Detail: fmt.Sprintf("evidence %s is missing", s.Sealed.Path)}
	}
	f.Close()
	alone := sidecar.Evidence{Place: sidecar.Place{Tenant: s.Key.Tenant, PromptHash: s.Key.PromptHash, Session: s.Key.Session},
		Class: sidecar.Class(s.Sealed.Class), Head: *s.Sealed.Head}
	if ok, err := c.sidecars.Intact(ctx, alone, s.Sealed.SHA256); ok && err == nil {
		return store.Finding{Class: store.Torn, Chain: s.Key, Detail: fmt.Sprintf("evidence %s has no pointer from a run id", s.Sealed.Path)}
	}
	return store.Finding{Class: store.Mismatch, Chain: s.Key, Detail: fmt.Sprintf("evidence %s is not what was sealed", s.Sealed.Path)}
}

// strays looks for evidence files that no chain of the store has. A trust bundle
// that is in a chain's history is accounted for: a chain that was sealed again
// after a restore has two.
func (c *evidenceCheck) strays(ctx context.Context) error {
	err := c.files.List(ctx, "bundles/by-chain/", func(name string) error {
		if root, err := segments.ParseDigest(path.Base(name)); err == nil {
			c.known[maphash.String(c.seed, sidecar.BundlePath(root))] = struct{}{}
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return c.files.List(ctx, "", func(name string) error {
		if c.unsealed && strings.HasSuffix(name, ".tsb") {
			return nil
		}
		legacy := strings.HasPrefix(path.Base(name), "pr") // by run id; we only read those
		if legacy || !strings.HasSuffix(name, ".evidence.json") && !strings.HasSuffix(name, ".tsb") {
			return nil
		}
		c.report.Files++
		if _, ok := c.known[maphash.String(c.seed, name)]; !ok {
			c.add(store.Finding{Class: store.Contradiction, Detail: fmt.Sprintf("evidence %s belongs to no chain of this store: it is newer than the store, or another store's", name)})
		}
		return nil
	})
}
