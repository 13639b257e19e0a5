package server

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/sealer"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
)

const vectorLimit = 65536 // bytes; the size limit that the event vectors are made for

// expectedChain is one chain of the event vectors' expected state.
type expectedChain struct {
	Tenant          string
	PromptHash      string `json:"prompt_hash"`
	Session         string
	Chain           string
	Outcome         string
	Reason          *string
	Conformity      string
	ConformityCodes []string `json:"conformity_codes"`
	Segments        uint64
	Head            *string
	Attempts        []stepDocument
	RunIDs          []string `json:"run_ids"`
	Rejected        []struct {
		Line          uint64
		Class         string
		PayloadSHA256 string `json:"payload_sha256"`
	}
	Duplicates uint64
	Late       []struct {
		Line          uint64
		EventID       string `json:"event_id"`
		PayloadSHA256 string `json:"payload_sha256"`
	}
	Coverage              string
	CoverageWhy           []string `json:"coverage_why"`
	ProducerHead          *string  `json:"producer_head"`
	ProducerSignature     *string  `json:"producer_signature"`
	Sidecar               *string
	UnsignedSidecarSHA256 *string `json:"unsigned_sidecar_sha256"`
}

func (c *expectedChain) url() string {
	return "/v1/chains/" + c.Tenant + "/" + c.PromptHash + "/" + c.Session + "/" + c.Chain
}

// world is a store and sidecars filled with the small event vectors.
type world struct {
	store    *store.Store
	sidecars *sidecar.Sidecars
	blobs    *blobs
	chains   []expectedChain
	strays   int    // rejected events that belong to no chain
	fed      uint64 // messages so far
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := emptyWorld(t)
	w.feed(t, func(m events.Message) (events.Message, bool) { return m, true })
	return w
}

func emptyWorld(t *testing.T) *world {
	t.Helper()
	w := &world{blobs: &blobs{sidecar.NewMemory(), t}}
	text, err := os.ReadFile("../testdata/events/small.expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var expected struct {
		Chains       []expectedChain
		Unattributed []json.RawMessage
	}
	if err := json.Unmarshal(text, &expected); err != nil || len(expected.Chains) == 0 {
		t.Fatalf("%d chains, %v", len(expected.Chains), err)
	}
	w.chains, w.strays = expected.Chains, len(expected.Unattributed)
	if w.store, err = store.Open(store.Config{Dir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.store.Close(); err != nil {
			t.Error(err)
		}
	})
	w.sidecars = w.blobs.sidecars()
	return w
}

// feed appends the vectors, as far as pick takes them and as it changes them, as
// the stream delivers them after what was fed before.
func (w *world) feed(t *testing.T, pick func(events.Message) (events.Message, bool)) {
	t.Helper()
	file, err := os.Open("../testdata/events/small.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	batch := &events.Batch{Stream: events.Stream{Name: "EVIDENCE", CreatedNS: 1}}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var line struct{ Subject, Payload string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		m, ok := pick(events.Message{Subject: line.Subject, Payload: []byte(line.Payload)})
		if !ok {
			continue
		}
		w.fed++
		m.StreamSeq, m.BrokerMS = w.fed, 1780000000000+w.fed
		batch.Events = append(batch.Events, events.Decode(m, events.Limits{MaxBytes: vectorLimit}))
	}
	if lines.Err() != nil || len(batch.Events) == 0 {
		t.Fatalf("%d events, %v", len(batch.Events), lines.Err())
	}
	if _, err := w.store.Append(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
}

// twin feeds the events of a chain of the vectors once more, as far as and as
// edit has them, as those of another chain of the same session.
func (w *world) twin(t *testing.T, c *expectedChain, name string, edit func(payload string) (string, bool)) events.Key {
	t.Helper()
	stem := strings.Join([]string{"evidence", c.Tenant, c.PromptHash, c.Session, ""}, ".")
	w.feed(t, func(m events.Message) (events.Message, bool) {
		verb, of := strings.CutPrefix(m.Subject, stem+c.Chain+".")
		payload, ok := edit(string(m.Payload))
		m.Subject, m.Payload = stem+name+"."+verb, []byte(payload)
		return m, of && ok
	})
	return events.Key{Tenant: parseTenant(c.Tenant), PromptHash: c.PromptHash, Session: c.Session, Chain: name}
}

// seal works off all seal jobs.
func (w *world) seal(t *testing.T) {
	t.Helper()
	stats, err := w.store.Stats()
	if err != nil || stats.PendingSeals == 0 {
		t.Fatalf("%d seals to be made, %v", stats.PendingSeals, err)
	}
	finished := stats.PendingSeals
	done := make(chan sealer.Sealed, finished)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	s := sealer.New(sealer.Config{Store: w.store, Sidecars: w.sidecars, OnSealed: func(s sealer.Sealed) { done <- s }, Logger: testLogger(t)})
	go func() { ended <- s.Run(ctx) }()
	for range finished {
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatalf("seals do not come: %+v", s.Status())
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func (w *world) handler(t *testing.T) http.Handler {
	return newHandler(t, Config{Store: w.store, Sidecars: w.sidecars, Logger: testLogger(t)})
}

// TestChainsOfARealStore compares every chain of the vectors with what the
// server says about it.
func TestChainsOfARealStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seal(t)
	h := w.handler(t)
	for i := range w.chains {
		c := &w.chains[i]
		t.Run(c.Tenant+" "+c.Chain, func(t *testing.T) {
			checkDetail(t, h, c)
			checkEvidence(t, h, c)
			checkAddenda(t, h, c)
		})
	}
}

func checkDetail(t *testing.T, h http.Handler, c *expectedChain) {
	t.Helper()
	d := decode[chainDetail](t, get(h, "GET", c.url()))
	type facts struct {
		Key                                   keyDocument
		Outcome, Reason, Conformity, Coverage string
		ProducerHead, ProducerSignature       string
		Segments, Duplicates, Late, Rejected  uint64
		Head                                  *string
		RunIDs, ConformityCodes, CoverageWhy  []string
		Steps                                 []stepDocument
		Class                                 string
	}
	got := facts{d.keyDocument, string(d.Outcome), d.Reason, string(d.Conformity), string(d.Coverage), string(d.ProducerHead),
		string(d.ProducerSignature), d.Segments, d.Duplicates, d.Late, d.Rejected, d.Head, d.RunIDs, d.ConformityCodes, d.CoverageWhy, d.Steps, ""}
	if d.Sealed != nil {
		got.Class = d.Sealed.Class
	}
	want := facts{keyDocument{parseTenant(c.Tenant), c.PromptHash, c.Session, c.Chain}, c.Outcome, text(c.Reason), c.Conformity, c.Coverage,
		text(c.ProducerHead), text(c.ProducerSignature), c.Segments, c.Duplicates, uint64(len(c.Late)), uint64(len(c.Rejected)), c.Head,
		c.RunIDs, c.ConformityCodes, c.CoverageWhy, c.Attempts, ""}
	if c.Sidecar != nil {
		parts := strings.Split(*c.Sidecar, "/")
		want.Class = parts[len(parts)-2]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("detail differs (-want +got):\n%s", diff)
	}
	if (d.EvidenceURL != nil) != (c.Sidecar != nil) {
		t.Errorf("evidence url %v", d.EvidenceURL)
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func checkEvidence(t *testing.T, h http.Handler, c *expectedChain) {
	t.Helper()
	w := get(h, "GET", c.url()+"/evidence")
	switch {
	case c.Segments == 0:
		wantProblem(t, w, http.StatusConflict, typeChainEmpty)
		return
	case c.Outcome == "open":
		wantProblem(t, w, http.StatusConflict, typeChainOpen)
		return
	case w.Code != http.StatusOK:
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	sum := segments.Sum(w.Body.Bytes()).String()
	if c.UnsignedSidecarSHA256 != nil && *c.UnsignedSidecarSHA256 != sum {
		t.Errorf("evidence has digest %s, want %s", sum, *c.UnsignedSidecarSHA256)
	}
	if w.Header().Get("ETag") != `"`+sum+`"` || w.Header().Get("Chaind-Head") != *c.Head {
		t.Errorf("tag %s, head %s", w.Header().Get("ETag"), w.Header().Get("Chaind-Head"))
	}
}

func checkAddenda(t *testing.T, h http.Handler, c *expectedChain) {
	t.Helper()
	var got []string
	for after := ""; ; {
		page := decode[addendumPage](t, get(h, "GET", c.url()+"/addenda?limit=1"+after))
		for _, a := range page.Addenda {
			got = append(got, a.EventID+" "+a.SHA256)
		}
		if page.Next == nil {
			break
		}
		after = "&after=" + *page.Next
	}
	var want []string
	for _, l := range c.Late {
		want = append(want, l.EventID+" "+l.PayloadSHA256)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("addenda (-want +got):\n%s", diff)
	}
}

// TestRunsOfARealStore asks for every run id in the format's own way.
func TestRunsOfARealStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seal(t)
	h := w.handler(t)
	asked := 0
	for i := range w.chains {
		c := &w.chains[i]
		for _, id := range c.RunIDs {
			asked++
			prefix := ""
			if c.Tenant != "_" {
				prefix = "/tenants/" + c.Tenant
			}
			path := prefix + "/execute/" + c.PromptHash + "/" + c.Session + "/artifacts/" + id + "/evidence"
			a := get(h, "GET", path)
			if c.Conformity != "conforming" {
				p := wantProblem(t, a, http.StatusNotFound, typeRunNonconforming)
				if !strings.Contains(p.Detail, c.url()+"/evidence") {
					t.Errorf("detail %q does not lead to the chain", p.Detail)
				}
				continue
			}
			if a.Code != http.StatusOK || a.Header().Get("Chaind-Head") != *c.Head {
				t.Errorf("%s: status %d: %.300s", path, a.Code, a.Body)
			}
			other := get(h, "GET", "/tenants/other"+strings.TrimPrefix(path, prefix))
			wantProblem(t, other, http.StatusNotFound, typeUnknownArtifact)
		}
	}
	if asked == 0 {
		t.Fatal("the vectors have no runs")
	}
}

// TestH12_UnknownEmptyAndOpenDiffer asks before anything is sealed, and after.
func TestH12_UnknownEmptyAndOpenDiffer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.handler(t)
	find := func(is func(*expectedChain) bool) *expectedChain {
		i := slices.IndexFunc(w.chains, func(c expectedChain) bool { return is(&c) })
		if i < 0 {
			t.Fatal("no such chain in the vectors")
		}
		return &w.chains[i]
	}
	open := find(func(c *expectedChain) bool { return c.Outcome == "open" && c.Segments > 0 })
	empty := find(func(c *expectedChain) bool { return c.Segments == 0 })
	pending := find(func(c *expectedChain) bool { return c.Conformity == "conforming" && len(c.RunIDs) > 0 })
	unknown := *open
	unknown.Chain = "01NOBODYHASHEARDOFTHISONE0"

	for _, url := range []string{unknown.url() + "/evidence", empty.url() + "/evidence", open.url() + "/evidence", pending.url() + "/evidence"} {
		if a := get(h, "GET", url); strings.Contains(strings.ToLower(a.Body.String()), "verified") || a.Header().Get("Chaind-Signature")+a.Header().Get("Chaind-Seal")+a.Header().Get("Chaind-Record") != "" {
			t.Errorf("%s: an answer without evidence says that something was verified: %v %s", url, a.Header(), a.Body)
		}
	}
	wantProblem(t, get(h, "GET", unknown.url()), http.StatusNotFound, typeUnknownChain)
	wantProblem(t, get(h, "GET", unknown.url()+"/evidence"), http.StatusNotFound, typeUnknownChain)
	wantProblem(t, get(h, "GET", unknown.url()+"/addenda"), http.StatusNotFound, typeUnknownChain)
	wantProblem(t, get(h, "GET", empty.url()+"/evidence"), http.StatusConflict, typeChainEmpty)
	wantProblem(t, get(h, "GET", open.url()+"/evidence"), http.StatusConflict, typeChainOpen)
	wantProblem(t, get(h, "GET", pending.url()+"/evidence"), http.StatusServiceUnavailable, typeSealPending)
	byRun := "/execute/" + pending.PromptHash + "/" + pending.Session + "/artifacts/" + pending.RunIDs[0] + "/evidence"
	if pending.Tenant != "_" {
		byRun = "/tenants/" + pending.Tenant + byRun
	}
	wantProblem(t, get(h, "GET", byRun), http.StatusServiceUnavailable, typeSealPending)
	w.seal(t)
	if a := get(h, "GET", byRun); a.Code != http.StatusOK {
		t.Errorf("sealed: %d %s", a.Code, a.Body)
	}
	wantProblem(t, get(h, "GET", strings.Replace(byRun, pending.RunIDs[0], "pr"+strings.Repeat("e", 64), 1)), http.StatusNotFound, typeUnknownArtifact)
}

// TestOpenRunLooksLikeNoUnknownOne seals a run in a chain that goes on.
func TestOpenRunLooksLikeNoUnknownOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := events.Key{PromptHash: vectorHash, Session: vectorSession, Chain: "open"}
	scope := segments.AppendScope(nil, &segments.Scope{SchemaVersion: 1, PromptHash: key.PromptHash, ExecuteSessionID: key.Session,
		CatalogCGSHash: strings.Repeat("c", 64), EntryID: "tracker"})
	sum := segments.Sum([]byte("run"))
	seal := `{"v":1,"event_id":"e1","scope":` + string(scope) + `,"kind":` +
		string(segments.AppendKind(nil, &segments.RunSealed{RunID: segments.RunID(sum), RunBundleDigest: sum})) + `,"more":true}`
	effects, err := w.store.Append(t.Context(), &events.Batch{Stream: events.Stream{Name: "OTHER", CreatedNS: 2}, Events: []*events.Event{
		events.Decode(events.Message{Subject: key.Subject(events.VerbSeal), Payload: []byte(seal), StreamSeq: 1, BrokerMS: 1}, events.DefaultLimits),
	}})
	if err != nil || effects[0].Verdict != events.Appended {
		t.Fatalf("%+v, %v", effects, err)
	}
	path := "/execute/" + key.PromptHash + "/" + key.Session + "/artifacts/" + segments.RunID(sum) + "/evidence"
	p := wantProblem(t, get(w.handler(t), "GET", path), http.StatusNotFound, typeRunOpen)
	if !strings.Contains(p.Detail, chainURL(key)) {
		t.Errorf("detail %q", p.Detail)
	}
}

// TestLostRangesShow lets the stream jump while a chain is open.
// The settings that a chain's events came in under are shown with it, and none is
// an empty list.
func TestStreamWeaknessesShow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stream := events.Stream{Name: "EVIDENCE", CreatedNS: 1}
	mark, err := w.store.Watermark(stream)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.store.RecordSettings(t.Context(), stream, []events.Weakness{events.WeakMaxAge, events.WeakDirect}); err != nil {
		t.Fatal(err)
	}
	key := events.Key{PromptHash: strings.Repeat("0", 64), Session: strings.Repeat("1", 32), Chain: "weak"}
	late := events.Decode(events.Message{Subject: key.Subject(events.VerbIntent), Payload: []byte(`{"v":1}`), StreamSeq: mark.Applied + 1, BrokerMS: 1}, events.DefaultLimits)
	if _, err := w.store.Append(t.Context(), &events.Batch{Stream: stream, Events: []*events.Event{late}}); err != nil {
		t.Fatal(err)
	}
	if d := decode[chainDetail](t, get(w.handler(t), "GET", "/v1/chains/_/"+key.PromptHash+"/"+key.Session+"/weak")); !slices.Equal(d.StreamWeaknesses, []string{"allow_direct", "max_age"}) {
		t.Errorf("after the settings: %q", d.StreamWeaknesses)
	}
	if got := get(w.handler(t), "GET", w.chains[0].url()).Body.String(); !strings.Contains(got, `"stream_weaknesses":[]`) {
		t.Errorf("before: %s", got)
	}
}

func TestLostRangesShow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	open := w.chains[slices.IndexFunc(w.chains, func(c expectedChain) bool { return c.Outcome == "open" })]
	stream := events.Stream{Name: "EVIDENCE", CreatedNS: 1}
	mark, err := w.store.Watermark(stream)
	if err != nil {
		t.Fatal(err)
	}
	stray := events.Decode(events.Message{Subject: "evidence.x", Payload: []byte("{}"), StreamSeq: mark.Applied + 6, BrokerMS: 1}, events.DefaultLimits)
	if _, err := w.store.Append(t.Context(), &events.Batch{Stream: stream, Events: []*events.Event{stray}}); err != nil {
		t.Fatal(err)
	}
	a := get(w.handler(t), "GET", open.url())
	d := decode[chainDetail](t, a)
	if len(d.Lost) != 1 || d.Lost[0].From != mark.Applied+1 || d.Lost[0].To != mark.Applied+5 {
		t.Fatalf("lost %+v, want %d to %d", d.Lost, mark.Applied+1, mark.Applied+5)
	}
	if d.Coverage != events.Incomplete || !slices.Contains(d.CoverageWhy, store.WhyLost) {
		t.Errorf("coverage %s %v", d.Coverage, d.CoverageWhy)
	}
	if got := decode[lostPage](t, get(w.handler(t), "GET", "/v1/lost")); len(got.Lost) != 1 || got.Lost[0] != d.Lost[0] || got.Next != nil {
		t.Errorf("/v1/lost: %+v", got)
	}
	if doc := members(t, members(t, a.Body.Bytes()).first("lost")).names(); doc != "stream epoch from to why recorded_ms" {
		t.Errorf("shape %s", doc)
	}
}

func TestClosedStoreIsToldAsStopping(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.handler(t)
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	wantProblem(t, get(h, "GET", "/v1/chains"), http.StatusServiceUnavailable, typeUnavailable)
}
