package sealer

import (
	"context"
	"crypto"
	"fmt"
	"io"
	"strings"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/run"
	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
)

// Pack makes the trust bundle of a chain, as it was when it ended or, while it
// is open, as of the record, and checks the very bytes: the envelope holds, and
// the content is re-derived from the evidence. signature is that of the chain's
// evidence bundle, signer signs the root; both may be nil. The bytes depend on
// nothing else. ErrContradiction is in the error when the check fails.
func Pack(ctx context.Context, st Records, record *store.ChainRecord, signature *segments.Signature, signer *keys.Signer) (text string, root segments.Digest, err error) {
	text, root, err = pack(ctx, st, record, signature, signer)
	if err == nil {
		err = emitCheck(text, root, signer)
	}
	if err != nil {
		return "", segments.Digest{}, err
	}
	return text, root, nil
}

// pack is Pack without the check.
func pack(ctx context.Context, st Records, record *store.ChainRecord, signature *segments.Signature, signer *keys.Signer) (text string, root segments.Digest, err error) {
	return packAs(ctx, run.Version, st, record, signature, signer)
}

// packAs is pack under a version of the domain of runs.
func packAs(ctx context.Context, version string, st Records, record *store.ChainRecord, signature *segments.Signature, signer *keys.Signer) (text string, root segments.Digest, err error) {
	p := newPacking(ctx, st, record)
	chain, err := p.chain(record, signature)
	if err != nil {
		return "", segments.Digest{}, err
	}
	var out strings.Builder
	stated, _, err := run.WriteVersion(&out, version, chain, run.QuestionRun, run.DefaultKeep, standard(signer))
	if err != nil {
		return "", segments.Digest{}, fmt.Errorf("make trust bundle: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return "", segments.Digest{}, err
	}
	if root, err = segments.ParseDigest(strings.TrimPrefix(stated, rootPrefix)); err != nil {
		return "", segments.Digest{}, err
	}
	return out.String(), root, nil
}

const rootPrefix = "sha256:" // of a root in a trust bundle

// standard is nil for a nil signer, and not an interface that holds one.
func standard(signer *keys.Signer) crypto.Signer {
	if signer == nil {
		return nil
	}
	return signer.Standard()
}

// emitCheck reads the bytes of a bundle as a stranger would. ErrContradiction is in
// its errors.
func emitCheck(text string, root segments.Digest, signer *keys.Signer) error {
	if err := readBack(text, rootPrefix+root.String(), signer); err != nil {
		return fmt.Errorf("%w: trust bundle: %w", ErrContradiction, err)
	}
	return nil
}

func readBack(text, root string, signer *keys.Signer) error {
	b, err := bundle.Parse(text)
	if err != nil {
		return err
	}
	j, err := engine.Judge(b, run.Domains())
	switch {
	case err != nil:
		return err
	case len(j.Integrity.Findings) > 0:
		return fmt.Errorf("integrity: %s", j.Integrity.Findings[0].Detail)
	case j.Integrity.Root != root:
		return fmt.Errorf("root reads back as %s", bundle.Quote(j.Integrity.Root))
	case j.Signature.Signed != (signer != nil):
		return fmt.Errorf("signature was lost")
	case signer != nil && (!j.Signature.Valid || j.Signature.PublicKey != signer.Public().String()):
		return fmt.Errorf("signature does not verify")
	case j.Taxonomy != engine.ReDerived || j.Verdict() == engine.Fail:
		return fmt.Errorf("content is %s, %s: %s", j.Taxonomy, j.Verdict(), j.Cause())
	}
	return nil
}

// soundBundle decides whether a file can be the first bytes of a root: a trust
// bundle with that root whose envelope holds, signature included if it has one.
// The content follows from the root.
func soundBundle(root segments.Digest) func(io.Reader) (bool, error) {
	return func(r io.Reader) (bool, error) {
		b, err := bundle.Read(io.LimitReader(r, sidecar.MaxBundle))
		if err != nil {
			return false, nil // whoever reads keeps errors of reading
		}
		integrity, err := b.CheckIntegrity()
		if err != nil || len(integrity.Findings) > 0 || integrity.Root != rootPrefix+root.String() {
			return false, nil
		}
		s, err := b.CheckSignature()
		return err == nil && (!s.Signed || s.Valid), nil
	}
}

func bundleOf(key events.Key, root segments.Digest, text string) sidecar.Bundle {
	return sidecar.Bundle{
		Place: placeOf(key), Chain: key.Chain, Root: root, Sound: soundBundle(root),
		Body: func(w io.Writer) error { _, err := io.WriteString(w, text); return err },
	}
}

// writeBundle makes and writes the trust bundle of a finished chain (package
// comment, step 5) and adds it to the result.
func (s *Sealer) writeBundle(ctx context.Context, record *store.ChainRecord, signature *segments.Signature, result *store.SealResult) error {
	leave, err := s.enter(ctx, record)
	if err != nil {
		return err
	}
	defer leave()
	text, root, err := Pack(ctx, s.cfg.Store, record, signature, s.signer())
	if err != nil {
		return err
	}
	written, err := s.cfg.Sidecars.WriteBundle(ctx, bundleOf(record.Key, root, text))
	if err != nil {
		return err
	}
	if written.Outcome != sidecar.Kept && written.Bytes != uint64(len(text)) {
		return fmt.Errorf("%w: %s was written differently", ErrContradiction, written.Path)
	}
	if written.Outcome == sidecar.Kept {
		s.log.Warn("another trust bundle with this root was first and stands", "path", written.Path)
	}
	describeBundle(result, root, written)
	return nil
}

func describeBundle(result *store.SealResult, root segments.Digest, written sidecar.Written) {
	result.BundlePath, result.BundleRoot = written.Path, root
	result.BundleBytes, result.BundleSHA256 = written.Bytes, written.SHA256
}

func isLong(record *store.ChainRecord) bool {
	st := record.Fixed.State
	return st.Segments+st.Rejected+uint64(len(st.Steps)) >= longChain
}

// enter lets one chain of some length at a time be packed: its bundle is in
// memory as a whole, several times over while it is checked.
func (s *Sealer) enter(ctx context.Context, record *store.ChainRecord) (leave func(), err error) {
	if !isLong(record) {
		return func() {}, nil
	}
	select {
	case s.long <- struct{}{}:
		return func() { <-s.long }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
