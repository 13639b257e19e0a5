package verifier

import (
	"encoding/hex"
	"errors"
	"strings"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
)

// examined is a signature as found, before any list is asked.
type examined struct {
	claim keys.Checked
	named bool   // claim.Key is 32 bytes, good or bad
	weak  error  // the key is of small order or not canonical; strict mode refuses it
	fault string // why the signature does not hold; "": it does
}

// examine checks a signature by section 10, steps 2 to 5. The head is the
// declared one, else the computed one; nil leaves nothing that was signed.
func examine(sig *segments.Signature, scope *segments.Scope, head *segments.Digest) examined {
	var e examined
	raw, err := hex.DecodeString(strings.TrimSpace(sig.PublicKeyHex))
	if err == nil && len(raw) == len(e.claim.Key) {
		e.claim.Key, e.named = keys.PublicKey(raw), true
	}
	if _, err := keys.ParsePublicKey(sig.PublicKeyHex); errors.Is(err, keys.ErrSmallOrderKey) || errors.Is(err, keys.ErrNonCanonicalKey) {
		e.weak = err
	}
	switch {
	case !e.named:
		e.fault = "the signature names no public key of 64 hex digits"
	case head == nil:
		e.fault = "there is no head that could have been signed"
	case segments.VerifySignature(sig, scope, *head) != nil:
		e.fault = "the signature does not fit scope and head under the key that it names"
	}
	e.claim.Valid = e.fault == ""
	return e
}

// smallOrderR reports whether the first half of the signature is a point of
// small order, which no honest signer ever writes.
func smallOrderR(sig *segments.Signature) bool {
	raw, err := hex.DecodeString(strings.TrimSpace(sig.SignatureHex))
	return err == nil && len(raw) == 64 && keys.SmallOrder([32]byte(raw[:32]))
}

// strictly turns what only the lenient equation lets through into faults.
func (e examined) strictly(sig *segments.Signature) examined {
	if e.weak == nil && e.fault == "" && smallOrderR(sig) {
		e.fault = "the signature holds a point of small order"
	}
	e.claim.Valid = e.fault == "" && e.weak == nil
	return e
}

// describe makes the report's view of a signature.
func (e examined) describe(sig *segments.Signature, trust *keys.TrustList) Signature {
	s := Signature{State: keys.Judge(&e.claim, trust), PublicKey: clip(sig.PublicKeyHex)}
	if e.named {
		s.KeyID = e.claim.Key.ID()
	}
	if entry, listed := trust.Lookup(e.claim.Key); listed && e.named {
		s.Comment = entry.Comment
	}
	return s
}

// untrustedBy and revokedBy tell who signed, of a signature that holds: it is
// the caller's list that decides, and what may be done about it.
func untrustedBy(id string) string {
	return "validly signed by key " + id + ", which is not in the list of trusted keys; " +
		"if that key was replaced by another, list it as retired"
}

func revokedBy(id string) string {
	return "signed by key " + id + ", which the list revokes"
}
