package segments

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
)

// Digest is a SHA-256. Its text form is 64 lower-case hexadecimal digits.
type Digest [sha256.Size]byte

var errMalformedDigest = errors.New("digest is not 64 lower-case hexadecimal digits")

// Sum returns the SHA-256 of b.
func Sum(b []byte) Digest { return sha256.Sum256(b) }

// ParseDigest reads exactly 64 lower-case hexadecimal digits. The laxer
// reading of bundles (section 5: trimmed, any case) belongs to [Read].
func ParseDigest(s string) (Digest, error) {
	var d Digest
	if len(s) != 2*len(d) || !isLowerHex([]byte(s)) {
		return Digest{}, errMalformedDigest
	}
	_, err := hex.Decode(d[:], []byte(s))
	return d, err
}

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// AppendHex appends the 64 lower-case digits of d.
func (d Digest) AppendHex(dst []byte) []byte { return hex.AppendEncode(dst, d[:]) }

func isLowerHex(b []byte) bool {
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
