package emitter

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/events"
)

// Nothing is applied before the settings are on record, however often that
// fails, and a change while a session reads is recorded before what follows.
func TestSettingsAreRecordedBeforeTheFirstEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	record := r.cfg.Ledger.RecordSettings
	var refused atomic.Int32
	r.cfg.Ledger.RecordSettings = func(ctx context.Context, s events.Stream, weak []events.Weakness) error {
		if refused.Add(1) <= 2 {
			return errInjected
		}
		return record(ctx, s, weak)
	}
	r.store.before = func(*events.Batch) error {
		r.store.mu.Lock()
		defer r.store.mu.Unlock()
		if len(r.store.settings) == 0 {
			r.store.disorder = append(r.store.disorder, "an event before the settings")
		}
		return nil
	}
	r.publish(stepEvent("c", 1), stepEvent("c", 2))
	r.start()
	r.applied(2)
	stream, err := r.js.Stream(deadline(t), DefaultStream)
	if err != nil {
		t.Fatal(err)
	}
	cfg := stream.CachedInfo().Config
	cfg.Discard, cfg.MaxAge = jetstream.DiscardOld, time.Hour
	if _, err := r.js.UpdateStream(deadline(t), cfg); err != nil {
		t.Fatal(err)
	}
	const changed = "2 [discard_old max_age one_replica]"
	eventually(t, "the change is on record", func() bool { return slices.Contains(r.settings(), changed) })
	r.publish(stepEvent("c", 3))
	r.applied(3)
	r.stop()
	r.inOrder("c", 1, 2, 3)
	if got := r.settings(); len(got) != 2 || got[0] != "0 [one_replica]" || got[1] != changed {
		t.Errorf("settings on record: %v", got)
	}
	if got := r.intake.Stats().Warnings; !slices.ContainsFunc(got, func(w Warning) bool { return w.Weakness == events.WeakMaxAge }) {
		t.Errorf("warnings %v", got)
	}
}

func (r *rig) settings() []string {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	return slices.Clone(r.store.settings)
}

// How many replicas were asked for is not the stream's: it is warned of, and on
// no record.
func TestSettingsAreTheStreamsAlone(t *testing.T) {
	t.Parallel()
	got := StreamConfig{Replicas: 1}.withDefaults()
	found := got.stream(got.Evidence, events.SubjectRoot)
	asked := StreamConfig{Replicas: 3}.withDefaults()
	if a, b := got.settings(found), asked.settings(found); !slices.Equal(a, b) || !slices.Equal(a, []events.Weakness{events.WeakOneReplica}) {
		t.Errorf("%v, and with three asked for %v", a, b)
	}
	if found.Replicas = 3; len(asked.settings(found)) != 0 {
		t.Errorf("of three replicas: %v", asked.settings(found))
	}
	found.Storage, found.Discard = jetstream.MemoryStorage, jetstream.DiscardOld
	if got, want := asked.settings(found), []events.Weakness{events.WeakDiscard, events.WeakMemory}; !slices.Equal(got, want) {
		t.Errorf("settings %v, want %v", got, want)
	}
	in := IntakeConfig{JS: newRigOn(t, newBroker(t)).js, Appender: newMemory(), Ledger: newMemory().ledger()}
	in.Ledger.RecordSettings = nil
	if _, err := NewIntake(in); err == nil || !strings.Contains(err.Error(), "Ledger") {
		t.Errorf("a ledger without settings: %v", err)
	}
}
