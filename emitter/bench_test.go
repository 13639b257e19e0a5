package emitter

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/events"
)

const roundMessages = 20_000

// nothing is an Appender that is durable at once.
type nothing struct {
	applied atomic.Uint64
	effects []events.Effect
}

func (n *nothing) Append(_ context.Context, b *events.Batch) ([]events.Effect, error) {
	n.effects = n.effects[:0]
	for range b.Events {
		n.effects = append(n.effects, events.Effect{Verdict: events.Appended})
	}
	n.applied.Store(b.Events[len(b.Events)-1].StreamSeq)
	return n.effects, nil
}

func (n *nothing) ledger() Ledger {
	return Ledger{
		Watermark: func(events.Stream) (uint64, error) { return n.applied.Load(), nil },
		RecordLost: func(_ context.Context, _ events.Stream, _, to uint64, _ string) error {
			n.applied.Store(to)
			return nil
		},
		BeginEpoch: func(_ context.Context, _ events.Stream, base uint64, _ string) error {
			n.applied.Store(base)
			return nil
		},
		RecordSettings: func(context.Context, events.Stream, []events.Weakness) error { return nil },
	}
}

// track is one way through the broker: a stream, and what reads it.
type course struct {
	js   jetstream.JetStream
	root string // first token of its subjects
	done func() uint64
}

func (c *course) messages(chains int) []*nats.Msg {
	msgs := make([]*nats.Msg, roundMessages)
	for i := range msgs {
		msgs[i] = stepEvent(fmt.Sprintf("c%d", i%chains), i)
		msgs[i].Subject = c.root + msgs[i].Subject[len(events.SubjectRoot):]
	}
	return msgs
}

// round publishes a round of messages while they are read, and returns how
// long it took until the last one was done.
func (c *course) round(b *testing.B, msgs []*nats.Msg) time.Duration {
	goal := c.done() + uint64(len(msgs))
	start := time.Now()
	for _, m := range msgs {
		if _, err := c.js.PublishMsgAsync(m, jetstream.WithStallWait(30*time.Second)); err != nil {
			b.Fatal(err)
		}
	}
	c.until(b, goal)
	return time.Since(start)
}

func (c *course) until(b *testing.B, goal uint64) {
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	tick := time.NewTicker(200 * time.Microsecond)
	defer tick.Stop()
	for c.done() < goal {
		select {
		case <-tick.C:
		case <-limit.C:
			b.Fatal("a round does not end")
		}
	}
}

// bareCourse reads with the client library, and acknowledges per batch.
func bareCourse(b *testing.B, broker *broker) *course {
	js := benchJS(b, broker)
	cfg := StreamConfig{}.withDefaults().stream("BARE", "bare")
	stream, err := js.CreateStream(deadline(b), cfg)
	if err != nil {
		b.Fatal(err)
	}
	consumer, err := stream.CreateConsumer(deadline(b), jetstream.ConsumerConfig{
		Durable: "bare", AckPolicy: jetstream.AckAllPolicy, MaxAckPending: maxAckPending,
	})
	if err != nil {
		b.Fatal(err)
	}
	var done atomic.Uint64
	consuming, err := consumer.Consume(func(m jetstream.Msg) {
		meta, err := m.Metadata()
		if err != nil {
			b.Error(err)
			return
		}
		if meta.Sequence.Stream%DefaultBatchEvents == 0 || meta.NumPending == 0 {
			_ = m.Ack()
		}
		done.Store(meta.Sequence.Stream)
	}, jetstream.PullMaxMessages(2*DefaultBatchEvents))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(consuming.Stop)
	return &course{js: js, root: "bare", done: done.Load}
}

func benchJS(b *testing.B, broker *broker) jetstream.JetStream {
	js, err := jetstream.New(broker.connect(), jetstream.WithPublishAsyncMaxPending(4096))
	if err != nil {
		b.Fatal(err)
	}
	return js
}

func intakeCourse(b *testing.B, broker *broker, appender Appender, ledger Ledger) *course {
	r := &rig{t: b, broker: broker, js: broker.js(), cfg: IntakeConfig{}}
	r.cfg = IntakeConfig{JS: r.js, Appender: appender, Ledger: ledger}
	if _, err := EnsureStreams(deadline(b), r.js, StreamConfig{}); err != nil {
		b.Fatal(err)
	}
	r.start()
	return &course{js: benchJS(b, broker), root: events.SubjectRoot, done: func() uint64 { return r.intake.Stats().Applied }}
}

func benchBroker(b *testing.B) *broker {
	return newBroker(b, func(o *server.Options) { o.StoreDir = filepath.Join(b.TempDir(), "bench") })
}

// BenchmarkIntake publishes and reads at once: strict decode, order, receipts
// and acknowledgement over an Appender that costs nothing, against the client
// library that does nothing with what it reads. The metric "ratio" is ours to that limit, in paired rounds.
func BenchmarkIntake(b *testing.B) {
	for _, chains := range []int{64, 1024} {
		b.Run(fmt.Sprintf("chains=%d", chains), func(b *testing.B) {
			broker := benchBroker(b)
			bare := bareCourse(b, broker)
			none := &nothing{}
			ours := intakeCourse(b, broker, none, none.ledger())
			bareMsgs, ourMsgs := bare.messages(chains), ours.messages(chains)
			b.SetBytes(int64(roundMessages * len(ourMsgs[0].Data)))
			b.ReportAllocs()
			var limit, spent time.Duration
			for b.Loop() {
				b.StopTimer()
				limit += bare.round(b, bareMsgs)
				b.StartTimer()
				spent += ours.round(b, ourMsgs)
			}
			report(b, limit, spent)
		})
	}
}

func report(b *testing.B, limit, spent time.Duration) {
	messages := float64(b.N) * roundMessages
	b.ReportMetric(messages/spent.Seconds(), "msg/s")
	b.ReportMetric(messages/limit.Seconds(), "limit-msg/s")
	b.ReportMetric(limit.Seconds()/spent.Seconds(), "ratio")
}

// BenchmarkDrain reads a stored backlog, against the client library reading the same stream.
func BenchmarkDrain(b *testing.B) {
	broker := benchBroker(b)
	js := benchJS(b, broker)
	if _, err := EnsureStreams(deadline(b), js, StreamConfig{}); err != nil {
		b.Fatal(err)
	}
	msgs := (&course{root: events.SubjectRoot}).messages(64)
	for _, m := range msgs {
		if _, err := js.PublishMsgAsync(m, jetstream.WithStallWait(30*time.Second)); err != nil {
			b.Fatal(err)
		}
	}
	<-js.PublishAsyncComplete()
	b.SetBytes(int64(roundMessages * len(msgs[0].Data)))
	b.ReportAllocs()
	var limit, spent time.Duration
	for b.Loop() {
		b.StopTimer()
		limit += bareDrain(b, js)
		b.StartTimer()
		spent += ourDrain(b, js)
	}
	report(b, limit, spent)
}

func bareDrain(b *testing.B, js jetstream.JetStream) time.Duration {
	start := time.Now()
	consumer, err := js.CreateConsumer(deadline(b), DefaultStream, jetstream.ConsumerConfig{AckPolicy: jetstream.AckAllPolicy, MaxAckPending: maxAckPending})
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	consuming, err := consumer.Consume(func(m jetstream.Msg) {
		meta, err := m.Metadata()
		if err != nil {
			b.Error(err)
			return
		}
		if meta.Sequence.Stream%DefaultBatchEvents == 0 {
			_ = m.Ack()
		}
		if meta.Sequence.Stream == roundMessages {
			close(done)
		}
	}, jetstream.PullMaxMessages(2*DefaultBatchEvents))
	if err != nil {
		b.Fatal(err)
	}
	<-done
	took := time.Since(start)
	consuming.Stop()
	<-consuming.Closed()
	return took
}

func ourDrain(b *testing.B, js jetstream.JetStream) time.Duration {
	none := &nothing{}
	in, err := NewIntake(IntakeConfig{JS: js, Appender: none, Ledger: none.ledger()})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	start := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- in.Run(ctx) }()
	(&course{done: none.applied.Load}).until(b, roundMessages)
	took := time.Since(start)
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
	return took
}
