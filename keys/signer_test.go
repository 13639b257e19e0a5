package keys

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/iotest"
)

var seed7 = strings.Repeat("07", 32)

func TestParseSigner(t *testing.T) {
	t.Parallel()
	for _, text := range []string{seed7, " " + seed7 + "\r\n", seed7 + hex7, strings.ToUpper(seed7 + hex7)} {
		signer, err := ParseSigner(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if signer.Public().String() != hex7 {
			t.Errorf("public key %s", signer.Public())
		}
		sig, err := signer.Sign([]byte("message"))
		if err != nil || !ed25519.Verify(mustKeyBytes(t, hex7), []byte("message"), sig) {
			t.Errorf("signature %x, %v", sig, err)
		}
	}
}

func mustKeyBytes(t *testing.T, text string) []byte {
	key := mustKey(t, text)
	return key[:]
}

// TestE10 has the seed of one key beside the public half of another.
func TestE10HalvesThatDisagree(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{
		seed7 + hex9:       ErrHalvesDiffer,
		seed7 + seed7:      ErrHalvesDiffer,
		"":                 ErrMalformedSeed,
		seed7[:62]:         ErrMalformedSeed,
		seed7 + "00":       ErrMalformedSeed,
		"zz" + seed7[2:]:   ErrMalformedSeed,
		`"` + seed7 + `"`:  ErrMalformedSeed,
		seed7 + " " + hex7: ErrMalformedSeed,
	} {
		signer, err := ParseSigner(text)
		if signer != nil || !errors.Is(err, want) {
			t.Errorf("%q: %v, %v, want %v", text, signer, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "0707") {
			t.Errorf("error shows the key: %v", err)
		}
	}
}

func TestSelfTestAtLoad(t *testing.T) {
	t.Parallel()
	wrong := ed25519.NewKeyFromSeed(make([]byte, 32))
	boom := errors.New("boom")
	for name, test := range map[string]struct {
		sign func([]byte) ([]byte, error)
		want error
	}{
		"signs with another key": {func(m []byte) ([]byte, error) { return ed25519.Sign(wrong, m), nil }, ErrSelfTest},
		"signs nothing":          {func([]byte) ([]byte, error) { return nil, nil }, ErrSelfTest},
		"fails":                  {func([]byte) ([]byte, error) { return nil, boom }, boom},
	} {
		signer, err := NewSigner(mustKeyBytes(t, hex7), test.sign)
		if signer != nil || !errors.Is(err, test.want) {
			t.Errorf("%s: %v, %v", name, signer, err)
		}
	}
	if _, err := NewSigner(make([]byte, 31), nil); !errors.Is(err, ErrMalformedKey) {
		t.Errorf("short key: %v", err)
	}
}

// A key that goes bad after its self-test gives an error, not a bad signature.
func TestSignVerifiesWhatItSigned(t *testing.T) {
	t.Parallel()
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32))
	flip := false
	signer, err := NewSigner(mustKeyBytes(t, hex7), func(m []byte) ([]byte, error) {
		sig := ed25519.Sign(private, m)
		if flip {
			sig[40] ^= 1
		}
		return sig, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	flip = true
	if sig, err := signer.Sign([]byte("message")); sig != nil || !errors.Is(err, ErrSelfTest) {
		t.Errorf("%x, %v", sig, err)
	}
}

func TestSecretsCannotBePrinted(t *testing.T) {
	t.Parallel()
	seed, err := ParseSeed(seed7)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := seed.Signer()
	if err != nil {
		t.Fatal(err)
	}
	type config struct {
		Seed, seed     Seed
		Signer, signer *Signer
	}
	var out bytes.Buffer
	for _, v := range []any{seed, &seed, signer, *signer, config{seed, seed, signer, signer}, []Seed{seed}, map[string]any{"k": seed}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%08b", "%t"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		b, _ := json.Marshal(v)
		out.Write(b)
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "v", v)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "v", v)
	}
	for _, leak := range []string{"0707", "7 7 7", "0x7, 0x7", "00000111 00000111", "BwcH"} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("output shows %q", leak)
		}
	}
	if seed.Reveal() != seed7 {
		t.Error("the one way out is closed")
	}
}

func TestGenerateSeed(t *testing.T) {
	t.Parallel()
	seed, err := GenerateSeed(bytes.NewReader(bytes.Repeat([]byte{7}, 32)))
	if err != nil || seed.Reveal() != seed7 {
		t.Errorf("%v", err)
	}
	seed, err = GenerateSeed(iotest.ErrReader(io.ErrNoProgress))
	if !errors.Is(err, io.ErrNoProgress) || seed.raw != nil {
		t.Errorf("%v", err)
	}
	if _, err := (Seed{}).Signer(); !errors.Is(err, ErrMalformedSeed) || (Seed{}).Reveal() != "" {
		t.Errorf("zero seed: %v", err)
	}
	if text := fmt.Sprint((*Signer)(nil)); text != "no signer" {
		t.Errorf("nil signer prints %q", text)
	}
}
