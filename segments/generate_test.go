package segments_test

import (
	"fmt"
	"strings"

	"github.com/chaind/chaind/segments"
	"pgregory.net/rapid"
)

// Generators of arbitrary values of the format.

var (
	genText   = rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "\x00\x1f\x7f", "\"\\/\b\f\n\r\t", "\u2028\u2029<>&", "\U0001F600é", "\ufffd\ufeff"}))
	genDigest = rapid.Custom(func(t *rapid.T) segments.Digest {
		return segments.Digest(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "digest"))
	})
	genTexts = rapid.SliceOfN(genText, 0, 4)
	genU64   = rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 100), rapid.Uint64Range(segments.MaxSafeInteger-2, segments.MaxSafeInteger+5))
	genUUID  = rapid.StringMatching(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
)

var genKind = rapid.Custom(func(t *rapid.T) segments.Kind {
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		return &segments.IntentBound{IntentDigest: genDigest.Draw(t, "d"), IntentLen: rapid.Uint32().Draw(t, "n")}
	case 1:
		return &segments.CompCommitted{
			PlanCommitIDHex: genText.Draw(t, "id"), CompSemanticSHA256: genDigest.Draw(t, "d"), StepTopo: genTexts.Draw(t, "topo"),
		}
	case 2:
		return &segments.StepExecuted{
			StepID: genText.Draw(t, "id"), StepIndex: rapid.Uint32().Draw(t, "i"), EntryID: maybe(genText).Draw(t, "entry"),
			RequestFingerprints: genTexts.Draw(t, "fps"), SourceLine: genText.Draw(t, "line"), ParsedExprDigest: genDigest.Draw(t, "d"),
		}
	}
	return &segments.RunSealed{
		RunID: genText.Draw(t, "run"), StepID: maybe(genText).Draw(t, "id"),
		ResourceIndex: maybe(genU64).Draw(t, "i"), RunBundleDigest: genDigest.Draw(t, "d"),
	}
})

func maybe[T any](g *rapid.Generator[T]) *rapid.Generator[*T] { return rapid.Ptr(g, true) }

var genSegment = rapid.Custom(func(t *rapid.T) segments.Segment {
	return segments.Segment{
		Seq: genU64.Draw(t, "seq"), Prev: maybe(genDigest).Draw(t, "prev"),
		Kind: genKind.Draw(t, "kind"), EmittedAtMS: maybe(genU64).Draw(t, "at"),
	}
})

var genScope = rapid.Custom(func(t *rapid.T) segments.Scope {
	return segments.Scope{
		SchemaVersion: rapid.Uint32().Draw(t, "v"), TenantID: genText.Draw(t, "tenant"),
		LogicalSessionID: maybe(genText).Draw(t, "logical"), PromptHash: genText.Draw(t, "prompt"),
		ExecuteSessionID: genText.Draw(t, "session"), CatalogCGSHash: genText.Draw(t, "catalog"),
		DomainRevision: rapid.Uint32().Draw(t, "rev"), EntryID: genText.Draw(t, "entry"),
	}
})

var genBundle = rapid.Custom(func(t *rapid.T) *segments.Bundle {
	b := &segments.Bundle{Segments: rapid.SliceOfN(genSegment, 0, 5).Draw(t, "segments")}
	b.Scope = genScope.Draw(t, "scope")
	b.Head = maybe(genDigest).Draw(t, "head")
	b.Anchors = segments.Anchors{
		PlanCommitRef: maybe(genText).Draw(t, "ref"), TraceID: maybe(genUUID).Draw(t, "trace"),
		PlanCallIndex: maybe(genU64).Draw(t, "call"),
	}
	if rapid.Bool().Draw(t, "signed") {
		b.Signature = &segments.Signature{PublicKeyHex: genText.Draw(t, "key"), SignatureHex: genText.Draw(t, "sig")}
	}
	return b
})

// honest returns the kinds of an honest run with n steps.
func honest(n int) []segments.Kind {
	comp := &segments.CompCommitted{CompSemanticSHA256: segments.Sum([]byte("comp"))}
	comp.PlanCommitIDHex = comp.CompSemanticSHA256.String()
	kinds := []segments.Kind{&segments.IntentBound{IntentDigest: segments.Sum([]byte("intent")), IntentLen: 6}, comp}
	entry := "tracker"
	for i := range n {
		id := fmt.Sprintf("step-%d", i)
		comp.StepTopo = append(comp.StepTopo, id)
		kinds = append(kinds, honestStep(id, i, &entry))
	}
	digest := segments.Sum([]byte("run"))
	return append(kinds, &segments.RunSealed{RunID: segments.RunID(digest), RunBundleDigest: digest})
}

// honestStep makes a segment of some 450 preimage bytes.
func honestStep(id string, i int, entry *string) *segments.StepExecuted {
	return &segments.StepExecuted{
		StepID: id, StepIndex: uint32(i), EntryID: entry,
		RequestFingerprints: []string{segments.Sum([]byte(id)).String()},
		SourceLine:          `Issue{state="open"} ` + strings.Repeat("x", i%40),
		ParsedExprDigest:    segments.Sum([]byte("parsed " + id)),
	}
}

func chainOf(kinds []segments.Kind) *segments.Bundle {
	b := &segments.Bundle{Envelope: segments.Envelope{Scope: segments.Scope{
		SchemaVersion: segments.ScopeSchemaVersion, PromptHash: segments.Sum([]byte("prompt")).String(),
		ExecuteSessionID: "5e55107a5e55107a5e55107a5e55107a", CatalogCGSHash: "c", DomainRevision: 3, EntryID: "tracker",
	}}}
	var chain segments.Builder
	for i, k := range kinds {
		at := 1767225600000 + uint64(i)
		b.Segments = append(b.Segments, chain.Append(k, &at))
	}
	b.Head = chain.Head
	return b
}
