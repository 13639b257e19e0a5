package verifier

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/chaind/chaind/segments"
)

// What may pass after one bit of an honest bundle was flipped is exactly this:
// a text that decodes to the same bundle, apart from times, anchors and, in an
// unsigned bundle, the scope (neither is hashed). White space and the spelling
// of strings, as JSON escapes, decode to the same. Even then the location and
// the run snapshot, when they are known, bind parts of an unsigned scope.
func sameEvidence(honest, flipped *segments.Bundle) error {
	a, b := *honest, *flipped
	a.Anchors, b.Anchors = segments.Anchors{}, segments.Anchors{}
	if a.Signature == nil {
		a.Scope, b.Scope = segments.Scope{}, segments.Scope{}
	}
	a.Segments, b.Segments = timeless(a.Segments), timeless(b.Segments)
	if !reflect.DeepEqual(a, b) {
		return fmt.Errorf("%+v is not %+v", b, a)
	}
	return nil
}

func timeless(list []segments.Segment) []segments.Segment {
	out := make([]segments.Segment, len(list))
	for i, s := range list {
		s.EmittedAtMS = nil
		out[i] = s
	}
	return out
}

var damaged = []string{"p01-full-run-unsigned", "p02-full-run-signed", "p04-unicode-and-escapes"}

func TestEveryFlippedBit(t *testing.T) {
	t.Parallel()
	for _, name := range damaged {
		for _, mode := range []Mode{Strict, Reference} {
			t.Run(name+"/"+string(mode), func(t *testing.T) {
				t.Parallel()
				flipEveryBit(t, name, mode)
			})
		}
	}
}

func flipEveryBit(t *testing.T, name string, mode Mode) {
	v := loadVector(t, name)
	o := v.options(t, mode)
	honest, _, err := segments.ReadBundle(bytes.NewReader(v.bundle))
	if err != nil {
		t.Fatal(err)
	}
	step := 1
	if mode == Reference || testing.Short() {
		step = 7 // a bit of every byte, another one each time
	}
	passed := 0
	for bit := 0; bit < 8*len(v.bundle); bit += step {
		flipped := bytes.Clone(v.bundle)
		flipped[bit/8] ^= 1 << (bit % 8)
		if r := verifyBytes(flipped, o); r.ExitCode != ExitPass {
			continue
		}
		passed++
		got, _, err := segments.ReadBundle(bytes.NewReader(flipped))
		if err != nil {
			t.Fatalf("bit %d: passes and does not decode: %v", bit, err)
		}
		if mode == Reference {
			lenient(honest, got)
		}
		if err := sameEvidence(honest, got); err != nil {
			t.Fatalf("bit %d of byte %d (%q) passes: %v", bit%8, bit/8, flipped[max(0, bit/8-20):bit/8+1], err)
		}
	}
	t.Logf("%d of %d flips pass", passed, 8*len(v.bundle)/step)
}

// lenient undoes what one flipped bit may do to a bundle that passes the
// reference: spoil the name of the declared head (Q9) or of the signature (Q14),
// or the case of a hexadecimal digit of the signature.
func lenient(honest, got *segments.Bundle) {
	if got.Head == nil {
		got.Head = honest.Head
	}
	if got.Signature == nil {
		got.Signature = honest.Signature
	}
	if got.Signature != nil && honest.Signature != nil &&
		strings.EqualFold(got.Signature.PublicKeyHex+got.Signature.SignatureHex, honest.Signature.PublicKeyHex+honest.Signature.SignatureHex) {
		got.Signature = honest.Signature
	}
}

func TestEveryPrefix(t *testing.T) {
	t.Parallel()
	for _, name := range damaged {
		v := loadVector(t, name)
		for _, mode := range []Mode{Strict, Reference} {
			o, stride := v.options(t, mode), 1
			if mode == Reference || testing.Short() {
				stride = 7
			}
			for n := 0; n < len(v.bundle); n += stride {
				if r := verifyBytes(v.bundle[:n], o); r.ExitCode != ExitEnvelope || r.Verdict != Broken {
					t.Fatalf("%s: the first %d bytes give %s, exit code %d", name, n, r.Verdict, r.ExitCode)
				}
			}
			if r := verifyBytes(v.bundle, o); r.ExitCode != ExitPass {
				t.Errorf("%s: the whole gives exit code %d", name, r.ExitCode)
			}
		}
	}
}
