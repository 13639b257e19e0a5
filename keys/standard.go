package keys

import (
	"crypto"
	"crypto/ed25519"
	"errors"
	"io"
)

// Standard gives the signer the shape of the standard library, for those who
// take a [crypto.Signer]: it signs messages that are not hashed before
// (crypto.Hash(0)), and its public half is an [ed25519.PublicKey]. The nil
// *Signer gives nil.
func (s *Signer) Standard() crypto.Signer {
	if s == nil {
		return nil
	}
	return standard{s}
}

// errPrehashed says that a digest was handed over in place of a message.
var errPrehashed = errors.New("sign message: only messages that are not hashed before can be signed")

type standard struct{ signer *Signer }

func (s standard) Public() crypto.PublicKey {
	public := s.signer.Public()
	return ed25519.PublicKey(public[:])
}

func (s standard) Sign(_ io.Reader, message []byte, opts crypto.SignerOpts) ([]byte, error) {
	if opts != nil && opts.HashFunc() != crypto.Hash(0) {
		return nil, errPrehashed
	}
	return s.signer.Sign(message)
}
