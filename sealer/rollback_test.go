package sealer

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
)

func rollbackEvent(verb events.Verb, id string, seq uint64) *events.Event {
	key := events.Key{PromptHash: testPrompt, Session: testSession, Chain: "c"}
	payload := fmt.Sprintf(`{"v":1,"event_id":%q,"outcome":"failed","reason":%q}`, id, id)
	if verb == events.VerbStep {
		payload = fmt.Sprintf(`{"v":1,"event_id":%q,"kind":{"kind":"step_executed","step_id":%q,"step_index":0,"request_fingerprints":[],"source_line":"x","parsed_expr_digest":%q}}`,
			id, id, strings.Repeat("0", 64))
	}
	return events.Decode(events.Message{Subject: key.Subject(verb), Payload: []byte(payload), StreamSeq: seq, BrokerMS: 1_790_000_000_000 + seq}, events.DefaultLimits)
}

// Case C06: the database goes back to a backup from before the end of a chain, and
// the chain goes on otherwise and is sealed again. What was sealed first stands
// byte for byte, both ends are named in the chain's history, and the second says
// that it comes from a later epoch.
func TestC06RolledBackAndSealedAgain(t *testing.T) {
	t.Parallel()
	m := sidecar.NewMemory()
	sidecars := openSidecars(t, m)
	first := openStore(t, t.TempDir())
	feed(t, first, []*events.Event{rollbackEvent(events.VerbStep, "a", 1), rollbackEvent(events.VerbStep, "b", 2)}, 9)
	var backup bytes.Buffer
	if _, err := first.Backup(t.Context(), &backup); err != nil {
		t.Fatal(err)
	}
	feed(t, first, []*events.Event{rollbackEvent(events.VerbStep, "c", 3), rollbackEvent(events.VerbSeal, "y", 4)}, 9)
	sealAll(t, Config{Store: first, Sidecars: sidecars, SkipAudit: true})
	before := dump(t, m)

	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, store.DatabaseFile), backup.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	second := openStore(t, dir)
	feed(t, second, []*events.Event{rollbackEvent(events.VerbStep, "d", 3), rollbackEvent(events.VerbSeal, "z", 4)}, 9)
	sealAll(t, Config{Store: second, Sidecars: sidecars, SkipAudit: true})

	key := events.Key{PromptHash: testPrompt, Session: testSession, Chain: "c"}
	one, err := first.Chain(key)
	if err != nil {
		t.Fatal(err)
	}
	two, err := second.Chain(key)
	if err != nil {
		t.Fatal(err)
	}
	if *one.Seal.Head == *two.Seal.Head || one.Fixed.Epoch != 1 || two.Fixed.Epoch != 2 {
		t.Errorf("heads %s and %s, epochs %d and %d", one.Seal.Head, two.Seal.Head, one.Fixed.Epoch, two.Fixed.Epoch)
	}
	after := dump(t, m)
	for name, text := range before {
		if !strings.HasSuffix(name, ".root") && after[name] != text {
			t.Errorf("%s is not what was sealed first", name)
		}
	}
	pointer, roots, err := sidecars.BundleRoots(t.Context(), sidecar.Place{PromptHash: testPrompt, Session: testSession}, "c")
	if err != nil || len(roots) != 2 || pointer == nil || *pointer != two.Seal.BundleRoot {
		t.Fatalf("%v, %v, %v", pointer, roots, err)
	}
	for _, r := range []*store.ChainRecord{one, two} {
		if content(t, m, r.Seal.Path) == "" || content(t, m, r.Seal.BundlePath) == "" {
			t.Errorf("the end with head %s has no evidence", r.Seal.Head)
		}
	}
}
