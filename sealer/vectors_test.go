package sealer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
)

// vector is what a file of event vectors expects of one chain.
type vector struct {
	Tenant     string
	PromptHash string `json:"prompt_hash"`
	Session    string
	Chain      string
	Outcome    string
	Conformity string
	Segments   int
	Head       *string
	RunIDs     []string `json:"run_ids"`
	Sidecar    *string
	SHA256     *string `json:"unsigned_sidecar_sha256"`
}

func (v *vector) key() events.Key {
	key := events.Key{Tenant: v.Tenant, PromptHash: v.PromptHash, Session: v.Session, Chain: v.Chain}
	if key.Tenant == "_" {
		key.Tenant = ""
	}
	return key
}

func loadVectors(t testing.TB, name string) []vector {
	t.Helper()
	text, err := os.ReadFile("../testdata/events/" + name + ".expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Chains []vector }
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	return file.Chains
}

// loadEvents decodes the lines of a file of event vectors.
func loadEvents(t testing.TB, name string) (list []*events.Event) {
	t.Helper()
	f, err := os.Open("../testdata/events/" + name + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	limits := events.DefaultLimits
	limits.MaxBytes = 65536
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var line struct{ Subject, Payload string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		seq := uint64(len(list) + 1)
		list = append(list, events.Decode(events.Message{
			Subject: line.Subject, Payload: []byte(line.Payload), StreamSeq: seq, BrokerMS: 1_790_000_000_000 + seq,
		}, limits))
	}
	if err := lines.Err(); err != nil || len(list) == 0 {
		t.Fatal(err, len(list))
	}
	return list
}

func openStore(t testing.TB, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(store.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func feed(t testing.TB, s *store.Store, list []*events.Event, batch int) {
	t.Helper()
	for b := range slices.Chunk(list, batch) {
		if _, err := s.Append(t.Context(), &events.Batch{Stream: events.Stream{Name: "EVIDENCE", CreatedNS: 1}, Events: b}); err != nil {
			t.Fatal(err)
		}
	}
}

func fixedNow() time.Time { return time.Unix(1_800_000_000, 0) }

func openSidecars(t testing.TB, b sidecar.Blobs) *sidecar.Sidecars {
	t.Helper()
	s, err := sidecar.Open(t.Context(), sidecar.Config{Blobs: b, Now: fixedNow})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// runUntil runs a sealer until done says so, after one of its seals or when it
// pauses after failures, and then until it has stopped.
func runUntil(t testing.TB, cfg Config, done func(*Sealer) bool) *Sealer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	var s *Sealer
	inner := cfg.OnSealed
	cfg.OnSealed = func(x Sealed) {
		mu.Lock()
		defer mu.Unlock()
		if inner != nil {
			inner(x)
		}
		if done(s) {
			cancel()
		}
	}
	if after := cfg.After; after != nil {
		cfg.After = func(d time.Duration) <-chan time.Time {
			if done(s) {
				cancel()
			}
			return after(d)
		}
	}
	s = New(cfg)
	if done(s) {
		cancel()
	}
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Fatalf("sealer does not finish: %+v", s.Status())
	}
	return s
}

// sealAll works off all jobs of a store.
func sealAll(t testing.TB, cfg Config) *Sealer {
	t.Helper()
	return runUntil(t, cfg, func(*Sealer) bool {
		jobs, err := cfg.Store.SealJobs(0, 1)
		if err != nil {
			t.Error(err)
		}
		return len(jobs) == 0
	})
}

func dump(t testing.TB, b sidecar.Blobs) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := b.List(t.Context(), "", func(name string) error {
		all[name] = content(t, b, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func content(t testing.TB, b sidecar.Blobs, name string) string {
	t.Helper()
	r, err := b.Open(context.WithoutCancel(t.Context()), name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var text strings.Builder
	if _, err := bufio.NewReader(r).WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestVectors seals every finished chain of the event vectors and compares
// the bytes.
func TestVectors(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"small", "large"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list, want := loadEvents(t, name), loadVectors(t, name)
			dir, err := sidecar.OpenDir(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer dir.Close()
			db := openStore(t, t.TempDir())
			feed(t, db, list, 100)
			var mu sync.Mutex
			sealed := map[events.Key]Sealed{}
			sealAll(t, Config{Store: db, Sidecars: openSidecars(t, dir), SkipAudit: true, OnSealed: func(s Sealed) {
				mu.Lock()
				defer mu.Unlock()
				sealed[s.Key] = s
			}})
			got := dump(t, dir)
			for i := range want {
				checkVector(t, &want[i], sealed, got)
			}
			checkNothingElse(t, want, got)
			checkRecorded(t, db, sealed)
			checkBundles(t, db, sealed, got)
			checkSnapshots(t, got)
		})
	}
}

func checkVector(t *testing.T, v *vector, sealed map[events.Key]Sealed, got map[string]string) {
	s, ok := sealed[v.key()]
	if ok != (v.Outcome != "open") {
		t.Errorf("%s: sealed %v", v.Chain, ok)
	}
	if !ok {
		return
	}
	if string(s.Outcome) != v.Outcome || (s.Result.Head == nil) != (v.Head == nil) || v.Head != nil && s.Result.Head.String() != *v.Head {
		t.Errorf("%s: sealed as %s with head %v", v.Chain, s.Outcome, s.Result.Head)
	}
	if v.Sidecar == nil {
		if s.Result.Head != nil || s.Result.Path != "" || s.Standing != "" {
			t.Errorf("%s has no segments, and the result %+v", v.Chain, s.Result)
		}
		return
	}
	text, ok := got[*v.Sidecar]
	sum := segments.Sum([]byte(text))
	if !ok || v.SHA256 != nil && sum.String() != *v.SHA256 {
		t.Errorf("%s: %s has digest %s", v.Chain, *v.Sidecar, sum)
	}
	head := *s.Result.Head
	want := store.SealResult{Class: strings.Split(*v.Sidecar, "/evidence/")[1], Head: &head, Path: *v.Sidecar, Bytes: uint64(len(text)), SHA256: sum}
	want.Class, _, _ = strings.Cut(want.Class, "/")
	want.BundlePath, want.BundleRoot, want.BundleBytes, want.BundleSHA256 = s.Result.BundlePath, s.Result.BundleRoot, s.Result.BundleBytes, s.Result.BundleSHA256
	if diff := cmp.Diff(want, s.Result); diff != "" || s.Standing != sidecar.Stored {
		t.Errorf("%s: %s %s", v.Chain, s.Standing, diff)
	}
}

// checkNothingElse compares the evidence, pointers and history that are there
// with those that the expected chains give.
func checkNothingElse(t *testing.T, want []vector, got map[string]string) {
	var names, expected []string
	for name := range got {
		if strings.Contains(name, "/evidence/") {
			names = append(names, name)
		}
	}
	for i := range want {
		v := &want[i]
		if v.Sidecar == nil {
			continue
		}
		expected = append(expected, *v.Sidecar)
		if v.Conformity != "conforming" {
			continue
		}
		runs := filepath.Dir(filepath.Dir(*v.Sidecar)) + "/run-heads/"
		for _, id := range v.RunIDs {
			expected = append(expected, runs+id+".head", runs+id+"/"+*v.Head)
			if got[runs+id+".head"] != *v.Head {
				t.Errorf("%s: pointer of %s is %q", v.Chain, id, got[runs+id+".head"])
			}
		}
	}
	slices.Sort(names)
	slices.Sort(expected)
	if diff := cmp.Diff(expected, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// checkSnapshots: each snapshot that came with a seal is there in the frame of
// the reference and gives the run id of its name.
func checkSnapshots(t *testing.T, got map[string]string) {
	checked := 0
	for name, blob := range got {
		if !strings.HasSuffix(name, ".artifact") || strings.HasPrefix(name, ".chaind/") {
			continue
		}
		checked++
		id := "pr" + strings.TrimSuffix(filepath.Base(name), ".artifact")
		doc, err := segments.DecodeSealDocument([]byte(blob))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !sealedBy(t, got, filepath.Dir(name), id, doc) {
			t.Errorf("%s fits no seal", name)
		}
	}
	if checked == 0 {
		t.Error("no snapshot was written")
	}
}

// sealedBy tells whether the document gives the run id under the scope of one
// of the bundles of the session.
func sealedBy(t *testing.T, got map[string]string, session, id string, doc *segments.SealDocument) bool {
	for name, text := range got {
		if !strings.HasPrefix(name, session+"/evidence/") || !strings.HasSuffix(name, ".evidence.json") {
			continue
		}
		bundle, _, err := segments.ReadBundle(strings.NewReader(text))
		if err != nil {
			t.Error(err)
			continue
		}
		digest, err := segments.RunDigest(&bundle.Scope, doc)
		if err == nil && segments.RunID(digest) == id {
			return true
		}
	}
	return false
}

// checkRecorded: the store knows what became of each chain, and no job is left.
func checkRecorded(t *testing.T, db *store.Store, sealed map[events.Key]Sealed) {
	for key, s := range sealed {
		record, err := db.Chain(key)
		if err != nil || record.Seal == nil || record.Seal.Path != s.Result.Path || record.Seal.SHA256 != s.Result.SHA256 {
			t.Errorf("%s: recorded %+v, %v", key.Chain, record, err)
		}
	}
}

// TestDeterminism: the same events in other batches, worked off by another
// number of workers, leave the same bytes everywhere.
func TestDeterminism(t *testing.T) {
	t.Parallel()
	list := loadEvents(t, "small")
	var first map[string]string
	for _, setup := range []struct{ batch, workers int }{{1, 1}, {7, 3}, {1000, 16}} {
		b := sidecar.NewMemory()
		db := openStore(t, t.TempDir())
		feed(t, db, list, setup.batch)
		sealAll(t, Config{Store: db, Sidecars: openSidecars(t, b), Workers: setup.workers, Signer: fixedSigner(t), SkipAudit: true})
		all := dump(t, b)
		if first == nil {
			first = all
		}
		if diff := cmp.Diff(first, all); diff != "" || len(all) == 0 {
			t.Errorf("batches of %d, %d workers: %s", setup.batch, setup.workers, diff)
		}
	}
}

// TestSignatures: with a key every bundle carries a signature that verifies,
// and is otherwise what it is without.
func TestSignatures(t *testing.T) {
	t.Parallel()
	list := loadEvents(t, "small")
	b := sidecar.NewMemory()
	db := openStore(t, t.TempDir())
	feed(t, db, list, 100)
	sealAll(t, Config{Store: db, Sidecars: openSidecars(t, b), Signer: fixedSigner(t), SkipAudit: true})
	checked := 0
	for i, v := range loadVectors(t, "small") {
		if v.SHA256 == nil {
			continue
		}
		bundle, deviations, err := segments.ReadBundle(strings.NewReader(content(t, b, *v.Sidecar)))
		if err != nil || len(deviations) > 0 || bundle.Signature == nil {
			t.Fatalf("chain %d: %v, %v", i, deviations, err)
		}
		if err := segments.VerifySignature(bundle.Signature, &bundle.Scope, *bundle.Head); err != nil {
			t.Errorf("chain %d: %v", i, err)
		}
		bundle.Signature = nil
		if sum := segments.Sum(segments.AppendBundle(nil, bundle)); sum.String() != *v.SHA256 {
			t.Errorf("chain %d without its signature: %s", i, sum)
		}
		checked++
	}
	if checked < 5 {
		t.Errorf("%d chains checked", checked)
	}
}
