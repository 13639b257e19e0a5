package sealer

import (
	"strings"
	"testing"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
)

// Case C18: the runs of two sessions whose payloads are the same have the same
// segments, heads and run ids, as the format has it. Their evidence is no other's all the same: it
// lies at its session's place, and the signature of one does not hold for the scope
// of the other, with which alone it would pass there; the trust bundles have roots
// of their own.
func TestC18EvidenceOfOneSessionIsNotAnothers(t *testing.T) {
	t.Parallel()
	m := sidecar.NewMemory()
	db := openStore(t, t.TempDir())
	sessions := []string{testSession, strings.Repeat("ee", 16)}
	for i, session := range sessions {
		feed(t, db, []*events.Event{runEvent(session, events.VerbCommit, "p", uint64(3*i+1)),
			runEvent(session, events.VerbStep, "a", uint64(3*i+2)), runEvent(session, events.VerbSeal, "z", uint64(3*i+3))}, 9)
	}
	sealAll(t, Config{Store: db, Sidecars: openSidecars(t, m), Signer: fixedSigner(t), SkipAudit: true})

	var sealed []*segments.Bundle
	roots, paths := map[string]bool{}, map[string]bool{}
	for _, session := range sessions {
		r, err := db.Chain(events.Key{PromptHash: testPrompt, Session: session, Chain: "c"})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(r.Seal.Path, session) {
			t.Errorf("the evidence of session %s lies in %s", session, r.Seal.Path)
		}
		b, _, err := segments.ReadBundle(strings.NewReader(content(t, m, r.Seal.Path)))
		if err != nil {
			t.Fatal(err)
		}
		sealed, roots[r.Seal.BundleRoot.String()], paths[r.Seal.Path] = append(sealed, b), true, true
	}
	if *sealed[0].Head != *sealed[1].Head {
		t.Fatalf("heads %s and %s: the runs are not alike", sealed[0].Head, sealed[1].Head)
	}
	if len(roots) != 2 || len(paths) != 2 {
		t.Errorf("roots %v, paths %v", roots, paths)
	}
	for i, own := range sealed {
		other := sealed[1-i]
		if err := segments.VerifySignature(own.Signature, &own.Scope, *own.Head); err != nil {
			t.Errorf("session %s: %v", own.Scope.ExecuteSessionID, err)
		}
		if segments.VerifySignature(own.Signature, &other.Scope, *own.Head) == nil {
			t.Errorf("the signature for session %s holds for session %s", own.Scope.ExecuteSessionID, other.Scope.ExecuteSessionID)
		}
	}
}
