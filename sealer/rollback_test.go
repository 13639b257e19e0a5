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
	"github.com/google/go-cmp/cmp"
)

// rollbackRun is the run id that both ends of the chain seal.
var rollbackRun = "pr" + strings.Repeat("7", 64)

func rollbackEvent(verb events.Verb, id string, seq uint64) *events.Event {
	return runEvent(testSession, verb, id, seq)
}

// runEvent is an event of the chain "c" of a session: all that is hashed of it is
// the same in each.
func runEvent(session string, verb events.Verb, id string, seq uint64) *events.Event {
	key := events.Key{PromptHash: testPrompt, Session: session, Chain: "c"}
	digest := strings.Repeat("7", 64)
	kind := map[events.Verb]string{
		events.VerbCommit: fmt.Sprintf(`{"kind":"comp_committed","plan_commit_id_hex":%q,"comp_semantic_sha256":%q,"step_topo":["a","b","c","d"]}`, digest, digest),
		events.VerbStep:   fmt.Sprintf(`{"kind":"step_executed","step_id":%q,"step_index":0,"request_fingerprints":[],"source_line":"x","parsed_expr_digest":%q}`, id, digest),
		events.VerbSeal:   fmt.Sprintf(`{"kind":"run_sealed","run_id":%q,"run_bundle_digest":%q}`, rollbackRun, digest),
	}[verb]
	payload := fmt.Sprintf(`{"v":1,"event_id":%q,"scope":{"schema_version":1,"tenant_id":"","prompt_hash":%q,"execute_session_id":%q,"catalog_cgs_hash":%q,"domain_revision":1,"entry_id":"e"},"kind":%s}`,
		id, testPrompt, session, digest, kind)
	return events.Decode(events.Message{Subject: key.Subject(verb), Payload: []byte(payload), StreamSeq: seq, BrokerMS: 1_790_000_000_000 + seq}, events.DefaultLimits)
}

// Case C06: the database goes back to a backup from before the end of a chain, and
// the chain goes on otherwise and seals the same run again. What was sealed first
// stands byte for byte, and the history of the run, and that of the chain, name both
// ends in their order, the second from a later epoch. Each is whole for itself; that
// there are two is what shows.
func TestC06RolledBackAndSealedAgain(t *testing.T) {
	t.Parallel()
	m := sidecar.NewMemory()
	sidecars := openSidecars(t, m)
	first := openStore(t, t.TempDir())
	feed(t, first, []*events.Event{rollbackEvent(events.VerbCommit, "p", 1), rollbackEvent(events.VerbStep, "a", 2), rollbackEvent(events.VerbStep, "b", 3)}, 9)
	var backup bytes.Buffer
	if _, err := first.Backup(t.Context(), &backup); err != nil {
		t.Fatal(err)
	}
	feed(t, first, []*events.Event{rollbackEvent(events.VerbStep, "c", 4), rollbackEvent(events.VerbSeal, "y", 5)}, 9)
	sealAll(t, Config{Store: first, Sidecars: sidecars, SkipAudit: true})
	before := dump(t, m)

	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, store.DatabaseFile), backup.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	second := openStore(t, dir)
	feed(t, second, []*events.Event{rollbackEvent(events.VerbStep, "d", 4), rollbackEvent(events.VerbSeal, "z", 5)}, 9)
	sealAll(t, Config{Store: second, Sidecars: sidecars, SkipAudit: true})

	one, two := rolledBack(t, first), rolledBack(t, second)
	if *one.Seal.Head == *two.Seal.Head || one.Fixed.Epoch != 1 || two.Fixed.Epoch != 2 {
		t.Errorf("heads %s and %s, epochs %d and %d", one.Seal.Head, two.Seal.Head, one.Fixed.Epoch, two.Fixed.Epoch)
	}
	after := dump(t, m)
	for name, text := range before {
		if pointer := strings.HasSuffix(name, ".root") || strings.HasSuffix(name, ".head"); !pointer && after[name] != text {
			t.Errorf("%s is not what was sealed first", name)
		}
	}
	place := sidecar.Place{PromptHash: testPrompt, Session: testSession}
	pointer, roots, err := sidecars.BundleRoots(t.Context(), place, "c")
	if err != nil || len(roots) != 2 || pointer == nil || *pointer != two.Seal.BundleRoot {
		t.Fatalf("%v, %v, %v", pointer, roots, err)
	}
	heads, err := sidecars.RunHeads(t.Context(), place, rollbackRun)
	want := []sidecar.RunHead{
		{Head: *one.Seal.Head, Sealed: sidecar.Position{Epoch: 1, StreamSeq: 5}},
		{Head: *two.Seal.Head, Sealed: sidecar.Position{Epoch: 2, StreamSeq: 5}},
	}
	if diff := cmp.Diff(want, heads); err != nil || diff != "" {
		t.Errorf("the run's history: %v (-want +got):\n%s", err, diff)
	}
	for _, r := range []*store.ChainRecord{one, two} {
		if content(t, m, r.Seal.Path) == "" {
			t.Errorf("the end with head %s has no evidence", r.Seal.Head)
		}
		checkBundle(t, r, content(t, m, r.Seal.BundlePath))
	}
}

func rolledBack(t *testing.T, s *store.Store) *store.ChainRecord {
	t.Helper()
	r, err := s.Chain(events.Key{PromptHash: testPrompt, Session: testSession, Chain: "c"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
