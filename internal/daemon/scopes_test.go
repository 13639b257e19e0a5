package daemon

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/sealer"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
)

// TestCheckNamesAHeadOfTwoScopes: two chains of a session with the same segments
// and different scopes share a head, and only the first has evidence under it.
func TestCheckNamesAHeadOfTwoScopes(t *testing.T) {
	t.Parallel()
	s, err := store.Open(store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	prompt, session, digest := strings.Repeat("a1", 32), strings.Repeat("b2", 16), strings.Repeat("c3", 32)
	batch := &events.Batch{Stream: events.Stream{Name: "EVIDENCE", CreatedNS: 1}}
	for _, chain := range []string{"first", "second"} {
		key := events.Key{PromptHash: prompt, Session: session, Chain: chain}
		scope := fmt.Sprintf(`"scope":{"schema_version":1,"prompt_hash":%q,"execute_session_id":%q,"catalog_cgs_hash":"c","domain_revision":1,"entry_id":%q}`,
			prompt, session, chain)
		commit := fmt.Sprintf(`"kind":{"kind":"comp_committed","plan_commit_id_hex":%q,"comp_semantic_sha256":%[1]q,"step_topo":[]}`, digest)
		batch.Events = append(batch.Events, decodedEvent(key, events.VerbCommit, `{"v":1,"event_id":"a",`+scope+`,`+commit+`}`, len(batch.Events)+1))
		batch.Events = append(batch.Events, decodedEvent(key, events.VerbSeal, `{"v":1,"event_id":"z"}`, len(batch.Events)+1))
	}
	if _, err := s.Append(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	sealInto(t, s, dir, 2)
	report, err := CheckEvidence(t.Context(), s, dir, nil)
	if err != nil || len(report.Findings) != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	f := report.Findings[0]
	if f.Class != store.Contradiction || f.Chain.Chain != "first" && f.Chain.Chain != "second" || !strings.Contains(f.Detail, "another scope") {
		t.Errorf("finding %+v", f)
	}
}

func decodedEvent(key events.Key, verb events.Verb, payload string, seq int) *events.Event {
	return events.Decode(events.Message{Subject: key.Subject(verb), Payload: []byte(payload), StreamSeq: uint64(seq), BrokerMS: 1780000000000}, events.DefaultLimits)
}

// sealInto works off n seal jobs.
func sealInto(t *testing.T, s *store.Store, dir string, n int) {
	t.Helper()
	files, err := sidecar.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	sidecars, err := sidecar.Open(t.Context(), sidecar.Config{Blobs: files})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{}, n)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	worker := sealer.New(sealer.Config{Store: s, Sidecars: sidecars, OnSealed: func(sealer.Sealed) { done <- struct{}{} }})
	go func() { ended <- worker.Run(ctx) }()
	for range n {
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Fatalf("seals do not come: %+v", worker.Status())
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
