package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/chaind/chaind/internal/daemon"
	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/sidecar"
)

type serveCmd struct {
	settings
}

func (c *serveCmd) Help() string {
	return `Without flags: a NATS server with JetStream inside, on 127.0.0.1:4222; the read API on http://127.0.0.1:8477; data in ./chaind-data.
Evidence files appear below the artifacts directory when a run's chain has ended.

Besides the flags' own variables, those of Plasm are obeyed: PLASM_EVIDENCE_SIGNING_KEY (seed in hex),
PLASM_EVIDENCE_TRUSTED_PUBLIC_KEYS (comma-separated), PLASM_RUN_ARTIFACTS_DIR, PLASM_RUN_ARTIFACTS_RETENTION_SECS and
PLASM_RUN_ARTIFACTS_GC_INTERVAL_SECS, and PLASM_EVIDENCE_CHAIN=0, which turns the intake off (unlike in Plasm, unset means on).

SIGINT and SIGTERM stop in order: what is in flight is committed first. A second one ends at once. SIGHUP reloads
the signing key, the trust list, the tokens, the certificate of HTTP with the clients' authorities and, from the configuration file, the log level; what
fails to load stays as it was, and /readyz says so.

Examples:
  chaind serve
  chaind serve --nats-url tls://nats.example.com --nats-creds chaind.creds --signing-key signing.key
  chaind serve --config chaind.yaml`
}

func (c *serveCmd) Run(a *app) error {
	config, err := c.configuration(a, a.askPassphrase())
	if err != nil {
		return err
	}
	done := make(chan struct{})
	defer close(done)
	config.Reload = reloads(done)
	config.Relevel = a.relevel
	go secondSignal(a, done)
	if err := daemon.Run(a.ctx, config, nil); err != nil {
		return cannot(err, serveHint(err))
	}
	return nil
}

// reloads turns each SIGHUP into one reload; signals during one collapse.
func reloads(done <-chan struct{}) <-chan struct{} {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	reload := make(chan struct{})
	go func() {
		defer signal.Stop(hangups)
		for {
			select {
			case <-done:
				return
			case <-hangups:
			}
			select {
			case <-done:
				return
			case reload <- struct{}{}:
			}
		}
	}()
	return reload
}

// secondSignal ends the program at once when it is told twice to stop; what was
// not finished is taken up at the next start.
func secondSignal(a *app, done <-chan struct{}) {
	select {
	case <-done:
		return
	case <-a.ctx.Done():
	}
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	select {
	case <-done:
	case <-again:
		os.Exit(exitCannot)
	}
}

// serveHint tells what to do about a start that failed.
func serveHint(err error) string {
	var entry *keys.EntryError
	var owner *sidecar.OwnerError
	var locked *sidecar.LockedError
	switch {
	case errors.As(err, &entry), errors.Is(err, keys.ErrEmptyTrustList):
		return "a trusted key is 64 hex digits; unset the list to trust nobody in particular"
	case errors.Is(err, daemon.ErrExposed):
		return "what signs, and what says who reads, must not be in everybody's hands; see docs/keys.md"
	case errors.As(err, &owner):
		return "each database needs evidence files of its own; after a restore or a replay, when the other daemon has ended for good, say --take-over-artifacts once"
	case errors.As(err, &locked):
		return "one daemon writes to a directory; stop the other one, or give this one another --artifacts-dir"
	}
	return ""
}
