package natsobj

import (
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// broker is a server of the test's own that can be stopped and come back.
type broker struct {
	t    testing.TB
	dir  string
	port int
	srv  *server.Server
}

func startBroker(t testing.TB) *broker {
	t.Helper()
	b := &broker{t: t, dir: t.TempDir(), port: -1}
	b.start()
	t.Cleanup(b.stop)
	return b
}

func (b *broker) start() {
	b.t.Helper()
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: b.port, JetStream: true, StoreDir: b.dir, NoLog: true, NoSigs: true})
	if err != nil {
		b.t.Fatal(err)
	}
	srv.Start()
	if !srv.ReadyForConnections(10 * time.Second) {
		b.t.Fatal("broker is not ready")
	}
	b.srv, b.port = srv, srv.Addr().(*net.TCPAddr).Port
}

func (b *broker) stop() {
	b.srv.Shutdown()
	b.srv.WaitForShutdown()
}

// connect opens a connection that comes back when the broker does.
func (b *broker) connect(options ...nats.Option) jetstream.JetStream {
	b.t.Helper()
	nc, err := nats.Connect(b.srv.ClientURL(), append(options, nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		b.t.Fatal(err)
	}
	return js
}

func (b *broker) bucket(name string) *Bucket {
	b.t.Helper()
	bucket, err := Open(b.t.Context(), Config{JS: b.connect(), Bucket: name, TempDir: b.t.TempDir()})
	if err != nil {
		b.t.Fatal(err)
	}
	return bucket
}
