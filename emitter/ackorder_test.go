package emitter

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/chaind/chaind/events"
)

// Invariant 1: whatever the broker is told to be safe is durable by then. Another
// client hears every acknowledgement; each time that the intake asks for a commit,
// all that it has said so far is looked at.
func TestNothingIsAckedBeforeItIsDurable(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *IntakeConfig) { c.BatchEvents = 10 })
	watcher := r.broker.connect()
	acks, err := watcher.SubscribeSync("$JS.ACK.>")
	if err == nil {
		err = watcher.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	heard, looks := uint64(0), 0
	hear := func() {
		durable := r.store.highest()
		if err := errors.Join(r.js.Conn().Flush(), watcher.Flush()); err != nil {
			t.Error(err)
		}
		for n, _, _ := acks.Pending(); n > 0; n-- {
			m, err := acks.NextMsg(10 * time.Second)
			if err != nil {
				t.Error(err)
				return
			}
			meta, err := (&nats.Msg{Reply: m.Subject, Sub: acks}).Metadata()
			if err != nil {
				t.Error(err)
				return
			}
			if heard = max(heard, meta.Sequence.Stream); heard > durable {
				t.Errorf("sequence %d is acknowledged, and %d is durable", heard, durable)
			}
		}
	}
	r.store.before = func(*events.Batch) error {
		looks++
		hear()
		if looks%2 == 1 {
			return errors.New("not this time")
		}
		return nil
	}
	for n := 1; n <= 100; n++ {
		r.publish(stepEvent("c", n))
	}
	r.start()
	r.applied(100)
	r.stop()
	hear()
	if looks < 10 || heard != 100 {
		t.Errorf("%d looks, acknowledged up to %d", looks, heard)
	}
	r.inOrder("c", upTo(100)...)
}
