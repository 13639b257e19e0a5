package export

import (
	"errors"
	"io/fs"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/verifier"
)

// signature judges who signed the manifest, in the words and with the exit
// codes that evidence bundles have: without a list of keys nothing is said of
// who signed, and what is not signed passes with a warning.
func (c *checking) signature(manifest []byte) {
	text, err := c.read(SignatureFile, maxSignatureFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		text = []byte{}
	}
	claim, fault := examine(manifest, text)
	s := &c.report.Signature
	s.State = keys.Judge(claim, c.o.Trust)
	if claim == nil {
		c.unsigned()
		return
	}
	if claim.Key != (keys.PublicKey{}) {
		s.PublicKey, s.KeyID = claim.Key.String(), claim.Key.ID()
		if e, listed := c.o.Trust.Lookup(claim.Key); listed {
			s.Comment = e.Comment
		}
	}
	switch s.State {
	case keys.StateInvalid:
		c.fail(verifier.CodeSignatureInvalid, SignatureFile, verifier.ExitEnvelope, fault.Error())
		c.note("trust", verifier.StatusSkipped, "the signature does not hold, so it shows no signer")
	case keys.StateUnpinned:
		c.note("trust", verifier.StatusNotApplicable, "nobody said which keys to trust")
	case keys.StateUntrusted:
		c.fail(verifier.CodeUntrustedKey, SignatureFile, verifier.ExitEnvelope, "validly signed by key "+s.KeyID+", which is not in the list of trusted keys")
	case keys.StateRevoked:
		c.fail(verifier.CodeRevokedKey, SignatureFile, verifier.ExitEnvelope, "signed by key "+s.KeyID+", which the list revokes")
	case keys.StateRetired:
		c.list(verifier.CodeRetiredKey, SignatureFile, "signed by key "+s.KeyID+", which the list holds as retired: fine for old exports only", true)
	default:
		c.note("trust", verifier.StatusPass, "signed by trusted key "+s.KeyID)
	}
}

func (c *checking) unsigned() {
	c.note("signature", verifier.StatusNotApplicable, "there is none")
	switch {
	case c.o.RequireSigned:
		c.fail(verifier.CodeSignatureNeeded, SignatureFile, verifier.ExitEnvelope, "a signature is required and there is none")
	case c.report.Signature.State.Refused(c.o.Trust != nil, c.o.AllowUnsigned):
		c.fail(verifier.CodeSignatureNeeded, SignatureFile, verifier.ExitEnvelope, "there is a list of trusted keys and no signature")
	default:
		c.note("trust", verifier.StatusSkipped, "there is no signature; nobody vouches for what was exported")
		c.list(verifier.CodeUnsigned, "", "the manifest is not signed", true)
	}
}
