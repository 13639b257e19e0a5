package events

import (
	"crypto/ed25519"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
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

// With the identity as public key one signature fits every message: the
// reference's equation holds, and it still proves nothing.
func TestWeakProducerSignature(t *testing.T) {
	t.Parallel()
	identity := "01" + strings.Repeat("00", 31)
	signature := identity + strings.Repeat("00", 32)
	head := strings.Repeat("0f", 32)
	sig := &segments.Signature{PublicKeyHex: identity, SignatureHex: signature}
	if err := segments.VerifySignature(sig, parseScope(t), segments.Sum(nil)); err != nil {
		t.Fatalf("the equation does not hold: %v", err)
	}
	for name, scope := range map[string]string{"own scope": `"scope":` + testScope + `,`, "no scope": ""} {
		store := newMemory(DefaultLimits)
		_, effect := store.deliver(message(VerbSeal, `{"v":1,"event_id":"e",`+scope+`"producer_head":"`+head+
			`","producer_signature":{"public_key_hex":"`+identity+`","signature_hex":"`+signature+`"}}`))
		if effect.Verdict != Finished || store.states[testKey].ProducerSignature != SignatureInvalid {
			t.Errorf("%s: %s, signature %q", name, effect.Verdict, store.states[testKey].ProducerSignature)
		}
	}
}

// A sound signature counts whether the seal carries the scope or the chain does.
func TestProducerSignature(t *testing.T) {
	t.Parallel()
	head := segments.Sum([]byte("head"))
	sig := segments.Sign(ed25519.NewKeyFromSeed(make([]byte, 32)), parseScope(t), head)
	seal := `"producer_head":"` + head.String() + `","producer_signature":{"public_key_hex":"` + sig.PublicKeyHex + `","signature_hex":"` + sig.SignatureHex + `"}}`
	for name, scope := range map[string]string{"own scope": `"scope":` + testScope + `,`, "the chain's": ""} {
		store := newMemory(DefaultLimits)
		store.deliver(honest(t)[0])
		store.deliver(message(VerbSeal, `{"v":1,"event_id":"e",`+scope+seal))
		if s := store.states[testKey]; s.ProducerSignature != SignatureValid || s.ProducerHead != HeadDiffers {
			t.Errorf("%s: signature %q, head %q", name, s.ProducerSignature, s.ProducerHead)
		}
	}
}
