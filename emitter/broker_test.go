package emitter

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// One per process, started by the server's account and process statistics.
		goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server/pse.periodic"),
		goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server.init.0.func1"),
	)
}

// broker is an embedded server that can be stopped and started again on the same port and store.
type broker struct {
	t    testing.TB
	opts server.Options
	srv  *server.Server
}

func newBroker(t testing.TB, change ...func(*server.Options)) *broker {
	t.Helper()
	b := &broker{t: t, opts: server.Options{
		Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: filepath.Join(t.TempDir(), "js"),
		NoLog: true, NoSigs: true,
	}}
	for _, f := range change {
		f(&b.opts)
	}
	b.start()
	t.Cleanup(b.stop)
	return b
}

func (b *broker) start() {
	b.t.Helper()
	opts := b.opts
	srv, err := server.NewServer(&opts)
	if err != nil {
		b.t.Fatal(err)
	}
	srv.Start()
	if !srv.ReadyForConnections(10 * time.Second) {
		b.t.Fatal("broker is not ready")
	}
	b.srv = srv
	if b.opts.Port == -1 {
		b.opts.Port = opts.Port
	}
}

func (b *broker) stop() {
	if b.srv == nil {
		return
	}
	b.srv.Shutdown()
	b.srv.WaitForShutdown()
	b.srv = nil
}

func (b *broker) connect(opts ...nats.Option) *nats.Conn {
	b.t.Helper()
	return b.connectTo(b.srv.ClientURL(), opts...)
}

func (b *broker) connectTo(address string, opts ...nats.Option) *nats.Conn {
	b.t.Helper()
	base, err := ConnConfig{Name: b.t.Name()}.Options()
	if err != nil {
		b.t.Fatal(err)
	}
	base = append(base, nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0), nats.IgnoreDiscoveredServers())
	nc, err := nats.Connect(address, append(base, opts...)...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(nc.Close)
	return nc
}

func (b *broker) js(opts ...nats.Option) jetstream.JetStream {
	b.t.Helper()
	js, err := jetstream.New(b.connect(opts...))
	if err != nil {
		b.t.Fatal(err)
	}
	return js
}

// deadline bounds everything that a test waits for.
func deadline(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	waitUntil(deadline(t), t, 3*time.Millisecond, what, holds)
}

// waitUntil asks every so often whether a condition holds, until ctx ends.
func waitUntil(ctx context.Context, t testing.TB, every time.Duration, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		}
	}
}
