package sidecar

import (
	"crypto/ed25519"
	"fmt"
	"testing"

	"github.com/chaind/chaind/segments"
)

const (
	testPrompt  = "74cca950dc3d33908181dcef52a1afe4255aed08b3c2b285d6bf182ebe416d50"
	testSession = "5e55107a5e55107a5e55107a5e55107a"
	testDir     = "execute/" + testPrompt + "/" + testSession
)

var testPlace = Place{PromptHash: testPrompt, Session: testSession}

func runID(n int) string { return fmt.Sprintf("pr%064x", n) }

// testBundle makes a bundle whose chain depends on tag alone: a plan of one
// step, the step, and a seal for each run.
func testBundle(p Place, tag string, signed bool, runs ...string) *segments.Bundle {
	scope := segments.Scope{SchemaVersion: 1, TenantID: p.Tenant, PromptHash: p.PromptHash,
		ExecuteSessionID: p.Session, CatalogCGSHash: "c", EntryID: "e"}
	at := uint64(1767225600000)
	comp := segments.Sum([]byte(tag))
	var b segments.Builder
	list := []segments.Segment{
		b.Append(&segments.CompCommitted{PlanCommitIDHex: comp.String(), CompSemanticSHA256: comp, StepTopo: []string{"s"}}, &at),
		b.Append(&segments.StepExecuted{StepID: "s", RequestFingerprints: []string{}, SourceLine: tag}, &at),
	}
	for _, run := range runs {
		digest, err := segments.ParseDigest(run[2:])
		if err != nil {
			panic(err)
		}
		list = append(list, b.Append(&segments.RunSealed{RunID: run, RunBundleDigest: digest}, &at))
	}
	bundle := &segments.Bundle{Envelope: segments.Envelope{Scope: scope, Head: b.Head}, Segments: list}
	if signed {
		bundle.Signature = segments.Sign(testKey, &scope, *b.Head)
	}
	return bundle
}

var testKey = ed25519.NewKeyFromSeed(make([]byte, 32))

func testEvidence(p Place, tag string, signed bool, runs ...string) (Evidence, []byte) {
	b := testBundle(p, tag, signed, runs...)
	text := segments.AppendBundle(nil, b)
	return Evidence{Place: p, Class: Heads, Head: *b.Head, Body: Bytes(text), RunIDs: runs}, text
}

func openSidecars(t *testing.T, b Blobs) *Sidecars {
	t.Helper()
	s, err := Open(t.Context(), Config{Blobs: b})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func write(t *testing.T, s *Sidecars, e Evidence) Written {
	t.Helper()
	w, err := s.Write(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return w
}
