package daemon

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/server"
	"github.com/chaind/chaind/store"
)

const (
	// watchEvery is how often the daemon asks itself whether it does its work,
	// whoever else asks: what lasts shows only to somebody who looks twice.
	watchEvery = 5 * time.Second
	// firstCheck is when the first scheduled check begins, after the start.
	firstCheck = time.Minute
	// DefaultCheckEvery is how often everything stored is read and hashed again.
	// Damage is noticed within that time, and the time that a check takes.
	DefaultCheckEvery = 24 * time.Hour
)

// watch logs when the daemon stops being ready, why, and when it is again.
func (d *Daemon) watch(ctx context.Context) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	var before []string
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			before = d.tellReadiness(before)
		}
	}
}

// tellReadiness logs each cause once when it appears and once when it has gone.
func (d *Daemon) tellReadiness(before []string) []string {
	var now []string
	for _, c := range d.causes() {
		if !slices.Contains(before, c.Name) && !slices.Contains(now, c.Name) {
			d.log.Error("not ready", "cause", c.Name, "detail", c.Detail)
		}
		now = append(now, c.Name)
	}
	for _, name := range slices.Compact(before) {
		if !slices.Contains(now, name) {
			d.log.Info("no longer in the way", "cause", name)
		}
	}
	return now
}

// checks is what scheduled checks found.
type checks struct {
	mu       sync.Mutex
	done     uint64
	at       time.Time // end of the last one; zero: none yet
	findings uint64    // of the last one
	first    string    // the first of them
	fault    string    // why the last one could not be done; "": it was
}

func (c *checks) last() (done uint64, at time.Time, findings uint64, first, fault string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done, c.at, c.findings, c.first, c.fault
}

// checkRegularly reads everything stored from time to time, and compares it with
// its digests and the evidence files with what was sealed: a changed byte must
// not wait for somebody who asks for it.
func (d *Daemon) checkRegularly(ctx context.Context) error {
	timer := time.NewTimer(min(firstCheck, d.cfg.CheckEvery))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			d.checkOnce(ctx)
			timer.Reset(d.cfg.CheckEvery)
		}
	}
}

func (d *Daemon) checkOnce(ctx context.Context) {
	report, err := d.store.Check(ctx, nil)
	if ctx.Err() != nil {
		return
	}
	d.sealer.Audit(ctx)
	d.checks.mu.Lock()
	defer d.checks.mu.Unlock()
	d.checks.done++
	d.checks.at, d.checks.fault = d.cfg.Now(), ""
	if err != nil {
		d.checks.fault = err.Error()
		d.log.Error("scheduled check could not be done", "err", err)
		return
	}
	d.checks.findings, d.checks.first = uint64(len(report.Findings))+report.More, ""
	for i, f := range report.Findings {
		if i == 0 {
			d.checks.first = describeFinding(f)
		}
		d.log.Error("scheduled check found damage", "class", string(f.Class), "finding", describeFinding(f))
	}
	d.log.Info("scheduled check done", "chains", report.Chains, "segments", report.Segments, "findings", d.checks.findings)
}

func describeFinding(f store.Finding) string {
	return fmt.Sprintf("%s %x of chain %s/%s/%s/%s: %s", f.Bucket, f.Key, f.Chain.Tenant, f.Chain.PromptHash, f.Chain.Session, f.Chain.Chain, f.Detail)
}

// damageCauses say what checks found; a person has to look.
func (d *Daemon) damageCauses() []server.Cause {
	var causes []server.Cause
	_, at, findings, first, fault := d.checks.last()
	when := at.UTC().Format(time.RFC3339)
	if findings > 0 {
		causes = append(causes, server.Cause{Name: server.CauseDamage, Detail: fmt.Sprintf("the check of %s has %d findings, the first: %s", when, findings, first)})
	}
	if fault != "" {
		causes = append(causes, server.Cause{Name: server.CauseDamage, Detail: fmt.Sprintf("the check of %s could not be done: %s", when, fault)})
	}
	if stats, err := d.store.Stats(); err == nil && stats.DamagedChains > 0 {
		causes = append(causes, server.Cause{Name: server.CauseDamage,
			Detail: fmt.Sprintf("events of %d damaged chains are rejected as %s; last: %s", stats.DamagedChains, events.ChainDamaged, stats.LastDamage)})
	}
	if a := d.sealer.Status().Audit; a.Differing > 0 || a.Failed > 0 {
		causes = append(causes, server.Cause{Name: server.CauseDamage,
			Detail: fmt.Sprintf("evidence files: %d are not what was sealed, %d could not be checked; last error: %s", a.Differing, a.Failed, or(a.LastError, "none"))})
	}
	return causes
}
