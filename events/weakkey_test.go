package events

import (
	"crypto/ed25519"
	"encoding/hex"
	"testing"

	"github.com/chaind/chaind/keys"
)

// All fourteen encodings of the points of small order, both signs of x; keys
// knows them by heart, here they are found by arithmetic.
func TestWeakKeys(t *testing.T) {
	t.Parallel()
	for _, y := range []string{
		"0100000000000000000000000000000000000000000000000000000000000000",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"0000000000000000000000000000000000000000000000000000000000000000",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	} {
		raw, _ := hex.DecodeString(y)
		for _, sign := range []byte{0, 0x80} {
			key := [32]byte(raw)
			key[31] |= sign
			if !keys.SmallOrder(key) {
				t.Fatalf("the list of this test is wrong: %x", key)
			}
			if !weakKey(hex.EncodeToString(key[:])) {
				t.Errorf("%x passes as a sound key", key)
			}
		}
	}
	for _, text := range []string{"", "zz", "0102"} {
		if !weakKey(text) {
			t.Errorf("%q passes as a key", text)
		}
	}
}

func TestSoundKeys(t *testing.T) {
	t.Parallel()
	for i := range byte(32) {
		key := ed25519.NewKeyFromSeed(append(make([]byte, 31), i)).Public().(ed25519.PublicKey)
		if weakKey(hex.EncodeToString(key)) {
			t.Errorf("%x is refused", key)
		}
	}
}
