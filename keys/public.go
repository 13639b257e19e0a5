package keys

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"math/big"
	"strings"
)

// These errors can be returned when a public key is parsed. None of them
// carries the text, which may be a secret pasted into the wrong place.
var (
	ErrMalformedKey    = errors.New("public key is not exactly 64 hex digits")
	ErrSmallOrderKey   = errors.New("public key is a point of small order")
	ErrNonCanonicalKey = errors.New("public key is not canonically encoded")
	ErrNotAPoint       = errors.New("public key is not a point of the curve")
)

// PublicKey is an Ed25519 public key as RFC 8032 section 5.1.2 encodes it.
type PublicKey [ed25519.PublicKeySize]byte

// ParsePublicKey reads 64 hexadecimal digits of either case; white space around
// them is trimmed. The error is one of [ErrMalformedKey], [ErrSmallOrderKey],
// [ErrNonCanonicalKey] and [ErrNotAPoint], and the key is then zero.
func ParsePublicKey(text string) (PublicKey, error) {
	raw, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(raw) != ed25519.PublicKeySize {
		return PublicKey{}, ErrMalformedKey
	}
	return NewPublicKey(raw)
}

// NewPublicKey takes the 32 bytes themselves; errors as [ParsePublicKey].
func NewPublicKey(raw []byte) (PublicKey, error) {
	if len(raw) != ed25519.PublicKeySize {
		return PublicKey{}, ErrMalformedKey
	}
	key := PublicKey(raw)
	switch {
	case SmallOrder([32]byte(key)):
		return PublicKey{}, ErrSmallOrderKey
	case !canonicalY(key):
		return PublicKey{}, ErrNonCanonicalKey
	case !onCurve(key):
		return PublicKey{}, ErrNotAPoint
	}
	return key, nil
}

// String gives 64 lower-case hexadecimal digits.
func (k PublicKey) String() string { return hex.EncodeToString(k[:]) }

// ID is a short name for logs and lists: the first 16 hexadecimal digits of the
// SHA-256 of the 32 bytes. It tells keys apart for people, it proves nothing.
func (k PublicKey) ID() string {
	sum := sha256.Sum256(k[:])
	return hex.EncodeToString(sum[:8])
}

// Fingerprint is the name that OpenSSH gives to the same key, as printed by
// ssh-keygen -l: "SHA256:" and the unpadded base64 of the SHA-256 of the SSH
// wire encoding (RFC 8709 section 4).
func (k PublicKey) Fingerprint() string {
	const name = "ssh-ed25519"
	wire := append([]byte{0, 0, 0, byte(len(name))}, name...)
	wire = append(append(wire, 0, 0, 0, byte(len(k))), k[:]...)
	sum := sha256.Sum256(wire)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// Verify reports whether sig is a signature of message under the key: S below
// the group order, the cofactorless equation of RFC 8032 section 5.1.7, and an
// R that is no point of small order. It never panics, whatever the lengths.
func (k PublicKey) Verify(message, sig []byte) bool {
	if len(sig) != ed25519.SignatureSize || SmallOrder([32]byte(sig[:32])) {
		return false
	}
	return ed25519.Verify(k[:], message, sig)
}

// SmallOrder reports whether the 32 bytes are one of the 14 encodings, the
// non-canonical ones included, of the eight points whose order divides 8.
func SmallOrder(encoded [32]byte) bool {
	encoded[31] &^= 0x80 // each of the seven y stands with both signs of x
	for _, y := range smallOrderY {
		if hex.EncodeToString(encoded[:]) == y {
			return true
		}
	}
	return false
}

// smallOrderY lists the y of all points of order 1, 2, 4 and 8, little-endian,
// the last two being 0 and 1 written as p and p+1.
var smallOrderY = [...]string{
	"0100000000000000000000000000000000000000000000000000000000000000", // order 1
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // order 2
	"0000000000000000000000000000000000000000000000000000000000000000", // order 4
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05", // order 8
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a", // order 8
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
}

// canonicalY reports whether y, without the sign bit, is below 2^255-19.
func canonicalY(key PublicKey) bool {
	if key[31]&0x7f != 0x7f || key[0] < 0xed {
		return true
	}
	for _, b := range key[1:31] {
		if b != 0xff {
			return true
		}
	}
	return false
}

// onCurve reports whether some x exists for y: RFC 8032 section 5.1.3 wants
// (y²-1) / (d·y²+1) to be a square modulo p. Public data, so math/big will do.
func onCurve(key PublicKey) bool {
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	d, _ := new(big.Int).SetString(curveD, 16)

	y2 := new(big.Int).SetBytes(bigEndianY(key))
	y2.Mul(y2, y2).Mod(y2, p)
	u := new(big.Int).Sub(y2, big.NewInt(1))
	v := new(big.Int).Mul(d, y2)
	v.Add(v, big.NewInt(1))
	// u/v is a square exactly when u·v is.
	return big.Jacobi(u.Mul(u, v).Mod(u, p), p) >= 0
}

// curveD is the curve's constant d, from RFC 8032 section 5.1.
const curveD = "52036cee2b6ffe738cc740797779e89800700a4d4141d8ab75eb4dca135978a3"

func bigEndianY(key PublicKey) []byte {
	y := make([]byte, len(key))
	for i, b := range key {
		y[len(y)-1-i] = b
	}
	y[0] &^= 0x80
	return y
}
