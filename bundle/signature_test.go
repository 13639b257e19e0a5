package bundle_test

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine/naive"
)

// Appendix D.2 of the format: the key whose seed is 00 01 … 1f.
const (
	publicHex    = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"
	signatureHex = "1a28d61a2a38769d080cb9c5007c651a10235370c9eb15cd427b04d81a4de1003e68879eceb86f2c3020272d668ca28688468e0917a2cd618dee2b853c56cc0e"
)

func testKey() ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	for i := range seed {
		seed[i] = byte(i)
	}
	return ed25519.NewKeyFromSeed(seed)
}

func TestSign(t *testing.T) {
	e1 := readFile(t, "testdata/e1.tsb")
	var signed bytes.Buffer
	if err := bundle.WriteSigned(&signed, mustParse(t, e1), testKey()); err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(e1, `"signature":null`, `"signature":{"algorithm":"ed25519","public_key":"`+publicHex+`","signature":"`+signatureHex+`"}`, 1)
	if signed.String() != want {
		t.Errorf("signed file is %s", signed.String())
	}
	b := mustParse(t, signed.String())
	if check, err := b.CheckSignature(); err != nil || !check.Signed || !check.Valid || check.PublicKey != publicHex || check.Finding != nil {
		t.Errorf("signature %+v, %v", check, err)
	}
	if check := mustIntegrity(t, b); len(check.Findings) > 0 {
		t.Errorf("findings %v", found(check.Findings))
	}
	if err := naive.Check(naive.MustParse(signed.String())); err != nil {
		t.Error(err)
	}
	var plain bytes.Buffer
	if err := bundle.WriteSigned(&plain, b, nil); err != nil || plain.String() != e1 {
		t.Errorf("without its signature the file is %s, %v", plain.String(), err)
	}
}

func TestSignatureFindings(t *testing.T) {
	signed := signedE1(t)
	for _, tt := range []struct {
		name string
		edit func(d map[string]any)
		code bundle.Code
	}{
		{"other signature", func(d map[string]any) { naive.Put(d, "2"+signatureHex[1:], "signature", "signature") }, bundle.SignatureInvalid},
		{"other key", func(d map[string]any) { naive.Put(d, strings.Repeat("17", 32), "signature", "public_key") }, bundle.SignatureInvalid},
		{"re-sealed", func(d map[string]any) { d["action"] = map[string]any{}; naive.Seal(d) }, bundle.SignatureInvalid},
		{"no root", func(d map[string]any) { naive.Put(d, nil, "integrity", "root") }, bundle.SignatureWithoutRoot},
		{"no integrity", func(d map[string]any) { delete(d, "integrity") }, bundle.SignatureWithoutRoot},
	} {
		doc := naive.MustParse(signed)
		tt.edit(doc)
		check, err := mustParse(t, naive.File(doc)).CheckSignature()
		if err != nil || !check.Signed || check.Valid || check.Finding == nil || check.Finding.Code != tt.code {
			t.Errorf("%s: %+v, %v", tt.name, check, err)
		}
	}
}

func signedE1(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	if err := bundle.WriteSigned(&out, mustParse(t, readFile(t, "testdata/e1.tsb")), testKey()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestSignatureSpelling(t *testing.T) {
	for _, tt := range []struct {
		path []any
		put  any
	}{
		{[]any{"signature"}, "x"}, {[]any{"signature"}, false}, {[]any{"signature"}, map[string]any{}},
		{[]any{"signature", "algorithm"}, "Ed25519"}, {[]any{"signature", "algorithm"}, nil}, {[]any{"signature", "algorithm"}, "rsa"},
		{[]any{"signature", "public_key"}, nil}, {[]any{"signature", "public_key"}, strings.ToUpper(publicHex)}, {[]any{"signature", "public_key"}, publicHex[2:]},
		{[]any{"signature", "public_key"}, publicHex + "00"}, {[]any{"signature", "public_key"}, " " + publicHex[1:]}, {[]any{"signature", "public_key"}, "g" + publicHex[1:]},
		{[]any{"signature", "signature"}, naive.Number("1")}, {[]any{"signature", "signature"}, strings.ToUpper(signatureHex)}, {[]any{"signature", "signature"}, signatureHex[1:]},
		{[]any{"signature", "signature"}, ""}, {[]any{"signature", "key_id"}, "k"},
	} {
		doc := naive.MustParse(signedE1(t))
		naive.Put(doc, tt.put, tt.path...)
		check, err := mustParse(t, naive.File(doc)).CheckSignature()
		if wantCode(t, err, bundle.BadSignature); check != (bundle.SignatureCheck{}) {
			t.Errorf("%v: a check came with the error", tt.path)
		}
	}
}

// TestWeakKeys: keys under which the curve equation holds for signatures that
// nobody made are refused, in every encoding.
func TestWeakKeys(t *testing.T) {
	identity := append([]byte{1}, make([]byte, 31)...)
	forged := append(bytes.Clone(identity), make([]byte, 32)...)
	accepted := 0
	for _, key := range []string{
		"0100000000000000000000000000000000000000000000000000000000000000",
		"0100000000000000000000000000000000000000000000000000000000000080",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"0000000000000000000000000000000000000000000000000000000000000000",
		"0000000000000000000000000000000000000000000000000000000000000080",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
	} {
		public, err := hex.DecodeString(key)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 64 {
			root := strings.Repeat("r", n)
			if ed25519.Verify(public, []byte(root), forged) {
				accepted++
			}
			if bundle.VerifyRoot(public, root, forged) {
				t.Errorf("key %s verifies a signature that nobody made", key)
			}
		}
	}
	if accepted < 64 {
		t.Errorf("only %d of the forgeries satisfy the equation: the test tests nothing", accepted)
	}
	if bundle.VerifyRoot(nil, "", forged) || bundle.VerifyRoot(identity[:31], "", forged) {
		t.Error("a key of the wrong size verifies")
	}
	for y := byte(0xed); y != 0; y++ { // 2^255-19 … 2^255-1
		public := append([]byte{y}, bytes.Repeat([]byte{0xff}, 30)...)
		if bundle.VerifyRoot(append(public, 0x7f), "root", forged) {
			t.Errorf("the key encoding %x is not canonical and verifies", public)
		}
	}
}

type signer struct {
	public crypto.PublicKey
	sign   func([]byte) ([]byte, error)
}

func (s signer) Public() crypto.PublicKey { return s.public }

func (s signer) Sign(_ io.Reader, message []byte, _ crypto.SignerOpts) ([]byte, error) {
	return s.sign(message)
}

func TestSignFaults(t *testing.T) {
	e1 := mustParse(t, readFile(t, "testdata/e1.tsb"))
	errAgent := errors.New("agent went away")
	for name, s := range map[string]signer{
		"other kind of key": {public: "x"},
		"signer fails":      {testKey().Public(), func([]byte) ([]byte, error) { return nil, errAgent }},
		"wrong signature":   {testKey().Public(), func([]byte) ([]byte, error) { return make([]byte, 64), nil }},
		"wrong public half": {ed25519.PublicKey(bytes.Repeat([]byte{7}, 32)), func(m []byte) ([]byte, error) { return ed25519.Sign(testKey(), m), nil }},
	} {
		err := bundle.WriteSigned(io.Discard, e1, s)
		if err == nil || name == "signer fails" != errors.Is(err, errAgent) {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken := naive.MustParse(readFile(t, "testdata/e1.tsb"))
	broken["action"] = map[string]any{}
	if err := bundle.WriteSigned(io.Discard, mustParse(t, naive.File(broken)), testKey()); err == nil {
		t.Error("a broken bundle was signed")
	}
	delete(broken, "integrity")
	if err := bundle.WriteSigned(io.Discard, mustParse(t, naive.File(broken)), testKey()); err == nil {
		t.Error("an unsealed bundle was signed")
	}
}

// WriteSigned relies on this order.
func TestSignatureIsTheLastMember(t *testing.T) {
	keys := naive.Keys(naive.MustParse(readFile(t, "testdata/e1.tsb")))
	if keys[len(keys)-1] != "signature" || !slices.IsSorted(keys) {
		t.Errorf("members are %q", keys)
	}
}
