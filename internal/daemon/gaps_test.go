package daemon

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/store"
	"github.com/chaind/chaind/verifier"
)

// rollable is a broker in this process that can be stopped, given another store
// and started again at the same address.
type rollable struct {
	t    *testing.T
	dir  string
	port int
	srv  *natsserver.Server
}

func newRollable(t *testing.T) *rollable {
	b := &rollable{t: t, dir: filepath.Join(t.TempDir(), "js"), port: freePort(t)}
	b.start()
	t.Cleanup(b.stop)
	return b
}

func (b *rollable) start() {
	b.t.Helper()
	srv, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: b.port, JetStream: true, StoreDir: b.dir, NoLog: true, NoSigs: true})
	if err != nil {
		b.t.Fatal(err)
	}
	srv.Start()
	if !srv.ReadyForConnections(10 * time.Second) {
		b.t.Fatal("broker is not ready")
	}
	b.srv = srv
}

func (b *rollable) stop() { b.srv.Shutdown(); b.srv.WaitForShutdown() }

// copyStore copies the store of the stopped broker.
func (b *rollable) copyStore() string {
	b.t.Helper()
	dir := filepath.Join(b.t.TempDir(), "js")
	if err := os.CopyFS(dir, os.DirFS(b.dir)); err != nil {
		b.t.Fatal(err)
	}
	return dir
}

func (b *rollable) url() string { return fmt.Sprintf("nats://127.0.0.1:%d", b.port) }

// js is a connection of its own, with a stream as the daemon would make it.
func (b *rollable) js() jetstream.JetStream {
	b.t.Helper()
	conn, err := emitter.Connect(emitter.ConnConfig{URL: b.url(), Name: "test"})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		b.t.Fatal(err)
	}
	return js
}

var gapKey = events.Key{Tenant: "acme", PromptHash: strings.Repeat("a1", 32), Session: strings.Repeat("b2", 16), Chain: "gap"}

// publishSteps publishes the events with numbers from..to.
func publishSteps(t *testing.T, js jetstream.JetStream, from, to int) {
	t.Helper()
	for n := from; n <= to; n++ {
		payload := gapStep(eventID(n))
		if _, err := js.Publish(t.Context(), gapKey.Subject(events.VerbStep), []byte(payload)); err != nil {
			t.Fatal(err)
		}
	}
}

func eventID(n int) string { return fmt.Sprint("e", n) }

// gapStep is a step with an id of its own, in the session of gapKey.
func gapStep(id string) string {
	return fmt.Sprintf(`{"v":1,"event_id":%q,"scope":{"schema_version":1,"tenant_id":"acme","prompt_hash":%q,`+
		`"execute_session_id":%q,"catalog_cgs_hash":"c3","domain_revision":1,"entry_id":"e"},"at_ms":1780000000000,`+
		`"kind":{"kind":"step_executed","step_id":%q,"step_index":0,"request_fingerprints":[],"source_line":"x = f()",`+
		`"parsed_expr_digest":%q}}`, id, gapKey.PromptHash, gapKey.Session, "s-"+id, segments.Sum([]byte(id)).String())
}

func endChain(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	if _, err := js.Publish(t.Context(), gapKey.Subject(events.VerbSeal), []byte(`{"v":1,"event_id":"end","outcome":"failed","reason":"r"}`)); err != nil {
		t.Fatal(err)
	}
}

// apiOf reads a document of the daemon's API.
func apiOf[T any](t *testing.T, base, path string) T {
	t.Helper()
	var v T
	text, err := fetch(base + path)
	if err == nil {
		err = json.Unmarshal([]byte(text), &v)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return v
}

type apiChain struct {
	Segments    uint64   `json:"segments"`
	Coverage    string   `json:"coverage"`
	CoverageWhy []string `json:"coverage_why"`
	Lost        []apiRange
}

type apiRange struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	Why  string `json:"why"`
}

func gapChain(t *testing.T, base string) apiChain {
	t.Helper()
	return apiOf[apiChain](t, base, chainPath())
}

func chainPath() string {
	return fmt.Sprintf("/v1/chains/%s/%s/%s/%s", gapKey.Tenant, gapKey.PromptHash, gapKey.Session, gapKey.Chain)
}

// The broker's store is rolled back to message 7 of 10 and written past the
// daemon's watermark while the daemon is down: what is new is appended, nothing
// twice, and both histories show.
func TestN12BrokerRolledBackWhileTheDaemonWasDown(t *testing.T) {
	t.Parallel()
	b, dir := newRollable(t), t.TempDir()
	cfg := Config{DataDir: dir, NATS: NATSConfig{URL: b.url()}}
	d := runDaemon(t, cfg)
	publishSteps(t, b.js(), 1, 7)
	settled(t, d.HTTPURL, 7)
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	b.stop()
	old := b.copyStore()
	b.start()
	publishSteps(t, b.js(), 8, 10)
	d = runDaemon(t, cfg)
	settled(t, d.HTTPURL, 10)
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	b.stop()
	b.dir = old
	b.start()
	publishSteps(t, b.js(), 11, 15) // under sequences 8 to 12, two beyond the watermark

	d = runDaemon(t, cfg)
	settled(t, d.HTTPURL, 12)
	if c := gapChain(t, d.HTTPURL); c.Segments != 15 {
		t.Errorf("%d segments, want all 15", c.Segments)
	}
	type epoch struct {
		Number  uint32 `json:"number"`
		Base    uint64 `json:"base"`
		Applied uint64 `json:"applied"`
		Why     string `json:"why"`
	}
	got := apiOf[struct{ Epochs []epoch }](t, d.HTTPURL, "/v1/epochs").Epochs
	if want := []epoch{{1, 0, 10, store.WhyFirstSeen}, {2, 7, 12, emitter.EpochDiffers}}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("epochs %+v, want %+v", got, want)
	}
	if page := metricsPage(d.HTTPURL); !strings.Contains(page, "chaind_stream_epochs 2\n") {
		t.Error("the metrics do not show two epochs")
	}
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	checkStore(t, dir)
}

// checkStore walks the store of a stopped daemon.
func checkStore(t *testing.T, dir string) {
	t.Helper()
	s, err := store.OpenReadOnly(store.Config{Dir: filepath.Join(dir, "store")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	report, err := s.Check(t.Context(), nil)
	if err != nil || len(report.Findings) > 0 {
		t.Errorf("check: %v, findings %+v", err, report)
	}
}

// A stream that discarded 1 to 7 before the daemon started: the loss is recorded,
// and the chain's own record says so.
func TestN10DiscardedBeforeTheStart(t *testing.T) {
	t.Parallel()
	b, dir := newRollable(t), t.TempDir()
	js := b.js()
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: emitter.DefaultStream, Subjects: []string{"evidence.>"}, MaxMsgs: 4}); err != nil {
		t.Fatal(err)
	}
	publishSteps(t, js, 1, 10)
	endChain(t, js) // 11; what is left is 8 to 11
	d := runDaemon(t, Config{DataDir: dir, NATS: NATSConfig{URL: b.url()}})
	settled(t, d.HTTPURL, 11)
	c := gapChain(t, d.HTTPURL)
	if c.Segments != 3 || c.Coverage != string(events.Incomplete) || len(c.Lost) != 1 || c.Lost[0] != (apiRange{1, 7, emitter.LostTrimmed}) {
		t.Errorf("chain: %+v", c)
	}
	waitUntil(t, "the chain is sealed", func() bool {
		return strings.Contains(metricsPage(d.HTTPURL), "chaind_seal_jobs{state=\"pending\"} 0\n")
	})
	text, err := fetch(d.HTTPURL + chainPath() + "/bundle")
	if err != nil {
		t.Fatal(err)
	}
	r := verifier.TrustBundle(t.Context(), strings.NewReader(text), verifier.Options{})
	if r.ExitCode != verifier.ExitDegraded || !strings.Contains(text, "sequences 1 to 7 of epoch 1 as lost") {
		t.Errorf("the bundle says %d: %s", r.ExitCode, r.Summary)
	}
	page := metricsPage(d.HTTPURL)
	for _, line := range []string{"chaind_lost_messages 7\n", `chaind_stream_weakness{setting="discard_old"} 1`, `chaind_stream_weakness{setting="max_msgs"} 1`} {
		if !strings.Contains(page, line) {
			t.Errorf("metrics lack %q", line)
		}
	}
}

// A purge leaves a hole in the sequences without a reset.
func TestN14PurgeLeavesAHole(t *testing.T) {
	t.Parallel()
	b, dir := newRollable(t), t.TempDir()
	cfg := Config{DataDir: dir, NATS: NATSConfig{URL: b.url()}}
	d := runDaemon(t, cfg)
	js := b.js()
	publishSteps(t, js, 1, 5)
	settled(t, d.HTTPURL, 5)
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	publishSteps(t, js, 6, 10)
	stream, err := js.Stream(t.Context(), emitter.DefaultStream)
	if err == nil {
		err = stream.Purge(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	publishSteps(t, js, 11, 11)
	d = runDaemon(t, cfg)
	settled(t, d.HTTPURL, 11)
	if c := gapChain(t, d.HTTPURL); c.Segments != 6 || c.Coverage != string(events.Incomplete) || len(c.Lost) != 1 || c.Lost[0] != (apiRange{6, 10, emitter.LostTrimmed}) {
		t.Errorf("chain: %+v", c)
	}
}
