package emitter

import (
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/events"
)

// TestOneTenantCannotKeepAnothersEventOut: JetStream drops a message whose
// Nats-Msg-Id it has seen, on whatever subject it was. The stream that is made has
// the shortest such window, so that the same id is taken again at once; the one of
// the other stream, on which our own outbox relies, stays.
func TestOneTenantCannotKeepAnothersEventOut(t *testing.T) {
	t.Parallel()
	r := newRigOn(t, newBroker(t))
	if _, err := EnsureStreams(deadline(t), r.js, StreamConfig{}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]time.Duration{DefaultStream: 100 * time.Millisecond, DefaultRejectedStream: 2 * time.Minute} {
		stream, err := r.js.Stream(deadline(t), name)
		if err != nil {
			t.Fatal(err)
		}
		if got := stream.CachedInfo().Config.Duplicates; got != want {
			t.Errorf("%s: duplicate window %s, want %s", name, got, want)
		}
	}
	mallory, victim := stepEvent("mallory", 1), stepEvent("victim", 1)
	if _, err := r.js.PublishMsg(deadline(t), mallory, jetstream.WithMsgID("guessed")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the victim's event is taken", func() bool {
		ack, err := r.js.PublishMsg(deadline(t), victim, jetstream.WithMsgID("guessed"))
		if err != nil {
			t.Fatal(err)
		}
		return !ack.Duplicate
	})
}

// TestLongDuplicateWindowIsWarnedOf: a stream that is there is not changed.
func TestLongDuplicateWindowIsWarnedOf(t *testing.T) {
	t.Parallel()
	for window, weak := range map[time.Duration]bool{100 * time.Millisecond: false, 2 * time.Minute: true} {
		r := newRigOn(t, newBroker(t))
		cfg := StreamConfig{}.withDefaults().stream(DefaultStream, events.SubjectRoot)
		cfg.Duplicates = window
		if _, err := r.js.CreateStream(deadline(t), cfg); err != nil {
			t.Fatal(err)
		}
		found, err := EnsureStreams(deadline(t), r.js, StreamConfig{})
		if err != nil {
			t.Fatal(err)
		}
		warned := slices.ContainsFunc(found.Warnings, func(w Warning) bool { return string(w.Weakness) == "duplicate_window" })
		if warned != weak {
			t.Errorf("window %s: warnings %v", window, found.Warnings)
		}
	}
}
