package sealer

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaind/chaind/engine/run"
	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
)

// earlierStore is a copy of the database in testdata/states-v1, which a program
// wrote that knew states of version 1.
func earlierStore(t *testing.T) *store.Store {
	t.Helper()
	const from = "testdata/states-v1"
	dir := t.TempDir()
	id, err := os.ReadFile(filepath.Join(from, "store.id"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "store.id"), id, 0o600); err != nil {
		t.Fatal(err)
	}
	packed, err := os.Open(filepath.Join(from, store.DatabaseFile+".gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	r, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	db, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, store.DatabaseFile), db, 0o600); err != nil {
		t.Fatal(err)
	}
	return openStore(t, dir)
}

// TestEarlierCountMidway: of each chain in an earlier database its producer
// counted three events at the first of two seals, of which one is missing, and the
// end makes up for it. The states do not know at which seal the count was given;
// store and bundle agree on it, and do not call the chains complete. One of them
// was open, and ends now.
func TestEarlierCountMidway(t *testing.T) {
	t.Parallel()
	db := earlierStore(t)
	key := func(chain string) events.Key {
		return events.Key{PromptHash: strings.Repeat("ab", 32), Session: strings.Repeat("5e", 16), Chain: chain}
	}
	end := events.Decode(events.Message{Subject: key("open").Subject(events.VerbSeal), Payload: []byte(`{"v":1,"event_id":"end"}`), StreamSeq: 9, BrokerMS: 1}, events.DefaultLimits)
	feed(t, db, []*events.Event{end}, 1)
	for _, chain := range []string{"bare", "sealed", "open"} {
		record, err := db.Chain(key(chain))
		if err != nil {
			t.Fatal(err)
		}
		got, why := record.Coverage()
		text, _, err := Pack(t.Context(), db, record, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, sum := judged(t, text); string(sum.Coverage) != string(got) || got != events.Incomplete {
			t.Errorf("%s: the store says %s %v, the bundle %s %q", chain, got, why, sum.Coverage, sum.Unmet)
		}
	}
}

// TestAuditOfEarlierVersion: a trust bundle that was sealed under an earlier
// version of the domain of runs, and is damaged, is made again as it was.
func TestAuditOfEarlierVersion(t *testing.T) {
	t.Parallel()
	f := newFake()
	b := sidecar.NewMemory()
	cfg := Config{Store: f, Sidecars: openSidecars(t, b), Signer: fixedSigner(t)}
	key := f.finish("a", 1)
	sealAll(t, cfg)
	record, err := f.Chain(key)
	if err != nil {
		t.Fatal(err)
	}
	result := f.finished[key]
	evidence, _, err := segments.ReadBundle(strings.NewReader(content(t, b, result.Path)))
	if err != nil {
		t.Fatal(err)
	}
	text, root, err := packAs(t.Context(), run.Version1, f, record, evidence.Signature, cfg.Signer())
	if err != nil {
		t.Fatal(err)
	}
	if root == result.BundleRoot || !strings.Contains(text, `"tessera_version":"chaind-run-1"`) {
		t.Fatalf("root %s", root)
	}
	result.BundleRoot, result.BundlePath = root, sidecar.BundlePath(root)
	result.BundleBytes, result.BundleSHA256 = uint64(len(text)), segments.Sum([]byte(text))
	f.finished[key] = result
	for _, damaged := range []string{"", "absent", text[:100]} {
		damage(t, b, result.BundlePath, damaged)
		if a := audit(t, cfg); a != (Audit{Checked: 1, Repaired: 1, Done: true}) {
			t.Errorf("%.20q: %+v", damaged, a)
		}
		if content(t, b, result.BundlePath) != text {
			t.Errorf("%.20q stands", damaged)
		}
	}
}
