package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/internal/daemon"
)

// plant is a whole daemon with its broker inside, and a publisher's connection.
type plant struct {
	info    daemon.Info
	conn    *nats.Conn
	js      jetstream.JetStream
	cancel  context.CancelFunc
	ended   chan error
	stopped bool
}

// What a publisher has on the way to the broker, unacknowledged, at most.
const (
	maxPending      = 4096
	maxPendingBytes = 4 << 20
)

// startPlant starts the daemon as chaind serve does, with everything on;
// http on a port of its own.
func startPlant(ctx context.Context, dir string, change func(*daemon.Config)) (*plant, error) {
	ctx, cancel := context.WithCancel(ctx)
	cfg := daemon.Config{
		DataDir: filepath.Join(dir, "data"),
		NATS:    daemon.NATSConfig{Listen: "127.0.0.1:-1"},
		HTTP:    daemon.HTTPConfig{Listen: "127.0.0.1:0"},
		Version: "bench", Logger: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&cfg)
	}
	p := &plant{cancel: cancel, ended: make(chan error, 1)}
	started := make(chan daemon.Info, 1)
	go func() { p.ended <- daemon.Run(ctx, cfg, func(i daemon.Info) { started <- i }) }()
	select {
	case p.info = <-started:
	case err := <-p.ended:
		cancel()
		return nil, fmt.Errorf("start daemon: %w", err)
	}
	var err error
	if p.conn, err = nats.Connect(p.info.NATSURL); err == nil {
		p.js, err = jetstream.New(p.conn, jetstream.WithPublishAsyncMaxPending(maxPending))
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// inPlant opens a contest in a plant of its own, which the contest's close ends.
func inPlant(ctx context.Context, dir string, change func(*daemon.Config), open func(*plant) (*contest, error)) (*contest, error) {
	p, err := startPlant(ctx, dir, change)
	if err != nil {
		return nil, err
	}
	c, err := open(p)
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return c, nil
}

func (p *plant) close() error {
	if p.stopped {
		return nil
	}
	p.stopped = true
	if p.conn != nil {
		p.conn.Close()
	}
	p.cancel()
	return <-p.ended
}

// pace bounds the bytes on the way. With long events and a bound on their number alone,
// a round would be published before anything of it is consumed.
func (p *plant) pace(size int) (err error) {
	pending := min(maxPending, maxPendingBytes/max(size, 1))
	p.js, err = jetstream.New(p.conn, jetstream.WithPublishAsyncMaxPending(max(pending, 1)))
	return err
}

// likeStream makes a stream like the one of events, of that name and below that root.
func (p *plant) likeStream(ctx context.Context, name, root string) (jetstream.Stream, error) {
	like, err := p.js.Stream(ctx, emitter.DefaultStream)
	if err != nil {
		return nil, err
	}
	cfg := like.CachedInfo().Config
	cfg.Name, cfg.Subjects = name, []string{root + ".>"}
	return p.js.CreateStream(ctx, cfg)
}

// bareConsumer reads, does nothing with what it reads, and acknowledges per batch.
func bareConsumer(ctx context.Context, stream jetstream.Stream, name string) (jetstream.Consumer, jetstream.ConsumeContext, error) {
	return consume(ctx, stream, name, func(m jetstream.Msg) {
		meta, err := m.Metadata()
		if err == nil && (meta.Sequence.Stream%emitter.DefaultBatchEvents == 0 || meta.NumPending == 0) {
			_ = m.Ack()
		}
	})
}

// consume reads a stream with the client library. It asks for as many bytes at once
// as the intake does: the broker closes a connection for which it holds 64 MiB.
func consume(ctx context.Context, stream jetstream.Stream, name string, handle jetstream.MessageHandler) (jetstream.Consumer, jetstream.ConsumeContext, error) {
	consumer, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: name, AckPolicy: jetstream.AckAllPolicy, MaxAckPending: 1 << 16})
	if err != nil {
		return nil, nil, err
	}
	reading, err := consumer.Consume(handle,
		jetstream.PullMaxMessagesWithBytesLimit(2*emitter.DefaultBatchEvents, emitter.DefaultBatchBytes))
	return consumer, reading, err
}

// intake is the consumer of a daemon, which it makes soon after its start.
func (p *plant) intake(ctx context.Context, storeID string) (jetstream.Consumer, error) {
	for {
		consumer, err := p.js.Consumer(ctx, emitter.DefaultStream, emitter.DefaultDurable+"-"+storeID)
		if !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return consumer, err
		}
		time.Sleep(time.Millisecond)
	}
}

// publish sends all and waits for the broker's acknowledgements.
func publish(js jetstream.JetStream, msgs []*nats.Msg) error {
	for _, m := range msgs {
		if _, err := js.PublishMsgAsync(m, jetstream.WithStallWait(time.Minute)); err != nil {
			return err
		}
	}
	select {
	case <-js.PublishAsyncComplete():
		return nil
	case <-time.After(time.Minute):
		return errors.New("the broker does not acknowledge")
	}
}

// acked waits until the consumer has acknowledged all up to seq: for ours that
// is after the commit. Both sides of a row are asked the same way.
func acked(ctx context.Context, consumer jetstream.Consumer, seq uint64) error {
	for {
		info, err := consumer.Info(ctx)
		if err != nil {
			return err
		}
		if info.AckFloor.Stream >= seq {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// course is one way through the broker.
type course struct {
	root     string
	consumer jetstream.Consumer
	sent     int
}

func (c *course) round(ctx context.Context, p *plant, l *lab, n, chains int) (sample, error) {
	msgs := messages(c.root, c.sent, n, chains, l.size)
	c.sent += n
	return timed(n, func() error {
		if err := publish(p.js, msgs); err != nil {
			return err
		}
		return acked(ctx, c.consumer, uint64(c.sent))
	})
}

// roundBytes bounds the payloads of one round, so that the disk is not still busy with
// one when the next begins.
const roundBytes = 128 << 20

// ofSize opens a row with events of so many bytes at least, and fewer of them where
// they are long.
func ofSize(size int, open func(context.Context, *lab) (*contest, error)) func(context.Context, *lab) (*contest, error) {
	return func(ctx context.Context, l *lab) (*contest, error) {
		sized := *l
		sized.size = max(size, l.size)
		sized.events = max(min(l.events, roundBytes/sized.size), 1)
		return open(ctx, &sized)
	}
}

// openIngestLarge is openIngest on a store that holds many segments already, in
// other chains, all of them open.
func openIngestLarge(chains int) func(context.Context, *lab) (*contest, error) {
	return func(ctx context.Context, l *lab) (*contest, error) {
		if err := fill(ctx, filepath.Join(l.dir, "data", "store"), l.segments, false); err != nil {
			return nil, err
		}
		return openIngest(chains)(ctx, l)
	}
}

// openIngest publishes and reads at once: the daemon its stream, the client
// library another one of the same broker.
func openIngest(chains int) func(context.Context, *lab) (*contest, error) {
	return func(ctx context.Context, l *lab) (*contest, error) {
		return inPlant(ctx, l.dir, l.batches, func(p *plant) (*contest, error) { return p.ingest(ctx, l, chains) })
	}
}

func (p *plant) ingest(ctx context.Context, l *lab, chains int) (*contest, error) {
	limit, reading, err := p.bareCourse(ctx, l)
	if err != nil {
		return nil, err
	}
	ours := &course{root: events.SubjectRoot}
	if ours.consumer, err = p.intake(ctx, p.info.StoreID); err != nil {
		return nil, err
	}
	if chains > l.events { // all chains are open before the first round
		if _, err := ours.round(ctx, p, l, chains, chains); err != nil {
			return nil, err
		}
	}
	return &contest{
		limit: func(int) (sample, error) { return limit.round(ctx, p, l, l.events, chains) },
		ours:  func(int) (sample, error) { return ours.round(ctx, p, l, l.events, chains) },
		close: func() error { reading.Stop(); return p.close() },
	}, nil
}

// bareCourse is the limit of ingest.
func (p *plant) bareCourse(ctx context.Context, l *lab) (*course, jetstream.ConsumeContext, error) {
	if err := p.pace(l.size); err != nil {
		return nil, nil, err
	}
	stream, err := p.likeStream(ctx, "BARE", "bare")
	if err != nil {
		return nil, nil, err
	}
	consumer, reading, err := bareConsumer(ctx, stream, "bare")
	return &course{root: "bare", consumer: consumer}, reading, err
}

// openDrain reads a stored backlog: the client library with a new consumer,
// and the daemon with an empty store, each from the first message on.
func openDrain(ctx context.Context, l *lab) (*contest, error) {
	return inPlant(ctx, l.dir, func(c *daemon.Config) { c.Intake.Off = true },
		func(p *plant) (*contest, error) { return p.drain(ctx, l) })
}

func (p *plant) drain(ctx context.Context, l *lab) (*contest, error) {
	if _, err := emitter.EnsureStreams(ctx, p.js, emitter.StreamConfig{}); err != nil {
		return nil, err
	}
	if err := publish(p.js, messages(events.SubjectRoot, 0, l.events, 64, l.size)); err != nil {
		return nil, err
	}
	stream, err := p.js.Stream(ctx, emitter.DefaultStream)
	if err != nil {
		return nil, err
	}
	return &contest{
		limit: func(i int) (sample, error) {
			return timed(l.events, func() error {
				consumer, reading, err := bareConsumer(ctx, stream, fmt.Sprint("bare", i))
				if err != nil {
					return err
				}
				defer reading.Stop()
				return acked(ctx, consumer, uint64(l.events))
			})
		},
		ours:  func(i int) (sample, error) { return p.drainOnce(ctx, l, i) },
		close: p.close,
	}, nil
}

// drainOnce gives the backlog to a second daemon, which has a new store and
// uses the first one's broker; its start counts only from the intake on.
func (p *plant) drainOnce(ctx context.Context, l *lab, i int) (sample, error) {
	d, err := startPlant(ctx, filepath.Join(l.dir, fmt.Sprint("drain", i)), func(c *daemon.Config) {
		c.NATS, c.Intake.BatchEvents = daemon.NATSConfig{URL: p.info.NATSURL}, l.batch
	})
	if err != nil {
		return sample{}, err
	}
	s, err := timed(l.events, func() error {
		consumer, err := p.intake(ctx, d.info.StoreID)
		if err != nil {
			return err
		}
		return acked(ctx, consumer, uint64(l.events))
	})
	return s, errors.Join(err, d.close())
}
