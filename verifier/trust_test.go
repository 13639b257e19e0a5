package verifier

import (
	"bytes"
	"crypto/sha512"
	"encoding/hex"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
)

var (
	hex7 = hex.EncodeToString(seed7[32:])
	hex9 = hex.EncodeToString(seed9[32:])
)

// signedBy is one honest bundle, signed by seed 07 or 09.
func signedBy(t testing.TB, key []byte) []byte {
	t.Helper()
	name := "p02-full-run-signed"
	if string(key) == string(seed9) {
		name = "n13-key-not-trusted"
	}
	return loadVector(t, name).bundle
}

func listOf(t testing.TB, entries ...keys.FileEntry) *keys.TrustList {
	t.Helper()
	parsed, err := keys.ParseFile(entries)
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := keys.Merge(parsed)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestKRotation goes through a rotation from key 7 to key 9: overlap, the old
// key dropped (K01), retired, revoked (K11), and brought back (K03).
func TestKRotation(t *testing.T) {
	t.Parallel()
	entry := func(key, status string) keys.FileEntry {
		return keys.FileEntry{PublicKey: key, Status: status, Comment: "c-" + status}
	}
	for name, test := range map[string]struct {
		list         *keys.TrustList
		old, new     keys.State
		oldExit      int
		code         Code
		oldVerdict   Verdict
		oldMentioned string
	}{
		"unpinned": {nil, "SIGNED-UNPINNED", "SIGNED-UNPINNED", 0, "", Pass, "nobody said"},
		"overlap":  {listOf(t, entry(hex7, ""), entry(hex9, "")), "TRUSTED", "TRUSTED", 0, "", Pass, "trusted key"},
		"upper":    {trustOf(t, " "+strings.ToUpper(hex7)+"\r\n,"+hex9+","+hex7), "TRUSTED", "TRUSTED", 0, "", Pass, "trusted key"},
		"dropped":  {listOf(t, entry(hex9, "")), "UNTRUSTED", "TRUSTED", 4, CodeUntrustedKey, Untrusted, "list it as retired"},
		"retired":  {listOf(t, entry(hex9, ""), entry(hex7, "retired")), "RETIRED", "TRUSTED", 0, CodeRetiredKey, Pass, "retired"},
		"revoked":  {listOf(t, entry(hex9, ""), entry(hex7, "revoked")), "REVOKED", "TRUSTED", 4, CodeRevokedKey, Untrusted, "revokes"},
		"returned": {listOf(t, entry(hex9, ""), entry(hex7, "active"), entry(hex7, "retired")), "RETIRED", "TRUSTED", 0, CodeRetiredKey, Pass, "retired"},
	} {
		old := verifyBytes(signedBy(t, seed7), Options{Trust: test.list})
		if old.Signature.State != test.old || old.ExitCode != test.oldExit || old.Verdict != test.oldVerdict {
			t.Errorf("%s, old key: %s, exit code %d, %s", name, old.Signature.State, old.ExitCode, old.Verdict)
		}
		if test.code != "" && !slices.Contains(slices.Concat(Codes(old.Errors), Codes(old.Warnings)), test.code) {
			t.Errorf("%s: no %s", name, test.code)
		}
		if got := old.check("trust").Detail; !strings.Contains(got, test.oldMentioned) {
			t.Errorf("%s: %q does not say %q", name, got, test.oldMentioned)
		}
		if now := verifyBytes(signedBy(t, seed9), Options{Trust: test.list}); now.Signature.State != test.new || now.ExitCode != 0 {
			t.Errorf("%s, new key: %s, exit code %d", name, now.Signature.State, now.ExitCode)
		}
	}
	report := verifyBytes(signedBy(t, seed7), Options{Trust: listOf(t, entry(hex7, "retired"))})
	if report.Signature.Comment != "c-retired" || report.Signature.PublicKey != hex7 || len(report.Signature.KeyID) != 16 {
		t.Errorf("%+v", report.Signature)
	}
}

// In reference mode a revoked key is one that is not listed, and a list of
// nothing but revoked keys is still a list.
func TestReferenceTrust(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]int{"active": 0, "retired": 0, "revoked": 4} {
		list := listOf(t, keys.FileEntry{PublicKey: hex7, Status: status})
		if r := verifyBytes(signedBy(t, seed7), Options{Mode: Reference, Trust: list}); r.ExitCode != want {
			t.Errorf("%s: exit code %d, want %d", status, r.ExitCode, want)
		}
	}
}

// A bad signature is bad whatever the list says about the key it names.
func TestInvalidBeatsTheList(t *testing.T) {
	t.Parallel()
	v := loadVector(t, "n11-wrong-signature")
	for _, list := range []*keys.TrustList{nil, listOf(t, keys.FileEntry{PublicKey: hex7}), listOf(t, keys.FileEntry{PublicKey: hex7, Status: "revoked"})} {
		r := verifyBytes(v.bundle, Options{Trust: list})
		if r.Signature.State != keys.StateInvalid || !slices.Equal(Codes(r.Errors), []Code{CodeSignatureInvalid}) {
			t.Errorf("%v: %s, %v", list, r.Signature.State, Codes(r.Errors))
		}
	}
	r := verifyBytes(v.bundle, Options{Trust: listOf(t, keys.FileEntry{PublicKey: hex9})})
	if !slices.Equal(Codes(r.Errors), []Code{CodeSignatureInvalid, CodeUntrustedKey}) {
		t.Errorf("unlisted: %v", Codes(r.Errors))
	}
}

func TestSignatureWithoutHead(t *testing.T) {
	t.Parallel()
	b := &segments.Bundle{Envelope: segments.Envelope{Scope: endlessScope, Signature: &segments.Signature{
		PublicKeyHex: hex7, SignatureHex: strings.Repeat("0", 128)}}}
	r := verifyBytes(segments.AppendBundle(nil, b), Options{})
	if r.Verdict != Empty || !slices.Contains(Codes(r.Errors), CodeSignatureInvalid) {
		t.Errorf("%s, %v", r.Verdict, Codes(r.Errors))
	}
}

// withSmallR signs the vector's bundle with the honest key 7 and, as no honest
// signer does, the identity for R: S = k*a fits the equation for every message.
func withSmallR(t *testing.T) []byte {
	t.Helper()
	b, _, err := segments.ReadBundle(bytes.NewReader(signedBy(t, seed7)))
	if err != nil {
		t.Fatal(err)
	}
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	little := func(raw []byte) *big.Int {
		raw = slices.Clone(raw)
		slices.Reverse(raw)
		return new(big.Int).SetBytes(raw)
	}
	secret := sha512.Sum512(seed7[:32])
	secret[0] &= 248
	secret[31] = secret[31]&127 | 64
	r := append([]byte{1}, make([]byte, 31)...)
	k := sha512.Sum512(slices.Concat(r, seed7[32:], segments.AppendHeadMessage(nil, &b.Scope, *b.Head)))
	product := new(big.Int).Mul(little(k[:]), little(secret[:32]))
	scalar := product.Mod(product, order).FillBytes(make([]byte, 32))
	slices.Reverse(scalar)
	b.Signature.SignatureHex = hex.EncodeToString(append(r, scalar...))
	return segments.AppendBundle(nil, b)
}

// TestSmallOrderR: a signature whose R is of small order holds for the reference,
// and strict mode refuses it also where the key is trusted.
func TestSmallOrderR(t *testing.T) {
	t.Parallel()
	text := withSmallR(t)
	for _, list := range []*keys.TrustList{nil, listOf(t, keys.FileEntry{PublicKey: hex7})} {
		r := verifyBytes(text, Options{Trust: list})
		if r.ExitCode != ExitEnvelope || !slices.Equal(Codes(r.Errors), []Code{CodeSignatureInvalid}) || r.Signature.State != keys.StateInvalid {
			t.Errorf("strict: exit code %d, %v, %s", r.ExitCode, Codes(r.Errors), r.Signature.State)
		}
		if r := verifyBytes(text, Options{Mode: Reference, Trust: list}); r.ExitCode != ExitPass {
			t.Errorf("reference: exit code %d: %s", r.ExitCode, r.Summary)
		}
	}
}
