package daemon

import (
	"fmt"
	"time"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/server"
	"github.com/chaind/chaind/store"
)

const (
	// lagPatience is how long events may lie unapplied before the daemon calls
	// itself behind.
	lagPatience = 30 * time.Second
	// failPatience is how long a seal may fail before the daemon says so, and
	// sealPatience how long evidence may be outstanding for whatever reason.
	failPatience = 30 * time.Second
	sealPatience = 5 * time.Minute
	// outboxPatience is how long rejected events may wait for their stream.
	outboxPatience = 30 * time.Second
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
	causes = append(causes, d.storeCauses()...)
	causes = append(causes, d.diskCauses()...)
	return append(causes, d.damageCauses()...)
}

// troubles names what keeps the intake from reading.
var troubles = map[emitter.Trouble]server.Cause{
	emitter.TroubleConnection: {Name: server.CauseDisconnected, Detail: "the broker cannot be reached, or lets nobody read the stream"},
	emitter.TroubleStream:     {Name: server.CauseStream, Detail: "the stream is missing and cannot be made"},
	emitter.TroubleConsumer:   {Name: server.CauseConsumer, Detail: "the consumer is missing and cannot be made"},
	emitter.TroubleStopped:    {Name: server.CauseIntakeStopped, Detail: "the intake has ended"},
}

func (d *Daemon) intakeCauses() []server.Cause {
	if d.intake == nil {
		return nil
	}
	s := d.intake.Stats()
	var causes []server.Cause
	if cause, ok := troubles[s.Trouble]; ok {
		if s.LastError != "" {
			cause.Detail += "; last error: " + s.LastError
		}
		causes = append(causes, cause)
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

// behind tells how old the oldest event that is not applied is, as far as looks
// have shown.
func (d *Daemon) behind(s emitter.Stats) time.Duration {
	return d.lag.age(s.Applied, s.Applied+s.Lag, d.cfg.Now())
}

func (d *Daemon) storeCauses() []server.Cause {
	stats, err := d.store.Stats()
	if err != nil {
		return []server.Cause{{Name: server.CauseStoreFailed, Detail: "the store cannot be read: " + err.Error()}}
	}
	var causes []server.Cause
	if stats.WriteFault != store.NoFault {
		causes = append(causes, server.Cause{Name: writeFaults[stats.WriteFault], Detail: "the last write failed: " + stats.LastWriteError})
	}
	now := d.cfg.Now()
	if age := d.outbox.age(stats.Rejections-stats.PendingRejections, stats.Rejections, now); age > outboxPatience {
		causes = append(causes, server.Cause{Name: server.CauseOutbox,
			Detail: fmt.Sprintf("%d rejected events wait for their stream, the oldest for %s", stats.PendingRejections, age.Round(time.Second))})
	}
	return append(causes, d.sealCauses(stats, now)...)
}

// writeFaults are the causes that failed writes stand for.
var writeFaults = map[store.WriteFault]string{
	store.FaultReadOnly: server.CauseStoreReadOnly,
	store.FaultDiskFull: server.CauseDisk,
	store.FaultBroken:   server.CauseStoreFailed,
	store.FaultOther:    server.CauseStoreFailed,
}

func (d *Daemon) sealCauses(stats store.Stats, now time.Time) []server.Cause {
	var causes []server.Cause
	seals := d.sealer.Status()
	if !seals.Since.IsZero() && now.Sub(seals.Since) > failPatience {
		causes = append(causes, server.Cause{Name: server.CauseSeals, Detail: fmt.Sprintf("%d seal jobs fail, the oldest since %s: %s",
			seals.Failing, seals.Since.UTC().Format(time.RFC3339), seals.LastError)})
	}
	if age := d.seals.age(stats.SealJobs-stats.PendingSeals, stats.SealJobs, now); age > sealPatience {
		causes = append(causes, server.Cause{Name: server.CauseSeals,
			Detail: fmt.Sprintf("%d chains wait for their evidence, the oldest for %s", stats.PendingSeals, age.Round(time.Second))})
	}
	return causes
}

// snapshot is the state of all parts at one moment, for the gauges.
func (d *Daemon) snapshot() server.Snapshot {
	snap := server.Snapshot{Key: d.keys.state(d.reloading.stale(server.CauseSigningKey)), Causes: d.causes()}
	if counted := d.census.last.Load(); counted != nil {
		snap.Open = *counted
	}
	if d.intake != nil {
		s := d.intake.Stats()
		snap.IntakeConnected, snap.AppliedSequence = s.Connected, s.Applied
		snap.LagMessages, snap.LagSeconds = s.Lag, d.behind(s).Seconds()
		snap.StreamWeaknesses = d.weaknesses(s)
	}
	if stats, err := d.store.Stats(); err == nil {
		d.fromStore(&snap, stats)
	}
	snap.DiskFree = map[string]uint64{}
	for name, disk := range d.disks() {
		snap.DiskFree[name] = disk.free
	}
	audit := d.sealer.Status().Audit
	snap.EvidenceChecked = audit.Done
	snap.EvidenceContradicting = audit.Contradicting
	snap.EvidenceRepaired, snap.EvidenceDamaged = audit.Repaired, audit.Differing+audit.Failed
	snap.Checks, snap.CheckedAt, snap.CheckFindings, _, _ = d.checks.last()
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
		names = append(names, string(events.FsyncUnknown))
	}
	return names
}

func or(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}
