package bundle

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
)

// SignatureCheck is the outcome of checking the signature section. Whom to
// trust is not this package's question.
type SignatureCheck struct {
	Signed    bool   // there is a signature section
	PublicKey string // 64 lower-case hex digits; "" when unsigned
	Valid     bool   // it verifies over the root that the file states
	Finding   *Finding
}

// CheckSignature checks the signature over the stored root. It says nothing
// about the content unless CheckIntegrity found the root to be right. The
// error is a *FormatError: the section is not of the form in the package doc.
func (b *Bundle) CheckSignature() (SignatureCheck, error) {
	if kind := b.Signature.Kind(); kind == Absent || kind == Null {
		return SignatureCheck{}, nil
	}
	public, signature, err := readSignature(b.Signature)
	if err != nil {
		return SignatureCheck{}, err
	}
	out := SignatureCheck{Signed: true, PublicKey: hex.EncodeToString(public)}
	root := b.StoredRoot()
	switch {
	case root == "":
		out.Finding = &Finding{SignatureWithoutRoot, "signature", "there is no root that the signature could be checked against"}
	case !VerifyRoot(public, root, signature):
		out.Finding = &Finding{SignatureInvalid, "signature", "the signature does not verify over the root of the file"}
	default:
		out.Valid = true
	}
	return out, nil
}

func readSignature(v Value) (public ed25519.PublicKey, signature []byte, err error) {
	if v.Kind() != Object {
		return nil, nil, faultf(BadSignature, "signature", "want an object, got %s", v.Kind())
	}
	if name := v.Get("algorithm"); name.Kind() != String || name.Text() != Algorithm {
		return nil, nil, faultf(BadSignature, "signature.algorithm", "not %q", Algorithm)
	}
	if public, err = readHex(v, "public_key", ed25519.PublicKeySize); err != nil {
		return nil, nil, err
	}
	if signature, err = readHex(v, "signature", ed25519.SignatureSize); err != nil {
		return nil, nil, err
	}
	if extra := extraMembers(v, []string{"algorithm", "public_key", "signature"}); len(extra) > 0 {
		return nil, nil, faultf(BadSignature, "signature", "members that do not belong there: %s", QuoteList(extra))
	}
	return public, signature, nil
}

// readHex reads a member that is exactly size bytes as lower-case hex.
func readHex(v Value, name string, size int) ([]byte, error) {
	text := v.Get(name)
	if text.Kind() != String || len(text.Text()) != 2*size || !isLowerHex(text.Text()) {
		return nil, faultf(BadSignature, "signature."+name, "want %d lower-case hex digits", 2*size)
	}
	return hex.DecodeString(text.Text())
}

// VerifyRoot checks an Ed25519 signature over the bytes of a root string.
// Keys that are not canonically encoded or of small order verify nothing.
func VerifyRoot(public ed25519.PublicKey, root string, signature []byte) bool {
	return usableKey(public) && ed25519.Verify(public, []byte(root), signature)
}

// smallOrderY lists, little-endian, the y coordinates of the eight points
// whose order divides 8 (RFC 8032, section 5.1: the cofactor is 8).
var smallOrderY = [...]string{
	"0000000000000000000000000000000000000000000000000000000000000000",
	"0100000000000000000000000000000000000000000000000000000000000000",
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
}

// fieldPrime is 2^255-19, little-endian hex.
const fieldPrime = "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"

// usableKey refuses encodings with y >= p and points of small order. A point
// with x = 0 is of small order, so its second encoding is refused too.
func usableKey(public ed25519.PublicKey) bool {
	if len(public) != ed25519.PublicKeySize {
		return false
	}
	y := bytes.Clone(public)
	y[31] &= 0x7f
	for _, small := range smallOrderY {
		if hex.EncodeToString(y) == small {
			return false
		}
	}
	return bytes.Compare(reversed(y), reversed(mustHex(fieldPrime))) < 0
}

func reversed(b []byte) []byte {
	out := make([]byte, len(b))
	for i, c := range b {
		out[len(b)-1-i] = c
	}
	return out
}

func mustHex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic("bundle: bad constant " + s)
	}
	return b
}

// appendSignature appends the signature section over a root.
func appendSignature(dst []byte, signer crypto.Signer, root string) ([]byte, error) {
	public, ok := signer.Public().(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("sign bundle: the key is %T, not Ed25519", signer.Public())
	}
	signature, err := signer.Sign(nil, []byte(root), crypto.Hash(0))
	if err != nil {
		return nil, fmt.Errorf("sign bundle: %w", err)
	}
	if !VerifyRoot(public, root, signature) {
		return nil, fmt.Errorf("sign bundle: the signature does not verify with the key's public half")
	}
	dst = append(dst, `{"algorithm":"`+Algorithm+`","public_key":"`...)
	dst = append(dst, hex.EncodeToString(public)...)
	dst = append(dst, `","signature":"`...)
	dst = append(dst, hex.EncodeToString(signature)...)
	return append(dst, `"}`...), nil
}
