package events

import (
	"strings"
	"testing"

	"github.com/chaind/chaind/segments"
)

// Under the identity point one signature fits every message; the format's own
// check accepts it, so whoever calls a producer's signature valid must not.
func TestWeakProducerKeyIsNoSignature(t *testing.T) {
	t.Parallel()
	identity := "01" + strings.Repeat("00", 31)
	head := segments.Sum([]byte("any head"))
	scope := segments.Scope{SchemaVersion: 1}
	e := &Event{ProducerHead: &head, ProducerSignature: &segments.Signature{PublicKeyHex: identity, SignatureHex: identity + strings.Repeat("00", 32)}}
	if err := segments.VerifySignature(e.ProducerSignature, &scope, head); err != nil {
		t.Fatalf("the signature of this test does not even satisfy the equation: %v", err)
	}
	if e.soundlySigned(&scope) {
		t.Error("a signature under a weak key passes as the producer's")
	}
}
