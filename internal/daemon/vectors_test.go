package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/emitter"
)

// patience bounds every wait of these tests.
const patience = 2 * time.Minute

// startTestBroker runs a broker that outlives the daemons of a test.
func startTestBroker(t *testing.T) string {
	t.Helper()
	srv, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	if !srv.ReadyForConnections(10 * time.Second) {
		t.Fatal("broker is not ready")
	}
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	return srv.ClientURL()
}

// running is a daemon in this process.
type running struct {
	Info
	stop func() error
}

// runDaemon starts a daemon and waits until it runs.
func runDaemon(t *testing.T, cfg Config) *running {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	cfg.HTTP.Listen = "127.0.0.1:0"
	ctx, cancel := context.WithCancel(t.Context())
	started, done := make(chan Info, 1), make(chan error, 1)
	go func() { done <- Run(ctx, cfg, func(i Info) { started <- i }) }()
	select {
	case info := <-started:
		stopped := false
		r := &running{Info: info}
		r.stop = func() error {
			cancel()
			if stopped {
				return nil
			}
			stopped = true
			return <-done
		}
		t.Cleanup(func() { r.stop() })
		return r
	case err := <-done:
		cancel()
		t.Fatalf("daemon did not start: %v", err)
	case <-time.After(patience):
		cancel()
		t.Fatal("daemon did not start in time")
	}
	return nil
}

// publishAll publishes a golden stream, in order, each line once. A line whose
// acknowledgement was lost is looked for in the stream before it is sent again.
func publishAll(t *testing.T, url string, list []event, after func(n int)) {
	t.Helper()
	conn, err := emitter.Connect(emitter.ConnConfig{URL: url, Name: "test", RetryFirst: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for n, e := range list {
		publishOne(t, conn, n, e)
		if after != nil {
			after(n)
		}
	}
}

func publishOne(t *testing.T, conn *nats.Conn, n int, e event) {
	t.Helper()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	relay, err := emitter.NewRelay(conn, "")
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		seq, duplicate, err := relay.Publish(ctx, e.Subject, e.Headers, []byte(e.Payload))
		if err == nil {
			cancel()
			if seq != uint64(n+1) || duplicate {
				t.Fatalf("line %d got stream sequence %d (repeat: %v)", n, seq, duplicate)
			}
			return
		}
		stream, err := js.Stream(ctx, emitter.DefaultStream)
		cancel()
		if err == nil && stream.CachedInfo().State.LastSeq == uint64(n+1) {
			return
		}
	}
	t.Fatalf("line %d was not published in time", n)
}

// settled waits until the daemon has applied everything up to a sequence, and
// nothing is left to seal or to publish.
func settled(t *testing.T, base string, last int) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	want := []string{
		"chaind_intake_connected 1", "chaind_intake_lag_messages 0", `chaind_seal_jobs{state="pending"} 0`, "chaind_rejections_unpublished 0",
		fmt.Sprintf("chaind_intake_applied_sequence %d", last),
	}
	var missing []string
	for {
		missing = nil
		page := metricsPage(base)
		for _, line := range want {
			if !strings.Contains(page, line+"\n") {
				missing = append(missing, line)
			}
		}
		if len(missing) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("daemon did not settle, missing %q", missing)
		}
	}
}

func metricsPage(base string) string {
	text, err := fetch(base + "/metrics")
	if err != nil {
		return ""
	}
	return text
}

func fetch(url string) (string, error) {
	res, err := http.Get(url)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return string(text), err
}

func TestVectorsThroughJetStream(t *testing.T) {
	for _, name := range []string{"small", "large"} {
		t.Run(name, func(t *testing.T) {
			want := readExpectation(t, name)
			list := readEvents(t, name)
			dir := t.TempDir()
			url := startTestBroker(t)
			d := runDaemon(t, Config{DataDir: dir, NATS: NATSConfig{URL: url}, Intake: IntakeConfig{MaxEventBytes: want.MaxEventBytes}})
			publishAll(t, url, list, nil)
			settled(t, d.HTTPURL, len(list))
			compareTotals(t, d.HTTPURL, want)
			if err := d.stop(); err != nil {
				t.Fatal(err)
			}
			compare(t, dir, want)
			compareRejectedStream(t, url, want)

			// The same stream replayed into an empty directory, with another batch
			// size, another number of processors and another time zone.
			again := t.TempDir()
			replayed(t, again, url, len(list))
			compare(t, again, want)
			if diff := cmp.Diff(tree(t, dir+"/artifacts"), tree(t, again+"/artifacts")); diff != "" {
				t.Errorf("a replay gave other files (-first +replay):\n%s", diff)
			}
		})
	}
}

// replayed runs another daemon over the stream, in a process of its own, since
// processors and time zone belong to a process.
func replayed(t *testing.T, dir, url string, events int) {
	t.Helper()
	t.Setenv("GOMAXPROCS", "1")
	t.Setenv("TZ", "Asia/Kathmandu")
	d := spawn(t, roleDaemon, dir, url, "7")
	settled(t, d.line, events)
	d.term(t)
}

// compareTotals holds the daemon's counters against the effects by name.
func compareTotals(t *testing.T, base string, want expectation) {
	t.Helper()
	page := metricsPage(base)
	for effect, n := range want.Totals {
		verdict, class, _ := strings.Cut(effect, " ")
		line := fmt.Sprintf("chaind_events_total{class=%q,verdict=%q} %d\n", class, verdict, n)
		if !strings.Contains(page, line) {
			t.Errorf("metrics have no line %q", line)
		}
	}
}

// compareRejectedStream wants one message for each rejection, with the reason,
// in the stream of rejected events.
func compareRejectedStream(t *testing.T, url string, want expectation) {
	t.Helper()
	classes := map[string]int{}
	for effect, n := range want.Totals {
		if class, ok := strings.CutPrefix(effect, "rejected "); ok {
			classes[class] = n
		}
	}
	got := map[string]int{}
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), emitter.DefaultRejectedStream)
	if err != nil {
		t.Fatal(err)
	}
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		msg, err := stream.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		got[msg.Header.Get(emitter.HeaderClass)]++
	}
	if diff := cmp.Diff(classes, got); diff != "" {
		t.Errorf("rejected stream by class (-want +got):\n%s", diff)
	}
}

func TestRefusesSecondDaemonOnOneDirectory(t *testing.T) {
	url := startTestBroker(t)
	dir := t.TempDir()
	runDaemon(t, Config{DataDir: dir, NATS: NATSConfig{URL: url}})
	err := Run(t.Context(), Config{DataDir: dir, NATS: NATSConfig{URL: url}, HTTP: HTTPConfig{Listen: "off"}, Logger: slog.New(slog.DiscardHandler)},
		func(Info) { t.Error("a second daemon started on the same directory") })
	if err == nil || errors.Is(err, context.Canceled) {
		t.Fatalf("second daemon: %v", err)
	}
}
