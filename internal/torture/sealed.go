package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/store"
	"github.com/chaind/chaind/verifier"
)

// trusted is a list of the daemon's key alone.
func trusted() (*keys.TrustList, error) {
	signer, err := keys.ParseSigner(seedHex)
	if err != nil {
		return nil, err
	}
	list, _, err := keys.Merge([]keys.Entry{{PublicKey: signer.Public(), Status: keys.Active}})
	return list, err
}

// sealed wants for each chain that ended its evidence and its trust bundle, that
// both verify, and that they say what the store and the producer say.
func (c *checker) sealed(ctx context.Context, s *story, f *facts, undisturbed bool) error {
	if f.record.Fixed == nil {
		return nil // and tree wants no file of it
	}
	if f.record.Seal == nil {
		c.v.wrong(s.key, "it ended and has no evidence")
		return nil
	}
	c.expectFiles(s, f)
	if f.record.Fixed.State.Head != nil {
		c.evidence(ctx, s, f)
	}
	return c.bundle(ctx, s, f, undisturbed)
}

// read gives a file of the evidence, which must be the one that was sealed.
func (c *checker) read(s *story, what, path string, sum segments.Digest) []byte {
	text, err := os.ReadFile(filepath.Join(c.artifacts, filepath.FromSlash(path)))
	if err != nil {
		c.v.wrong(s.key, "its %s cannot be read: %v", what, err)
		return nil
	}
	if segments.Sum(text) != sum {
		c.v.wrong(s.key, "its %s is not what was sealed", what)
	}
	return text
}

// expected is the exit code for conforming evidence: a run that was cancelled or
// abandoned has no run seal, which verification tells.
func expected(r *verifier.Report) int {
	if r.SealCount == 0 {
		return 3
	}
	return 0
}

// evidence wants it to verify, with the head that the store has.
func (c *checker) evidence(ctx context.Context, s *story, f *facts) {
	end, seal := f.record.Fixed, f.record.Seal
	text := c.read(s, "evidence", seal.Path, seal.SHA256)
	r := verifier.Evidence(ctx, bytes.NewReader(text), verifier.Options{ExpectHead: end.State.Head,
		Trust: c.trust, Location: verifier.LocationOf(seal.Path)})
	conformity, _ := end.State.Conformity()
	c.v.count(fmt.Sprintf("evidence, %s, exit %d", conformity, r.ExitCode))
	switch {
	case r.ComputedHead == nil || *r.ComputedHead != *end.State.Head || r.Segments != end.State.Segments:
		c.v.wrong(s.key, "its evidence is of another chain: %s", r.Summary)
	case conformity == events.Conforming && r.ExitCode != expected(r):
		c.v.wrong(s.key, "its evidence does not verify: %s", r.Summary)
	case conformity != events.Conforming && r.ExitCode != 2:
		c.v.wrong(s.key, "%s, and verification says %d: %s", conformity, r.ExitCode, r.Summary)
	case r.Signature.State != keys.StateTrusted:
		c.v.wrong(s.key, "its evidence is signed by another: %s", r.Signature.State)
	}
}

// bundle wants the trust bundle to verify and to say what it must.
func (c *checker) bundle(ctx context.Context, s *story, f *facts, undisturbed bool) error {
	d, err := c.said(ctx, s, f)
	if err != nil || d == nil {
		return err
	}
	c.says(s, f, d)
	c.agrees(s, f, d, undisturbed)
	return nil
}

// said verifies the trust bundle and reads it; nil: it does not verify.
func (c *checker) said(ctx context.Context, s *story, f *facts) (*said, error) {
	seal := f.record.Seal
	text := c.read(s, "trust bundle", seal.BundlePath, seal.BundleSHA256)
	r := verifier.TrustBundle(ctx, bytes.NewReader(text), verifier.Options{ExpectHead: f.record.Fixed.State.Head, Trust: c.trust})
	c.v.count(fmt.Sprintf("trust bundles, exit %d", r.ExitCode))
	if r.Content == nil || r.Content.Run == nil || r.Content.Root != "sha256:"+seal.BundleRoot.String() || r.Signature.State != keys.StateTrusted {
		c.v.wrong(s.key, "its trust bundle does not verify: %s", r.Summary)
		return nil, nil
	}
	d, err := readSaid(r.Content.Bundle, r.Content.Run)
	if err != nil {
		return nil, fmt.Errorf("read a trust bundle that verifies: %w", err)
	}
	d.exit = r.ExitCode
	return d, nil
}

// says wants a trust bundle to say what the store has of the chain as of its end,
// whatever came later.
func (c *checker) says(s *story, f *facts, d *said) {
	end := f.record.Fixed
	state := end.State
	conformity, _ := state.Conformity()
	coverage, _ := f.record.Coverage()
	places, later := f.upTo(end)
	if later {
		c.v.count("trust bundles of chains to which more came after the end")
	}
	rejected := f.rejectedUpTo(end.RejectedUpTo)
	for _, x := range []struct {
		what      string
		got, want any
	}{
		{"tenant", d.Tenant, s.key.Tenant},
		{"prompt hash", d.PromptHash, s.key.PromptHash},
		{"session", d.Session, s.key.Session},
		{"chain", d.Chain, s.key.Chain},
		{"outcome", d.Outcome, state.Outcome},
		{"reason", d.Reason, state.Reason},
		{"conformity", d.Conformity, conformity},
		{"coverage", d.Coverage, coverage},
		{"segments", d.Segments, state.Segments},
		{"head", d.Head, textOf(state.Head)},
		{"producer's head", d.head, textOf(state.GivenHead)},
		{"runs", d.RunIDs, state.RunIDs},
		{"epoch", d.numbers["epoch"], end.Epoch},
		{"last sequence", d.numbers["last_stream_seq"], end.StreamSeq},
		{"attempts", d.numbers["attempts"], countOf(places, "attempt")},
		{"duplicates", d.numbers["duplicates"], state.Duplicates},
		{"rejected", d.numbers["rejected"], len(rejected)},
		{"rejected events", sums(d.rejected), sums(rejected[:min(len(rejected), packaged)])},
		{"events", d.standing(), standing(places)},
		{"lost", d.lost, losses(f.record.Lost)},
		{"weak settings", d.weak, f.record.Weak},
		{"exit code", d.exit, exitOf(f.record)},
	} {
		if fmt.Sprint(x.got) != fmt.Sprint(x.want) {
			c.v.wrong(s.key, "its trust bundle says %s %v, and it is %v", x.what, x.got, x.want)
		}
	}
}

// agrees wants a trust bundle to agree with what the producer wrote down.
func (c *checker) agrees(s *story, f *facts, d *said, undisturbed bool) {
	c.foreign(s, &d.facts)
	i := slices.IndexFunc(s.told, func(t *told) bool { return t.what == whatSeal && t.id == d.end.id })
	if i < 0 {
		c.v.wrong(s.key, "its trust bundle says that %s ended it, which is no seal of its producer", d.end.id)
		return
	}
	seal := s.told[i]
	if string(d.Outcome) != seal.outcome {
		c.v.wrong(s.key, "its trust bundle says %s, and its producer %s", d.Outcome, seal.outcome)
	}
	if seal.head != "" && d.head != seal.head {
		c.v.wrong(s.key, "its trust bundle says that its producer stated head %q, and it stated %s", d.head, seal.head)
	}
	if undisturbed && (d.exit != 0 || d.Head != seal.head || d.numbers["event_count"] != uint64(len(s.told))) {
		c.v.wrong(s.key, "undisturbed, of %d events, head %s, and its trust bundle says %d, head %s, exit code %d", len(s.told), seal.head, d.numbers["event_count"], d.Head, d.exit)
	}
	for _, t := range s.told {
		if c.forgotten(f, d, t) {
			c.v.wrong(s.key, "%s %s was acknowledged, had its effect before the end, and is not in its trust bundle", t.what, t.id)
		}
	}
}

// forgotten tells whether an acknowledged message that had its effect before the
// end is not in the bundle. That one which had none is a reason to be incomplete
// is wanted of the chain, and that the bundle says the same.
func (c *checker) forgotten(f *facts, d *said, t *told) bool {
	end := f.record.Fixed
	before, _ := f.upTo(end)
	had := facts{places: before, rejected: f.rejectedUpTo(end.RejectedUpTo)}
	return t.isAcked() && (len(had.at(t)) > 0 || had.refused(t)) && len(d.at(t)) == 0 && !d.refused(t)
}

// exitOf is the exit code for a trust bundle of a chain that has ended.
func exitOf(r *store.ChainRecord) int {
	state := r.Fixed.State
	conformity, _ := state.Conformity()
	coverage, _ := r.Coverage()
	if conformity == events.Nonconforming || coverage != events.Complete || state.Segments == 0 || state.ProducerHead == events.HeadDiffers {
		return 3
	}
	return 0
}
