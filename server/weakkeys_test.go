package server

import (
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
)

// smallOrder are the y coordinates of all points of order 1, 2, 4 and 8, in
// both spellings where there are two; the sign of x makes them 14 encodings.
var smallOrder = []string{
	"0100000000000000000000000000000000000000000000000000000000000000",
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"0000000000000000000000000000000000000000000000000000000000000000",
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
}

// TestE04SmallOrderKeysAreNotServed: the refusal of weak keys holds on the way
// over HTTP too, as key and as R, pinned and not.
func TestE04SmallOrderKeysAreNotServed(t *testing.T) {
	t.Parallel()
	signer := newSigner(t, 1)
	list, _, err := keys.Merge([]keys.Entry{{PublicKey: public(signer), Status: keys.Active}})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, y := range smallOrder {
		for _, sign := range []byte{0, 0x80} {
			raw, err := hex.DecodeString(y)
			if err != nil {
				t.Fatal(err)
			}
			raw[31] |= sign
			point := hex.EncodeToString(raw)
			n++
			for _, s := range []segments.Signature{
				{PublicKeyHex: point, SignatureHex: point + strings.Repeat("0", 64)},
				{PublicKeyHex: public(signer).String(), SignatureHex: point + strings.Repeat("0", 64)},
			} {
				for _, trust := range []*keys.TrustList{nil, list} {
					b := loadTree(t, "two-run")
					b.change(headFile, editBundle(t, func(bundle *segments.Bundle) { bundle.Signature = &s }))
					h := newHandler(t, Config{Sidecars: b.sidecars(), Trust: func() *keys.TrustList { return trust }, Logger: testLogger(t)})
					wantProblem(t, get(h, http.MethodGet, runURL), http.StatusUnprocessableEntity, typeUnknownArtifact)
				}
			}
		}
	}
	if slices.Sort(smallOrder); n != 14 || len(slices.Compact(smallOrder)) != 7 {
		t.Errorf("%d encodings", n)
	}
}
