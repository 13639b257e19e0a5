package emitter

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/segments"
)

// stored message of the chain.
type storedMessage struct {
	subject string
	seq     uint64
	sum     segments.Digest
}

// lastMessage reads the chain's last message; nil: the stream holds none.
func (p *Publisher) lastMessage(ctx context.Context) (*storedMessage, error) {
	var last *storedMessage
	err := p.read(ctx, jetstream.DeliverLastPolicy, func(m jetstream.Msg, seq uint64, _ uint64) error {
		last = &storedMessage{subject: m.Subject(), seq: seq, sum: segments.Sum(m.Data())}
		return nil
	})
	return last, err
}

// read visits the chain's messages in stream order, up to the last one that
// the stream holds when it gets there. It goes through an ordered consumer
// whose filter is the chain's subject: a tenant's permissions can name that.
func (p *Publisher) read(ctx context.Context, from jetstream.DeliverPolicy, visit func(m jetstream.Msg, seq, ms uint64) error) error {
	consumer, err := p.js.OrderedConsumer(ctx, p.cfg.Stream, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{p.key.Subject("*")}, DeliverPolicy: from,
	})
	if err != nil {
		return fmt.Errorf("read chain: %w", err)
	}
	if consumer.CachedInfo().NumPending == 0 {
		return nil
	}
	messages, err := consumer.Messages()
	if err != nil {
		return fmt.Errorf("read chain: %w", err)
	}
	defer messages.Stop()
	for {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return fmt.Errorf("read chain: %w", err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return fmt.Errorf("read chain: %w", err)
		}
		if err := visit(m, meta.Sequence.Stream, uint64(max(0, meta.Timestamp.UnixMilli()))); err != nil {
			return err
		}
		if meta.NumPending == 0 {
			return nil
		}
	}
}
