package emitter

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/segments"
)

// Case H14: a stream or consumer that is missing and cannot be made is told
// apart from a broker that is away, and mends by itself.
func TestH14MissingStreamAndConsumer(t *testing.T) {
	t.Parallel()
	t.Run("stream", func(t *testing.T) {
		t.Parallel()
		r := newRigOn(t, newBroker(t))
		if _, err := r.js.CreateStream(deadline(t), jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"evidence.>"}}); err != nil {
			t.Fatal(err)
		}
		r.start()
		eventually(t, "the stream is missed", func() bool { return r.intake.Stats().Trouble == TroubleStream })
		if err := r.js.DeleteStream(deadline(t), "OTHER"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the stream is read", func() bool { return r.intake.Stats().Trouble == NoTrouble })
	})
	t.Run("consumer", func(t *testing.T) {
		t.Parallel()
		r := newRigOn(t, newBroker(t))
		stream, err := r.js.CreateStream(deadline(t), jetstream.StreamConfig{Name: DefaultStream, Subjects: []string{"evidence.>"}, MaxConsumers: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.CreateConsumer(deadline(t), jetstream.ConsumerConfig{Durable: "other", AckPolicy: jetstream.AckExplicitPolicy}); err != nil {
			t.Fatal(err)
		}
		r.start()
		eventually(t, "the consumer is missed", func() bool { return r.intake.Stats().Trouble == TroubleConsumer })
		if err := stream.DeleteConsumer(deadline(t), "other"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the stream is read", func() bool { return r.intake.Stats().Trouble == NoTrouble })
		r.stop()
		if got := r.intake.Stats().Trouble; got != TroubleStopped {
			t.Errorf("after the stop: %q", got)
		}
	})
	t.Run("broker", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.start()
		eventually(t, "the stream is read", func() bool { return r.intake.Stats().Trouble == NoTrouble })
		r.broker.stop()
		eventually(t, "the broker is missed", func() bool { return r.intake.Stats().Trouble == TroubleConnection })
	})
}

// history publishes to a stream that the ledger believes to know, and runs the
// intake over it.
func history(t *testing.T, known map[uint64]Applied, msgs ...*nats.Msg) *rig {
	r := newRig(t)
	stream, err := r.js.Stream(deadline(t), DefaultStream)
	if err != nil {
		t.Fatal(err)
	}
	r.publish(msgs...)
	id := identity(stream.CachedInfo())
	r.store.had[id] = known
	for seq := range known {
		r.store.applied[id] = max(r.store.applied[id], seq)
	}
	r.start()
	return r
}

// The very same event under the very same sequence, but sent again after a
// rollback, must not hide the new ones before it: the broker's time tells.
func TestN12SameEventSentAgainAfterARollback(t *testing.T) {
	t.Parallel()
	again := stepEvent("c", 2)
	r := history(t, map[uint64]Applied{2: {Sum: segments.Sum(again.Data), BrokerMS: 1}}, stepEvent("c", 1), again, stepEvent("c", 3))
	eventually(t, "all events are in the chain", func() bool {
		n := 0
		r.store.look(testKey("c"), func(c *memoryChain) { n = len(c.ids) })
		return n == 3
	})
	r.stop()
	r.inOrder("c", 1, 2, 3)
}

// A message where one was recorded as lost is read: it came back, or it is
// another history's.
func TestN12MessageInTheLostRange(t *testing.T) {
	t.Parallel()
	r := history(t, map[uint64]Applied{2: {Lost: true}}, stepEvent("c", 1), stepEvent("c", 2))
	eventually(t, "all events are in the chain", func() bool {
		n := 0
		r.store.look(testKey("c"), func(c *memoryChain) { n = len(c.ids) })
		return n == 2
	})
	r.stop()
	if want := "0 " + EpochDiffers; len(r.store.epochs) != 1 || r.store.epochs[0] != want {
		t.Errorf("epochs %v, want %q", r.store.epochs, want)
	}
}

// Two intakes under one name, as of two copies of a store: the second reads
// nothing and says why, the first is not disturbed; when it has gone the second
// takes over.
func TestTwoIntakesUnderOneName(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	first, second := newRigOn(t, b), newRigOn(t, b)
	first.start()
	first.publish(stepEvent("c", 1))
	first.applied(1)
	second.start()
	eventually(t, "the second says why", func() bool { return strings.Contains(second.intake.Stats().LastError, ErrShared.Error()) })
	first.publish(stepEvent("c", 2), stepEvent("c", 3))
	first.applied(3)
	if s := first.intake.Stats(); s.Sessions != 1 || s.Trouble != NoTrouble {
		t.Errorf("the first was disturbed: %+v", s)
	}
	if s := second.intake.Stats(); s.Applied != 0 || s.Sessions != 0 {
		t.Errorf("the second read: %+v", s)
	}
	first.stop()
	second.applied(3)
}
