package events

import (
	"crypto/ecdh"
	"encoding/hex"
	"math/big"
	"slices"
	"strings"
)

// fieldPrime is 2^255-19.
func fieldPrime() *big.Int {
	p := new(big.Int).Lsh(big.NewInt(1), 255)
	return p.Sub(p, big.NewInt(19))
}

// weakKey reports an Ed25519 public key under which a signature proves
// nothing (a point whose order divides 8: one signature may fit many
// messages), or that is not canonically encoded. Such a point maps to the
// Montgomery curve by u = (1+y)/(1-y) (RFC 7748 section 4.1), where X25519
// with any scalar gives zero; crypto/ecdh refuses that result.
func weakKey(publicKeyHex string) bool {
	raw, err := hex.DecodeString(strings.TrimSpace(publicKeyHex))
	if err != nil || len(raw) != 32 {
		return true
	}
	raw[31] &^= 0x80 // the sign of x
	slices.Reverse(raw)
	y, p, one := new(big.Int).SetBytes(raw), fieldPrime(), big.NewInt(1)
	if y.Cmp(p) >= 0 {
		return true
	}
	below := new(big.Int).Sub(one, y)
	if below.Mod(below, p); below.Sign() == 0 {
		return true
	}
	u := new(big.Int).Add(one, y)
	u.Mul(u, below.ModInverse(below, p)).Mod(u, p)
	return lowOrder(u)
}

func lowOrder(u *big.Int) bool {
	point := u.FillBytes(make([]byte, 32))
	slices.Reverse(point)
	public, err := ecdh.X25519().NewPublicKey(point)
	if err != nil {
		return true
	}
	scalar, err := ecdh.X25519().NewPrivateKey(slices.Repeat([]byte{9}, 32))
	if err != nil {
		return true
	}
	_, err = scalar.ECDH(public)
	return err != nil
}
