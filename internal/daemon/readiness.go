package daemon

import (
	"fmt"
	"time"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/server"
	"github.com/chaind/chaind/store"
)

const (
	// lagPatience is how long events may lie unapplied before the daemon calls
	// itself behind.
	lagPatience = 30 * time.Second
	// sealPatience is how long a seal may fail before the daemon says so.
	sealPatience = 30 * time.Second
)

// setState marks the daemon as starting or stopping; "" is running.
func (d *Daemon) setState(cause string) {
	if cause == "" {
		d.state.Store(nil)
		return
	}
	d.state.Store(&cause)
}

// causes are the reasons why the daemon does not do its work, each by name.
// None means ready.
func (d *Daemon) causes() []server.Cause {
	if state := d.state.Load(); state != nil {
		return []server.Cause{{Name: *state, Detail: "the daemon is " + *state}}
	}
	causes := d.reloading.causes()
	causes = append(causes, d.intakeCauses()...)
	return append(causes, d.storeCauses()...)
}

func (d *Daemon) intakeCauses() []server.Cause {
	if d.intake == nil {
		return nil
	}
	s := d.intake.Stats()
	var causes []server.Cause
	if !s.Connected {
		causes = append(causes, server.Cause{Name: server.CauseDisconnected, Detail: "no session reads the stream; last error: " + or(s.LastError, "none")})
	}
	if !s.Failing.IsZero() {
		causes = append(causes, server.Cause{Name: server.CauseStoreFailed,
			Detail: fmt.Sprintf("appends have been failing since %s: %s", s.Failing.UTC().Format(time.RFC3339), s.LastError)})
	}
	if behind := d.behind(s); behind > lagPatience {
		causes = append(causes, server.Cause{Name: server.CauseLag, Detail: fmt.Sprintf("%d events are not applied, the oldest for %s", s.Lag, behind.Round(time.Second))})
	}
	return causes
}

// behind tells for how long the intake has been behind the stream. It keeps the
// moment at which a look first found it so.
func (d *Daemon) behind(s emitter.Stats) time.Duration {
	if s.Lag == 0 {
		d.lagging.Store(0)
		return 0
	}
	now := d.cfg.Now()
	d.lagging.CompareAndSwap(0, now.UnixNano())
	return now.Sub(time.Unix(0, d.lagging.Load()))
}

func (d *Daemon) storeCauses() []server.Cause {
	var causes []server.Cause
	if stats, err := d.store.Stats(); err != nil {
		causes = append(causes, server.Cause{Name: server.CauseStoreFailed, Detail: "the store cannot be read: " + err.Error()})
	} else if stats.LastWriteError != "" && d.intake == nil {
		causes = append(causes, server.Cause{Name: server.CauseStoreFailed, Detail: stats.LastWriteError})
	}
	seals := d.sealer.Status()
	if !seals.Since.IsZero() && d.cfg.Now().Sub(seals.Since) > sealPatience {
		causes = append(causes, server.Cause{Name: server.CauseSeals, Detail: fmt.Sprintf("%d seal jobs fail, the oldest since %s: %s",
			seals.Failing, seals.Since.UTC().Format(time.RFC3339), seals.LastError)})
	}
	return causes
}

// snapshot is the state of all parts at one moment, for the gauges.
func (d *Daemon) snapshot() server.Snapshot {
	snap := server.Snapshot{Key: d.keys.state(d.reloading.stale(server.CauseSigningKey)), Causes: d.causes()}
	if d.intake != nil {
		s := d.intake.Stats()
		snap.IntakeConnected, snap.AppliedSequence = s.Connected, s.Applied
		snap.LagMessages, snap.LagSeconds = s.Lag, d.behind(s).Seconds()
		snap.StreamWeaknesses = d.weaknesses(s)
	}
	if stats, err := d.store.Stats(); err == nil {
		d.fromStore(&snap, stats)
	}
	return snap
}

func (d *Daemon) fromStore(snap *server.Snapshot, s store.Stats) {
	snap.SealsPending, snap.SealsFailed, snap.RejectionsWaiting = s.PendingSeals, s.FailingSeals, s.PendingRejections
	snap.LostRanges, snap.LostMessages, snap.StoreBytes = s.LostRanges, s.LostEvents, s.FileBytes
	if epochs, err := d.store.Epochs(); err == nil {
		snap.StreamEpochs = uint64(len(epochs))
	}
}

// weaknesses are the stream settings under which evidence can vanish. Whether an
// external broker fsyncs before its acks cannot be read from the stream.
func (d *Daemon) weaknesses(s emitter.Stats) []string {
	var names []string
	for _, w := range s.Warnings {
		names = append(names, string(w.Weakness))
	}
	if d.broker == nil {
		names = append(names, "fsync_unknown")
	}
	return names
}

func or(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}
