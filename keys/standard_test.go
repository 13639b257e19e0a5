package keys

import (
	"crypto"
	"crypto/ed25519"
	"strings"
	"testing"
)

func TestStandardSignerSignsMessagesOnly(t *testing.T) {
	t.Parallel()
	signer, err := ParseSigner(strings.Repeat("07", 32))
	if err != nil {
		t.Fatal(err)
	}
	std := signer.Standard()
	message := []byte("sha256:00")
	signature, err := std.Sign(nil, message, crypto.Hash(0))
	if err != nil || !ed25519.Verify(std.Public().(ed25519.PublicKey), message, signature) {
		t.Fatalf("%x, %v", signature, err)
	}
	if signature, err := std.Sign(nil, message, crypto.SHA512); err == nil || signature != nil {
		t.Errorf("a digest was signed: %x, %v", signature, err)
	}
	if unsigned := (*Signer)(nil); unsigned.Standard() != nil {
		t.Error("no key gives a signer")
	}
}
