package keys

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Keys of the seeds 07*32, 09*32 and 01*32, from the format's own vectors.
const (
	hex7 = "ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c"
	hex9 = "fd1724385aa0c75b64fb78cd602fa1d991fdebf76b13c58ed702eac835e9f618"
	hex1 = "8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c"
)

func mustKey(t testing.TB, text string) PublicKey {
	t.Helper()
	key, err := ParsePublicKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestParsePublicKeyTolerates(t *testing.T) {
	t.Parallel()
	for _, text := range []string{hex7, strings.ToUpper(hex7), " " + hex7 + "\r\n", "\u00a0" + hex7 + "\t"} {
		if got := mustKey(t, text).String(); got != hex7 {
			t.Errorf("%q: got %s", text, got)
		}
	}
}

// TestE02 holds the eight small-order points in all 14 encodings, as key and as
// R of a signature.
func TestE02SmallOrderPoints(t *testing.T) {
	t.Parallel()
	refused := 0
	for _, y := range smallOrderY {
		for _, sign := range []byte{0, 0x80} {
			raw, _ := hex.DecodeString(y)
			raw[31] |= sign
			key, err := ParsePublicKey(hex.EncodeToString(raw))
			if !errors.Is(err, ErrSmallOrderKey) || key != (PublicKey{}) {
				t.Errorf("%x: got %v, %v", raw, key, err)
			}
			sig := append(slices.Clone(raw), make([]byte, 32)...)
			if mustKey(t, hex7).Verify([]byte("any"), sig) {
				t.Errorf("%x: accepted as R", raw)
			}
			refused++
		}
	}
	if refused != 14 {
		t.Errorf("%d encodings, want 14", refused)
	}
}

// The identity as key and R, with S = 0, satisfies the equation for every
// message; the standard library accepts it.
func TestE02IdentitySignsEverything(t *testing.T) {
	t.Parallel()
	identity := append([]byte{1}, make([]byte, 31)...)
	sig := append(slices.Clone(identity), make([]byte, 32)...)
	if !ed25519.Verify(identity, []byte("any message"), sig) {
		t.Fatal("the standard library refuses it by now; drop this test")
	}
	if (PublicKey(identity)).Verify([]byte("any message"), sig) {
		t.Error("we accept it")
	}
}

// TestE06 spells the points that have two encodings the second way.
func TestE06NonCanonicalKeys(t *testing.T) {
	t.Parallel()
	for low := 0xed; low <= 0xff; low++ {
		for _, top := range []byte{0x7f, 0xff} {
			raw := slices.Repeat([]byte{0xff}, 32)
			raw[0], raw[31] = byte(low), top
			_, err := NewPublicKey(raw)
			if low <= 0xee { // y = p and p+1 are small-order points as well
				if !errors.Is(err, ErrSmallOrderKey) {
					t.Errorf("%x: %v", raw, err)
				}
			} else if !errors.Is(err, ErrNonCanonicalKey) {
				t.Errorf("%x: %v", raw, err)
			}
		}
	}
}

// TestE08 tries wrong lengths everywhere a length could panic.
func TestE08WrongLengths(t *testing.T) {
	t.Parallel()
	for n := range 70 {
		if n == 32 {
			continue
		}
		if _, err := NewPublicKey(make([]byte, n)); !errors.Is(err, ErrMalformedKey) {
			t.Errorf("key of %d bytes: %v", n, err)
		}
		if _, err := ParsePublicKey(strings.Repeat("ab", n)); !errors.Is(err, ErrMalformedKey) {
			t.Errorf("text of %d bytes: %v", n, err)
		}
		if n != 64 && mustKey(t, hex7).Verify([]byte("m"), make([]byte, n)) {
			t.Errorf("signature of %d bytes accepted", n)
		}
	}
}

func TestParsePublicKeyRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", " ", "0x" + hex7, hex7[:63], hex7 + "0", hex7[:62] + "zz", "ssh-ed25519 AAAA", hex7[:32] + " " + hex7[32:], "\ufeff" + hex7} {
		if key, err := ParsePublicKey(text); !errors.Is(err, ErrMalformedKey) || key != (PublicKey{}) {
			t.Errorf("%q: %v, %v", text, key, err)
		}
	}
}

// TestOnCurve compares with finding the square root itself.
func TestOnCurve(t *testing.T) {
	t.Parallel()
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	d := new(big.Int).ModInverse(big.NewInt(121666), p) // d = -121665/121666
	d.Mul(d, big.NewInt(-121665))
	points := 0
	for y := int64(0); y < 200; y++ {
		y2 := new(big.Int).Exp(big.NewInt(y), big.NewInt(2), p)
		v := new(big.Int).Mul(d, y2)
		v.Add(v, big.NewInt(1)).ModInverse(v, p)
		x2 := v.Mul(v, new(big.Int).Sub(y2, big.NewInt(1)))
		want := new(big.Int).ModSqrt(x2.Mod(x2, p), p) != nil
		if got := onCurve(PublicKey{byte(y)}); got != want {
			t.Errorf("y = %d: got %v", y, got)
		}
		if want {
			points++
		}
	}
	if points < 60 || points > 140 {
		t.Errorf("%d of 200 are points, want about half", points)
	}
}

func TestEveryRealKeyIsAccepted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "seed")
		private := ed25519.NewKeyFromSeed(seed)
		key, err := NewPublicKey(private.Public().(ed25519.PublicKey))
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParsePublicKey(key.String())
		if err != nil || again != key {
			t.Fatalf("%v, %v", again, err)
		}
		message := rapid.SliceOf(rapid.Byte()).Draw(t, "message")
		sig := ed25519.Sign(private, message)
		if !key.Verify(message, sig) {
			t.Fatal("its signature does not verify")
		}
		sig[rapid.IntRange(0, 63).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if key.Verify(message, sig) {
			t.Fatal("an altered signature verifies")
		}
	})
}

func FuzzParsePublicKey(f *testing.F) {
	for _, text := range []string{hex7, strings.ToUpper(hex9), " " + hex1 + "\n", smallOrderY[3], "x", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, err := ParsePublicKey(text)
		if err != nil {
			if key != (PublicKey{}) {
				t.Fatal("a key beside an error")
			}
			return
		}
		if key.String() != strings.ToLower(strings.TrimSpace(text)) {
			t.Fatalf("%q became %s", text, key)
		}
		if len(key.ID()) != 16 || !strings.HasPrefix(key.Fingerprint(), "SHA256:") {
			t.Fatalf("names %s %s", key.ID(), key.Fingerprint())
		}
	})
}
