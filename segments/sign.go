package segments

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"strings"
)

// These errors are returned by [VerifySignature].
var (
	ErrSignatureMalformed = errors.New("key or signature is not hexadecimal of the right length")
	ErrSignatureMismatch  = errors.New("signature does not verify")
)

// Sign signs scope and head (Plasm evidence format, section 10). Ed25519 is
// deterministic: the same inputs give the same signature.
func Sign(key ed25519.PrivateKey, scope *Scope, head Digest) *Signature {
	public := key.Public().(ed25519.PublicKey)
	return &Signature{
		PublicKeyHex: hex.EncodeToString(public),
		SignatureHex: hex.EncodeToString(ed25519.Sign(key, AppendHeadMessage(nil, scope, head))),
	}
}

// VerifySignature makes steps 2 to 5 of the check in section 10: key and
// signature are trimmed and of either case, S < L, the cofactorless equation.
// It knows no trust and accepts keys of small order, as the reference does;
// both are policy. head is the declared head, else the computed one.
//
// The error is [ErrSignatureMalformed] when the texts are not hexadecimal of
// 32 and 64 bytes, else [ErrSignatureMismatch] (also for a key that is no
// point of the curve).
func VerifySignature(sig *Signature, scope *Scope, head Digest) error {
	key, err := hex.DecodeString(strings.TrimSpace(sig.PublicKeyHex))
	if err != nil || len(key) != ed25519.PublicKeySize {
		return ErrSignatureMalformed
	}
	raw, err := hex.DecodeString(strings.TrimSpace(sig.SignatureHex))
	if err != nil || len(raw) != ed25519.SignatureSize {
		return ErrSignatureMalformed
	}
	if !ed25519.Verify(key, AppendHeadMessage(nil, scope, head), raw) {
		return ErrSignatureMismatch
	}
	return nil
}
