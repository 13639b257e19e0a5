package verifier

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaind/chaind/segments"
)

var (
	seed7 = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32))
	seed9 = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{9}, 32))
)

func drawKind(t *rapid.T) segments.Kind {
	id := rapid.SampledFrom([]string{"a", "b", "c", "é\u2028\"", ""})
	digest := segments.Sum([]byte{byte(rapid.IntRange(0, 3).Draw(t, "digest"))})
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		return &segments.IntentBound{IntentDigest: digest, IntentLen: rapid.Uint32().Draw(t, "len")}
	case 1, 2:
		plan := &segments.CompCommitted{PlanCommitIDHex: digest.String(), CompSemanticSHA256: digest,
			StepTopo: rapid.SliceOfN(id, 0, 5).Draw(t, "topo")}
		if rapid.IntRange(0, 9).Draw(t, "bad id") == 0 {
			plan.PlanCommitIDHex = "other"
		}
		return plan
	case 3, 4:
		return &segments.StepExecuted{StepID: id.Draw(t, "step"), RequestFingerprints: []string{}, ParsedExprDigest: digest}
	}
	seal := &segments.RunSealed{RunID: segments.RunID(digest), RunBundleDigest: digest}
	if rapid.IntRange(0, 9).Draw(t, "bad run") == 0 {
		seal.RunID = "pr"
	}
	if rapid.IntRange(0, 9).Draw(t, "index") == 0 {
		n := rapid.SampledFrom([]uint64{0, 1<<53 - 1, 1 << 53, 1<<64 - 1}).Draw(t, "resource")
		seal.ResourceIndex = &n
	}
	return seal
}

// drawBundle makes chains that are mostly right, so that the rules behind the
// links are reached.
func drawBundle(t *rapid.T) *segments.Bundle {
	b := &segments.Bundle{Envelope: segments.Envelope{Scope: segments.Scope{
		SchemaVersion: 1, PromptHash: "p", ExecuteSessionID: "s", CatalogCGSHash: "c", EntryID: "e",
		TenantID: rapid.SampledFrom([]string{"", "t"}).Draw(t, "tenant"),
	}}}
	var chain segments.Builder
	for range rapid.IntRange(0, 8).Draw(t, "segments") {
		if rapid.IntRange(0, 19).Draw(t, "number") == 0 {
			chain.Next += 2
		}
		var at *uint64
		if rapid.Bool().Draw(t, "timed") {
			ms := rapid.Uint64Range(0, 5).Draw(t, "ms")
			at = &ms
		}
		b.Segments = append(b.Segments, chain.Append(drawKind(t), at))
		if rapid.IntRange(0, 29).Draw(t, "link") == 0 {
			wrong := segments.Sum([]byte("x"))
			b.Segments[len(b.Segments)-1].Prev = &wrong
		}
	}
	b.Head = chain.Head
	spoil(t, b)
	return b
}

func spoil(t *rapid.T, b *segments.Bundle) {
	once := func(name string) bool { return rapid.IntRange(0, 9).Draw(t, name) == 0 }
	if once("version") {
		b.Scope.SchemaVersion = 2
	}
	if once("no head") {
		b.Head = nil
	} else if once("wrong head") {
		head := segments.Sum(nil)
		b.Head = &head
	}
	if once("anchored") {
		ref := "pc1"
		b.Anchors.PlanCommitRef = &ref
	}
	if head := b.Head; head != nil && rapid.Bool().Draw(t, "signed") {
		b.Signature = segments.Sign(rapid.SampledFrom([]ed25519.PrivateKey{seed7, seed9}).Draw(t, "key"), &b.Scope, *head)
		if once("bad signature") {
			b.Signature.SignatureHex = strings.Repeat("01", 64)
		}
		if once("weak key") {
			b.Signature.PublicKeyHex = rapid.SampledFrom(naiveWeak).Draw(t, "weak")
		}
	}
}

// TestDifferentialBuilt compares on chains whose links mostly hold, which
// mutated bytes hardly ever give.
func TestDifferentialBuilt(t *testing.T) {
	t.Parallel()
	trusted := fmt.Sprintf("%x", []byte(seed7.Public().(ed25519.PublicKey)))
	rapid.Check(t, func(rt *rapid.T) {
		b := drawBundle(rt)
		in := naiveInputs{}
		if rapid.Bool().Draw(rt, "pinned") {
			in.trusted = []string{trusted}
		}
		if rapid.Bool().Draw(rt, "asked") {
			in.runID = segments.RunID(segments.Sum([]byte{1}))
		}
		text := segments.AppendBundle(nil, b)
		if rapid.IntRange(0, 9).Draw(rt, "shout") == 0 {
			text = bytes.ReplaceAll(text, []byte(`"kind":{"kind"`), []byte(`"extra":{"a":1,"a":2},"kind":{"kind"`))
		}
		compare(t, text, in)
		if t.Failed() {
			rt.Fatalf("bundle %s", text)
		}
	})
}
