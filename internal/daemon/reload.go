package daemon

import (
	"context"
	"fmt"
	"regexp"
	"sync/atomic"

	"github.com/chaind/chaind/server"
)

// place is where a configuration file is wrong, as its errors begin.
var place = regexp.MustCompile(`^.*?(?:\bline \d+|\[\d+:\d+\])`)

// reloading keeps what went wrong at the last reload, by cause. What cannot be
// taken over leaves the one before in use, each part for itself, and shows in
// the readiness until a later reload succeeds.
type reloading struct {
	parts []*reloadable
}

// reloadable is one part that a reload takes anew.
type reloadable struct {
	cause string // name of the cause in the readiness
	what  string // in words
	load  func(context.Context) error
	// private: errors may quote a file in which there are secrets. Of those, the
	// readiness says where alone.
	private bool
	fault   atomic.Pointer[string] // nil: the last reload went well
}

// reloadables are the parts, in the order in which they are taken over: the
// list of trusted keys before the key that it must allow.
func (d *Daemon) reloadables() reloading {
	parts := []*reloadable{
		{cause: server.CauseTrustList, what: "trust list", load: func(context.Context) error { return d.keys.loadTrust() }},
		{cause: server.CauseSigningKey, what: "signing key", load: d.keys.loadSigner},
		{cause: server.CauseTokens, what: "token file", load: func(context.Context) error { return d.tokens.load() }},
		{cause: server.CauseCertificate, what: "certificate", load: func(context.Context) error { return d.shown.load() }},
	}
	if d.cfg.Relevel != nil {
		parts = append(parts, &reloadable{cause: server.CauseLogLevel, what: "log level", private: true, load: func(context.Context) error { return d.cfg.Relevel() }})
	}
	return reloading{parts}
}

// watchReloads reloads at each signal until ctx ends.
func (d *Daemon) watchReloads(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.cfg.Reload:
			d.reload(ctx)
		}
	}
}

func (d *Daemon) reload(ctx context.Context) {
	failed := 0
	for _, p := range d.reloading.parts {
		err := p.load(ctx)
		if err == nil {
			p.fault.Store(nil)
			continue
		}
		failed++
		d.log.Error("reload failed, the old one stays in use", "what", p.what, "err", err)
		why := err.Error()
		if at := place.FindString(why); p.private && at != "" {
			why = at + " is wrong"
		}
		text := fmt.Sprintf("reload of the %s failed, the one before is in use: %s", p.what, why)
		p.fault.Store(&text)
	}
	d.log.Info("reloaded", "failed", failed)
}

// causes are why the last reload makes the daemon unready.
func (r *reloading) causes() []server.Cause {
	var causes []server.Cause
	for _, p := range r.parts {
		if text := p.fault.Load(); text != nil {
			causes = append(causes, server.Cause{Name: p.cause, Detail: *text})
		}
	}
	return causes
}

// stale tells whether the part of a cause runs on what was there before a
// reload that failed.
func (r *reloading) stale(cause string) bool {
	for _, p := range r.parts {
		if p.cause == cause {
			return p.fault.Load() != nil
		}
	}
	return false
}
