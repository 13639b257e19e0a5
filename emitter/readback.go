package emitter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/events"
)

// errBehind: whoever answered has not caught up with the stream's leader. In a
// cluster a consumer reads from the replica it lives on, which may be late, and
// while a leader is elected it may live on a server that is gone.
var errBehind = errors.New("the replica is behind the stream")

// readAll visits the chain's messages in stream order, each once, up to the one
// that the stream's leader calls the last: a replica that is late must not make
// a chain look shorter than it is. Where the broker cannot be asked (see
// [PublisherConfig.SharedChain]) it is what one replica holds.
func (p *Publisher) readAll(ctx context.Context, visit func(events.Message)) error {
	var seen uint64
	return p.persist(ctx, func() error {
		var last uint64
		if !p.cfg.SharedChain {
			var err error
			if last, err = p.askLast(ctx); err != nil || seen >= last {
				return err
			}
		}
		err := p.read(ctx, seen+1, func(m events.Message) bool {
			seen = m.StreamSeq
			visit(m)
			return true
		})
		if err == nil && seen < last {
			return errBehind
		}
		return err
	})
}

// persist tries again what fails while servers come and go, until ctx ends. A
// stream that nobody answers for is given as long as an acknowledgement.
func (p *Publisher) persist(ctx context.Context, try func() error) error {
	silent := silence{patience: p.cfg.PublishTimeout}
	for wait := minBackoff; ; wait = nextBackoff(wait) {
		err := try()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, nats.ErrConnectionClosed):
			return ErrClosed
		case p.denied(p.key.Subject("")):
			return ErrDenied
		case final(err), silent.tooLong(err):
			return err
		}
		if !sleep(ctx, wait) {
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// final reports whether the broker's answer would be the same again.
func final(err error) bool {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.Code/100 == 4 && !isWrongLast(api.ErrorCode)
	}
	return errors.Is(err, ErrWrongStream)
}

// silence measures how long nobody has answered for the stream: an election
// looks like that for a while, a missing stream for ever.
type silence struct {
	patience time.Duration
	since    time.Time // zero: it has answered
}

func (s *silence) tooLong(err error) bool {
	if !errors.Is(err, ErrNoStream) {
		s.since = time.Time{}
		return false
	}
	if s.since.IsZero() {
		s.since = time.Now()
	}
	return time.Since(s.since) >= s.patience
}

// neverLast is no message's sequence: a publish that expects it is refused.
const neverLast = math.MaxInt64

// askLast asks the stream's leader for the sequence of the chain's last
// message; 0: it holds none. Only the leader checks what a publish expects, and
// its refusal names what is there; a tenant's permissions allow nothing else.
func (p *Publisher) askLast(ctx context.Context) (uint64, error) {
	ack, err := p.send(ctx, &nats.Msg{Subject: p.key.Subject(events.VerbIntent)}, neverLast)
	if err == nil {
		return 0, fmt.Errorf("ask for the chain's last message: stored at %d", ack.Sequence)
	}
	if last, known := wrongLast(err); known {
		return last, nil
	}
	return 0, fmt.Errorf("ask for the chain's last message: %w", unlocated(err))
}

// unlocated replaces the client's ways to say that the stream is not there.
func unlocated(err error) error {
	var api *jetstream.APIError
	switch {
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, jetstream.ErrStreamNotFound):
		return ErrNoStream
	case errors.As(err, &api) && api.ErrorCode == codeStreamNotMatch:
		return ErrWrongStream
	}
	return err
}

// wrongLast takes the chain's last sequence from the leader's refusal; false:
// the error is another one, or says only that a message is on its way into the stream.
func wrongLast(err error) (last uint64, known bool) {
	var api *jetstream.APIError
	if !errors.As(err, &api) || api.ErrorCode != jetstream.JSErrCodeStreamWrongLastSequence {
		return 0, false
	}
	colon := strings.LastIndexByte(api.Description, ':')
	_, scanErr := fmt.Sscanf(api.Description[colon+1:], "%d", &last)
	return last, colon >= 0 && scanErr == nil
}

// following reads the chain's first message behind the one that we know; nil:
// none is seen there, by a replica that may be late.
func (p *Publisher) following(ctx context.Context) (next *events.Message, err error) {
	err = p.read(ctx, p.lastSeq+1, func(m events.Message) bool {
		next = &m
		return false
	})
	return next, err
}

// read visits the chain's messages in stream order, beginning at a sequence, up
// to the last one that the replica holds when it gets there, or until visit
// returns false. It goes through an ordered consumer whose filter is the
// chain's subject: a tenant's permissions can name that.
func (p *Publisher) read(ctx context.Context, from uint64, visit func(events.Message) bool) error {
	consumer, err := p.consumer(ctx, from)
	if err != nil {
		return fmt.Errorf("read chain: %w", unlocated(err))
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
		m, left, err := p.nextMessage(ctx, messages)
		if err != nil {
			return fmt.Errorf("read chain: %w", err)
		}
		if !visit(m) || left == 0 {
			return nil
		}
	}
}

func (p *Publisher) consumer(ctx context.Context, from uint64) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.PublishTimeout)
	defer cancel()
	return p.js.OrderedConsumer(ctx, p.cfg.Stream, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{p.key.Subject("*")}, InactiveThreshold: readerLease,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from,
	})
}

// nextMessage waits as long as for an acknowledgement: a consumer's server may be gone.
func (p *Publisher) nextMessage(ctx context.Context, messages jetstream.MessagesContext) (_ events.Message, left uint64, _ error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.PublishTimeout)
	defer cancel()
	m, err := messages.Next(jetstream.NextContext(ctx))
	if err != nil {
		return events.Message{}, 0, err
	}
	meta, err := m.Metadata()
	if err != nil {
		return events.Message{}, 0, err
	}
	return events.Message{Subject: m.Subject(), Payload: m.Data(),
		StreamSeq: meta.Sequence.Stream, BrokerMS: unixMS(meta.Timestamp)}, meta.NumPending, nil
}
