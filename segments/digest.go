package segments

import (
	"crypto/sha256"
	"encoding/binary"
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

// AppendHex appends the 64 lower-case digits of d. Four bytes are spread over the
// eight of a word, half a byte each, and made digits together; a test holds it to
// encoding/hex, which takes them one by one.
func (d Digest) AppendHex(dst []byte) []byte {
	const ones = 0x0101010101010101
	var digits [2 * len(d)]byte
	for i := 0; i < len(d); i += 4 {
		x := uint64(binary.BigEndian.Uint32(d[i:]))
		x = (x | x<<16) & 0x0000ffff0000ffff
		x = (x | x<<8) & 0x00ff00ff00ff00ff
		x = (x | x<<4) & 0x0f0f0f0f0f0f0f0f
		letters := (x + ones*6) >> 4 & ones // 1 where the digit is one of a to f
		binary.BigEndian.PutUint64(digits[2*i:], x+ones*'0'+letters*('a'-10-'0'))
	}
	return append(dst, digits[:]...)
}

func isLowerHex(b []byte) bool {
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
