// Package daemon wires the rooms of chaind into one process: configuration,
// the order in which parts start, and the order in which they stop.
//
// Parts start from the back, so that nothing is taken in that has nowhere to
// go: keys, store, broker, sidecars (which may lie in the broker), streams,
// sealer, HTTP, and last the intake.
// They stop in the order in which data flows: the intake ends after the batch in
// flight is committed and acknowledged, then the sealer and the publisher of
// rejections, then HTTP, then the broker, and last the store. Whatever was not
// finished is taken up at the next start: unacknowledged events come again, and
// seal jobs and unpublished rejections lie in the store.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/sealer"
	"github.com/chaind/chaind/server"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
)

const (
	// stopHTTP bounds how long running answers may take at a stop.
	stopHTTP = 10 * time.Second
	// stopBroker bounds how long buffered messages may take to leave.
	stopBroker = 5 * time.Second
)

// Info says how to reach a daemon that has started.
type Info struct {
	NATSURL      string // of the broker, with an embedded one's real port
	HTTPURL      string // "" when HTTP is off
	StoreID      string
	ArtifactsDir string // "" when evidence is not kept in files
	KeyID        string // of the signing key; "" when nothing is signed
}

// Daemon is everything that is open. Its fields are set while it starts, in
// that order, and not changed afterwards, except for what locks for itself.
type Daemon struct {
	cfg Config
	log *slog.Logger

	keys     *keyring
	tokens   tokenBook
	store    *store.Store
	sidecars *sidecar.Sidecars
	broker   *broker // nil: external
	conn     *nats.Conn
	js       jetstream.JetStream
	metrics  *server.Metrics
	sealer   *sealer.Sealer
	intake   *emitter.Intake // nil: intake is off
	listener net.Listener    // nil: HTTP is off
	http     *http.Server
	control  net.Listener // nil: there is no control socket

	shown     certificate
	census    census
	reloading reloading // what a reload takes anew, and what went wrong then

	state   atomic.Pointer[string] // readiness beyond what the parts tell; nil: running
	closers []func() error         // run in reverse order

	lag, seals, outbox stall
	checks             checks
}

// Run starts a daemon, calls started once everything runs, and serves until
// ctx ends (then it stops in order and returns nil) or a part fails for good.
func Run(ctx context.Context, cfg Config, started func(Info)) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	d := &Daemon{cfg: cfg, log: cfg.Logger}
	d.setState(server.CauseStarting)
	if err := d.open(ctx); err != nil {
		return errors.Join(err, d.close())
	}
	return errors.Join(d.serve(ctx, started), d.close())
}

// open brings the parts up from the back. A part that opened is closed again by
// close, also when a later one fails.
func (d *Daemon) open(ctx context.Context) error {
	steps := []func(context.Context) error{
		d.openKeys, d.openStore, d.openBroker, d.openSidecars, d.openIntake, d.openSealer, d.openHTTP, d.openControl,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// onClose registers what undoes a step.
func (d *Daemon) onClose(f func() error) { d.closers = append(d.closers, f) }

func (d *Daemon) close() error {
	var errs []error
	for len(d.closers) > 0 {
		last := len(d.closers) - 1
		errs = append(errs, d.closers[last]())
		d.closers = d.closers[:last]
	}
	return errors.Join(errs...)
}

func (d *Daemon) openKeys(ctx context.Context) error {
	ring, err := openKeyring(ctx, d.cfg.Keys, filepath.Join(d.cfg.DataDir, "keys"), d.log)
	if err != nil {
		return err
	}
	d.keys = ring
	d.tokens.path = d.cfg.HTTP.Tokens
	d.shown.cert, d.shown.key, d.shown.clients = d.cfg.HTTP.Cert, d.cfg.HTTP.Key, d.cfg.HTTP.ClientCA
	d.reloading = d.reloadables()
	return errors.Join(d.tokens.load(), d.shown.load())
}

func (d *Daemon) openStore(context.Context) error {
	s, err := store.Open(store.Config{Dir: filepath.Join(d.cfg.DataDir, "store"), Logger: d.log, Now: d.cfg.Now})
	if err != nil {
		return err
	}
	d.store = s
	d.onClose(s.Close)
	return nil
}

// openBroker starts the broker inside, if there is to be one, and connects.
func (d *Daemon) openBroker(context.Context) error {
	conn := d.cfg.NATS.client("chaind", d.log)
	if conn.URL == "" {
		b, err := startBroker(d.cfg)
		if err != nil {
			return err
		}
		d.broker, conn.URL = b, b.url()
		d.onClose(func() error { b.stop(); return nil })
	}
	options, err := conn.Options()
	if err != nil {
		return err
	}
	closed := make(chan struct{})
	options = append(options, nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	if d.conn, err = nats.Connect(conn.URL, options...); err != nil {
		return fmt.Errorf("connect to broker: %w", err)
	}
	d.onClose(func() error { return drain(d.conn, closed) })
	if d.js, err = jetstream.New(d.conn); err != nil {
		return fmt.Errorf("connect to broker: %w", err)
	}
	return nil
}

// drain lets buffered receipts and acknowledgements leave, then closes.
func drain(conn *nats.Conn, closed <-chan struct{}) error {
	if err := conn.Drain(); err != nil {
		conn.Close()
	}
	select {
	case <-closed:
	case <-time.After(stopBroker):
		conn.Close()
		<-closed
	}
	return nil
}

// serve runs the stages until ctx ends or a part fails.
func (d *Daemon) serve(ctx context.Context, started func(Info)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	fail := func(err error) { cancel(err) }

	readers, workers, takers := newStage(fail), newStage(fail), newStage(fail)
	if d.http != nil {
		readers.start("http", d.serveHTTP)
	}
	workers.start("sealer", d.sealer.Run)
	workers.start("reloads", d.watchReloads)
	workers.start("census", d.countOpen)
	workers.start("readiness", d.watch)
	if d.control != nil {
		workers.start("control", d.serveControl)
	}
	workers.start("checks", d.checkRegularly)
	if d.cfg.Artifacts.Retention != nil {
		workers.start("retention", d.sweepSnapshots)
	}
	if d.intake != nil {
		workers.start("rejections", d.publishRejections)
		takers.start("intake", d.intake.Run)
	}
	d.setState("")
	d.log.Info("started", "store", d.store.ID(), "artifacts", d.cfg.artifacts(), "nats", d.natsURL(), "http", d.httpURL(), "intake", d.intake != nil)
	if started != nil {
		started(d.info())
	}

	<-ctx.Done()
	d.log.Info("stopping")
	d.setState(server.CauseStopping)
	err := errors.Join(takers.stop(), workers.stop(), readers.stop())
	if err == nil {
		d.log.Info("stopped")
	}
	return err
}

func (d *Daemon) natsURL() string { return d.conn.ConnectedUrlRedacted() }

func (d *Daemon) httpURL() string {
	if d.listener == nil {
		return ""
	}
	scheme := "http://"
	if d.cfg.HTTP.Cert != "" {
		scheme = "https://"
	}
	return scheme + d.listener.Addr().String()
}

func (d *Daemon) info() Info {
	i := Info{NATSURL: d.natsURL(), HTTPURL: d.httpURL(), StoreID: d.store.ID(), ArtifactsDir: d.cfg.ArtifactsDir}
	if signer := d.keys.signer.Load(); signer != nil {
		i.KeyID = signer.Public().ID()
	}
	return i
}

// openHTTP binds the address, so that a busy one stops the start.
func (d *Daemon) openHTTP(context.Context) error {
	if d.cfg.HTTP.Listen == httpOff {
		return nil
	}
	handler, err := server.New(server.Config{
		Store:         d.store,
		Sidecars:      d.sidecars,
		Pack:          packer(d.store),
		Trust:         func() *keys.TrustList { return d.keys.trust.Load() },
		Signing:       d.keys.public,
		Ready:         d.causes,
		Metrics:       d.metrics,
		Tokens:        d.tokens.source(),
		Hosts:         d.cfg.HTTP.hosts(),
		AllowUnsigned: d.cfg.Keys.AllowUnsigned,
		Logger:        d.log,
		Now:           d.cfg.Now,
	})
	if err != nil {
		return err
	}
	if d.listener, err = net.Listen("tcp", d.cfg.HTTP.Listen); err != nil {
		return fmt.Errorf("listen for http: %w", err)
	}
	d.onClose(func() error {
		if err := d.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	d.http = server.NewHTTPServer(d.cfg.HTTP.Listen, handler, d.log)
	d.http.TLSConfig = d.shown.config()
	return nil
}

// serveHTTP answers until ctx ends, then gives running answers some time.
func (d *Daemon) serveHTTP(ctx context.Context) error {
	done := make(chan error, 1)
	go func() {
		if d.cfg.HTTP.Cert != "" {
			done <- d.http.ServeTLS(d.listener, "", "")
			return
		}
		done <- d.http.Serve(d.listener)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopHTTP)
	defer cancel()
	if err := d.http.Shutdown(grace); err != nil {
		return errors.Join(d.http.Close(), os.ErrDeadlineExceeded)
	}
	<-done
	return nil
}
