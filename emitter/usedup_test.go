package emitter

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Case N08: somebody else's consumer of our name has used up its deliveries of
// everything that there is. The broker says that nothing is pending; it all is, and
// none of it is lost.
func TestN08DeliveriesUsedUpBefore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.publish(stepEvent("c", 1), stepEvent("c", 2))
	const deliveries = 3
	c, err := r.js.CreateConsumer(deadline(t), DefaultStream, jetstream.ConsumerConfig{
		Durable: DefaultDurable, AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: deliveries, AckWait: 50 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	for got := 0; got < 2*deliveries; {
		batch, err := c.Fetch(2, jetstream.FetchMaxWait(10*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		for range batch.Messages() {
			got++
		}
	}
	eventually(t, "the broker says that nothing is pending", func() bool {
		info, err := c.Info(deadline(t))
		return err == nil && info.NumPending == 0
	})
	r.start()
	r.applied(2)
	r.publish(stepEvent("c", 3))
	r.applied(3)
	r.stop()
	r.inOrder("c", 1, 2, 3)
	r.lostExactly()
}
