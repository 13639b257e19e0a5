package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/internal/daemon"
	"github.com/chaind/chaind/segments"
)

const (
	natsDaemonPassword = "daemon-secret"
	natsAcmePassword   = "acme-secret"

	listComp = `{"version":2,"steps":{"list":{"kind":"query"}},"bind":{"topo":["list"]},"return":{"kind":"step","step":"list"}}`
)

// natsOptions loads a configuration of NATS as the server does, with a free
// port and a store of the test's own.
func natsOptions(t *testing.T, file string) *natsserver.Options {
	t.Helper()
	return natsOptionsFile(t, filepath.Join(root, "configs", file))
}

func natsOptionsFile(t *testing.T, path string) *natsserver.Options {
	t.Helper()
	t.Setenv("CHAIND_NATS_PASSWORD", natsDaemonPassword)
	t.Setenv("ACME_NATS_PASSWORD", natsAcmePassword)
	options, err := natsserver.ProcessConfigFile(path)
	if err != nil {
		t.Fatal(err)
	}
	options.Host, options.Port, options.HTTPPort = "127.0.0.1", -1, 0
	options.StoreDir, options.NoLog, options.NoSigs = t.TempDir(), true, true
	return options
}

func startNATS(t *testing.T, options *natsserver.Options) *natsserver.Server {
	t.Helper()
	srv := launchNATS(t, options)
	if !srv.ReadyForConnections(10 * time.Second) {
		t.Fatal("server is not ready")
	}
	return srv
}

// launchNATS starts a server without waiting for it.
func launchNATS(t *testing.T, options *natsserver.Options) *natsserver.Server {
	t.Helper()
	srv, err := natsserver.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	return srv
}

// freePorts finds ports that nobody listens on.
func freePorts(t *testing.T, n int) []int {
	t.Helper()
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// startDaemon runs a daemon until the test ends.
func startDaemon(t *testing.T, config daemon.Config) daemon.Info {
	t.Helper()
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.DataDir == "" {
		config.DataDir = t.TempDir()
	}
	ctx, cancel := context.WithCancel(context.Background())
	started, ended := make(chan daemon.Info, 1), make(chan error, 1)
	go func() { ended <- daemon.Run(ctx, config, func(i daemon.Info) { started <- i }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case info := <-started:
		return info
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	}
	return daemon.Info{}
}

// connectAcme connects as a runtime of tenant acme.
func connectAcme(t *testing.T, address string) *nats.Conn {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("acme", natsAcmePassword)
	conn, err := emitter.Connect(emitter.ConnConfig{URL: u.String(), InboxPrefix: "_INBOX_acme"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

func acmeChain(conn *nats.Conn, name string) emitter.PublisherConfig {
	return emitter.PublisherConfig{Conn: conn, Chain: name, Scope: segments.Scope{
		TenantID: "acme", PromptHash: strings.Repeat("0a", 32), ExecuteSessionID: strings.Repeat("0b", 16),
		CatalogCGSHash: strings.Repeat("0c", 32), EntryID: "pets",
	}}
}

// publishRun sends a run through the publisher, once interrupted by a restart
// of the runtime, and waits until it is durable. It returns the chain's head.
func publishRun(t *testing.T, conn *nats.Conn, name string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	p, err := emitter.Begin(ctx, acmeChain(conn, name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Intent(ctx, emitter.Intent{Text: "List all pets, " + name + "."}); err != nil {
		t.Fatal(err)
	}
	if p, err = emitter.Resume(ctx, acmeChain(conn, name)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Commit(ctx, emitter.Commit{Comp: []byte(listComp), StepTopo: []string{"list"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Step(ctx, emitter.Step{StepID: "list", SourceLine: "pets.list()", Parsed: []byte(`{"op":"list"}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Seal(ctx, emitter.Seal{RunDigest: new(segments.Sum([]byte(name)))}); err != nil {
		t.Fatal(err)
	}
	done, err := p.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if done.Receipt.Head == "" {
		t.Errorf("receipt without head: %+v", done.Receipt)
	}
	return done.Receipt.Head
}

// TestNATSConfigurationServesDaemonAndRuntime runs a daemon and a runtime of
// tenant acme on configs/nats.conf: all that a publisher does is permitted.
func TestNATSConfigurationServesDaemonAndRuntime(t *testing.T) {
	srv := startNATS(t, natsOptions(t, "nats.conf"))
	if _, err := nats.Connect(srv.ClientURL()); err == nil {
		t.Error("a stranger without a password may connect")
	}
	startDaemon(t, daemon.Config{HTTP: daemon.HTTPConfig{Listen: "off"},
		NATS: daemon.NATSConfig{URL: srv.ClientURL(), User: "chaind", Password: natsDaemonPassword}})
	publishRun(t, connectAcme(t, srv.ClientURL()), "one-run")
}

// TestNATSSubjectsKeepTenantsApart tries every kind of subject as a runtime of
// tenant acme: what is not its own is refused.
func TestNATSSubjectsKeepTenantsApart(t *testing.T) {
	srv := startNATS(t, natsOptions(t, "nats.conf"))
	info := startDaemon(t, daemon.Config{HTTP: daemon.HTTPConfig{Listen: "off"},
		NATS: daemon.NATSConfig{URL: srv.ClientURL(), User: "chaind", Password: natsDaemonPassword}})
	if info.NATSURL == "" {
		t.Fatal("no broker")
	}
	for _, c := range []struct {
		subject            string
		publish, subscribe bool
	}{
		{"evidence.acme.x", true, false},
		{"evidence.acme.>", false, false},
		{"evidence.globex.x", false, false},
		{"evidence._.x", false, false},
		{"evidence.*.x", false, false},
		{"evidence.>", false, false},
		{"evidence", false, false},
		{"evidence-rejected.acme.x", false, false},
		{"evidence-rejected.globex.x", false, false},
		{"evidence-receipts.acme.x", false, true},
		{"evidence-receipts.acme.>", false, true},
		{"evidence-receipts.globex.x", false, false},
		{"evidence-receipts.*.x", false, false},
		{"evidence-receipts.>", false, false},
		{"_INBOX_acme.x", false, true},
		{"_INBOX_globex.x", false, false},
		{"_INBOX.x", false, false},
		{">", false, false},
		{"*.globex.>", false, false},
		{"$JS.API.CONSUMER.CREATE.EVIDENCE.c.evidence.acme.>", true, false},
		{"$JS.API.CONSUMER.CREATE.EVIDENCE.c.evidence.globex.>", false, false},
		{"$JS.API.CONSUMER.CREATE.EVIDENCE.c.evidence.>", false, false},
		{"$JS.API.CONSUMER.CREATE.EVIDENCE.c", false, false},
		{"$JS.API.CONSUMER.CREATE.EVIDENCE", false, false},
		{"$JS.API.CONSUMER.DURABLE.CREATE.EVIDENCE.c", false, false},
		{"$JS.API.CONSUMER.CREATE.EVIDENCE_REJECTED.c.evidence-rejected.acme.>", false, false},
		{"$JS.API.CONSUMER.NAMES.EVIDENCE", false, false},
		{"$JS.API.CONSUMER.LIST.EVIDENCE", false, false},
		{"$JS.API.CONSUMER.INFO.EVIDENCE.c", false, false},
		{"$JS.API.CONSUMER.PAUSE.EVIDENCE.c", false, false},
		{"$JS.API.CONSUMER.UNPIN.EVIDENCE.c", false, false},
		{"$JS.API.STREAM.CREATE.X", false, false},
		{"$JS.API.STREAM.UPDATE.EVIDENCE", false, false},
		{"$JS.API.STREAM.DELETE.EVIDENCE", false, false},
		{"$JS.API.STREAM.PURGE.EVIDENCE", false, false},
		{"$JS.API.STREAM.INFO.EVIDENCE", false, false},
		{"$JS.API.STREAM.NAMES", false, false},
		{"$JS.API.STREAM.MSG.GET.EVIDENCE", false, false},
		{"$JS.API.STREAM.MSG.DELETE.EVIDENCE", false, false},
		{"$JS.API.STREAM.SNAPSHOT.EVIDENCE", false, false},
		{"$JS.API.DIRECT.GET.EVIDENCE", false, false},
		{"$JS.API.DIRECT.GET.EVIDENCE.evidence.globex.x", false, false},
		{"$JS.API.INFO", false, false},
		{"$JS.ACK.EVIDENCE.c.1.1.1.1.1", false, false},
		{"$JS.EVENT.ADVISORY.>", false, false},
		{"$SYS.REQ.SERVER.PING", false, false},
		{"$SYS.>", false, false},
	} {
		if c.publish || !strings.ContainsAny(c.subject, "*>") || strings.HasPrefix(c.subject, "$JS.API.CONSUMER.CREATE") {
			if got := permitted(t, srv.ClientURL(), func(nc *nats.Conn) error { return nc.Publish(c.subject, nil) }); got != c.publish {
				t.Errorf("acme may publish on %s: %v, want %v", c.subject, got, c.publish)
			}
		}
		got := permitted(t, srv.ClientURL(), func(nc *nats.Conn) error { _, err := nc.SubscribeSync(c.subject); return err })
		if got != c.subscribe {
			t.Errorf("acme may subscribe to %s: %v, want %v", c.subject, got, c.subscribe)
		}
	}
	t.Run("delivery elsewhere", func(t *testing.T) { acmeCannotForgeReceipts(t, srv.ClientURL()) })
	t.Run("filter in the request", func(t *testing.T) { acmeCannotReadThroughFilters(t, srv.ClientURL()) })
}

// permitted tells whether user acme may do something on a connection of its
// own. A violation reaches the error handler alone, before the answer to the
// flush that follows.
func permitted(t *testing.T, address string, do func(*nats.Conn) error) bool {
	t.Helper()
	denied := make(chan error, 8)
	nc, err := nats.Connect(address, nats.UserInfo("acme", natsAcmePassword), nats.CustomInboxPrefix("_INBOX_acme"),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrPermissionViolation) {
				select {
				case denied <- err:
				default:
				}
			}
		}))
	if err != nil {
		t.Fatal(err)
	}
	if err := do(nc); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	nc.SetClosedHandler(func(*nats.Conn) { close(closed) })
	nc.Close() // runs the handlers that are still queued, then the closed handler
	<-closed
	return len(denied) == 0
}

// acmeCannotReadThroughFilters asks on a permitted subject for a consumer whose
// request names another filter than the subject.
func acmeCannotReadThroughFilters(t *testing.T, address string) {
	conn := connectAcme(t, address)
	for _, filter := range []string{`"filter_subject":"evidence.globex.>"`, `"filter_subjects":["evidence.globex.>"]`, `"filter_subject":""`, `"filter_subject":"evidence.>"`} {
		body := `{"stream_name":"EVIDENCE","config":{"name":"c","ack_policy":"none","mem_storage":true,"inactive_threshold":1000000000,` + filter + `}}`
		m, err := conn.Request("$JS.API.CONSUMER.CREATE.EVIDENCE.c.evidence.acme.>", []byte(body), 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(m.Data), `"error"`) && strings.Contains(string(m.Data), "globex") {
			t.Errorf("%s: %s", filter, m.Data)
		}
	}
}

// acmeCannotForgeReceipts uses its permission to make consumers: the server
// delivers to any subject, so a message of acme reaches globex's receipts. The
// client library sees where it was published and drops it.
func acmeCannotForgeReceipts(t *testing.T, address string) {
	globex, err := nats.Connect(address, nats.UserInfo("chaind", natsDaemonPassword))
	if err != nil {
		t.Fatal(err)
	}
	defer globex.Close()
	key := events.Key{Tenant: "globex", PromptHash: strings.Repeat("0a", 32), Session: strings.Repeat("0b", 16), Chain: "victim"}
	forged := []byte(`{"v":1,"type":"applied","tenant":"globex","prompt_hash":"` + key.PromptHash + `","session":"` + key.Session +
		`","chain":"victim","stream":"EVIDENCE","stream_seq":1,"last_event_id":"e","outcome":"open","events":[]}`)
	taken := make(chan *emitter.Receipt, 8)
	stop, err := emitter.Receipts(t.Context(), globex, key.ReceiptSubject(), func(r *emitter.Receipt) { taken <- r })
	if err != nil {
		t.Fatal(err)
	}
	raw, err := globex.SubscribeSync(key.ReceiptSubject())
	if err != nil {
		t.Fatal(err)
	}
	if err := globex.Publish(key.ReceiptSubject(), forged); err != nil { // as the daemon would
		t.Fatal(err)
	}
	if _, err := raw.NextMsg(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	<-taken

	acme := connectAcme(t, address)
	if _, err := acme.Request("evidence.acme.x", forged, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	body := `{"stream_name":"EVIDENCE","config":{"name":"d","ack_policy":"none","deliver_policy":"all","mem_storage":true,"deliver_subject":"` +
		key.ReceiptSubject() + `","filter_subject":"evidence.acme.>"}}`
	if _, err := acme.Request("$JS.API.CONSUMER.CREATE.EVIDENCE.d.evidence.acme.>", []byte(body), 5*time.Second); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := raw.NextMsg(10 * time.Second)
		if err != nil {
			t.Fatalf("the server does not deliver to a foreign subject any more: say so in docs/howto/add-a-tenant.md: %v", err)
		}
		if string(m.Data) == string(forged) {
			break
		}
	}
	// What the daemon sends next is the next that is taken.
	if err := globex.Publish(key.ReceiptSubject(), bytes.Replace(forged, []byte(`"stream_seq":1`), []byte(`"stream_seq":2`), 1)); err != nil {
		t.Fatal(err)
	}
	if r := <-taken; r.StreamSeq != 2 {
		t.Errorf("a forged receipt was taken: %+v", r)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}
