package emitter

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/events"
)

// Relay publishes messages whose bytes somebody else made, unchanged, one at a
// time and so in order. It checks nothing but the broker's acknowledgement;
// what the messages are worth is the intake's business.
type Relay struct {
	js     jetstream.JetStream
	stream string
}

// NewRelay publishes to the stream; "" is [DefaultStream]. The connection stays
// the caller's.
func NewRelay(conn *nats.Conn, stream string) (*Relay, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, fmt.Errorf("make relay: %w", err)
	}
	return &Relay{js: js, stream: orString(stream, DefaultStream)}, nil
}

// Publish sends one message and waits for the acknowledgement of the stream.
// It returns the message's stream sequence, and whether the broker says that it
// dropped the message as a repeat of that one (by Nats-Msg-Id). Errors:
// [ErrNoStream], [ErrWrongStream], [ErrDenied] and [ErrNoReplies], or what the
// broker said.
func (r *Relay) Publish(ctx context.Context, subject string, header map[string]string, payload []byte) (seq uint64, duplicate bool, err error) {
	msg := nats.NewMsg(subject)
	msg.Data = payload
	for name, value := range header {
		msg.Header.Set(name, value)
	}
	ctx, cancel := context.WithTimeout(ctx, DefaultPublishTimeout)
	defer cancel()
	watched, stop := untilDenied(ctx, r.js.Conn(), subject)
	defer stop()
	ack, err := r.outlast(watched, msg)
	if err != nil {
		return 0, false, fmt.Errorf("publish on %s: %w", subject, err)
	}
	if ack.Stream != r.stream {
		return 0, false, fmt.Errorf("publish on %s: stream %s answered: %w", subject, ack.Stream, ErrWrongStream)
	}
	return ack.Sequence, ack.Duplicate, nil
}

// outlast publishes, again while nobody answers for the stream: nothing was taken
// then, and an election of its leader looks like that for some seconds. A broker
// that says there is no such stream ends it at once.
func (r *Relay) outlast(ctx context.Context, msg *nats.Msg) (*jetstream.PubAck, error) {
	for wait := minBackoff; ; wait = nextBackoff(wait) {
		ack, err := r.js.PublishMsg(ctx, msg)
		if err == nil {
			return ack, nil
		}
		err = relayed(because(ctx, err))
		if !errors.Is(err, ErrNoStream) || !strings.HasPrefix(msg.Subject, events.SubjectRoot+".") || r.absent(ctx) || !sleep(ctx, wait) {
			return nil, err
		}
	}
}

// absent tells whether the broker says that there is no such stream. One that is
// electing, or that this user may not ask, says nothing.
func (r *Relay) absent(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, absentTimeout)
	defer cancel()
	_, err := r.js.Stream(ctx, r.stream)
	return errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrJetStreamNotEnabled)
}

// Holds tells whether the stream holds an event of the chain. It asks the
// stream's leader, where the broker can answer that (see
// [PublisherConfig.SharedChain]), and reads back otherwise. Errors: [ErrNoStream],
// [ErrWrongStream] and [ErrDenied], or what the broker said.
func (r *Relay) Holds(ctx context.Context, key events.Key) (held bool, err error) {
	conn := r.js.Conn()
	p := &Publisher{cfg: PublisherConfig{Conn: conn, Stream: r.stream}.withDefaults(), key: key, js: r.js}
	err = p.persist(ctx, func() error {
		if comparesLast(conn.ConnectedServerVersion()) {
			last, err := p.askLast(ctx)
			held = last > 0
			return err
		}
		first, err := p.following(ctx)
		held = first != nil
		return err
	})
	if err != nil {
		return false, fmt.Errorf("look for chain %s: %w", key.Chain, err)
	}
	return held, nil
}

// Receipts calls visit, from one goroutine, for every receipt on the subject
// (a chain's, or events.ReceiptRoot+".>" for all), until the returned function
// is called. The broker knows the subscription when Receipts returns; where it
// refuses it, the error is [ErrNotReadable].
func Receipts(ctx context.Context, conn *nats.Conn, subject string, visit func(*Receipt)) (stop func() error, err error) {
	sub, err := conn.Subscribe(subject, func(m *nats.Msg) {
		if r, err := ParseReceipt(m.Data); err == nil && genuine(m, r) {
			visit(r)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe to receipts: %w", err)
	}
	err = known(ctx, conn)
	if last := conn.LastError(); err == nil && errors.Is(last, nats.ErrPermissionViolation) && violates(last, "subscription", subject, `"`) {
		err = ErrNotReadable
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("subscribe to receipts %s: %w", subject, err), sub.Unsubscribe())
	}
	return sub.Unsubscribe, nil
}

// genuine tells whether a receipt was published as one. Whoever may make a
// consumer can have the broker deliver messages of its own to any subject, the
// receipts of others among them; they still carry the subject under which they
// were published, which permissions guard.
func genuine(m *nats.Msg, r *Receipt) bool { return m.Subject == r.Key().ReceiptSubject() }

// known returns when the broker knows all subscriptions made so far, so that
// nothing published afterwards passes them by. The client wants a deadline.
func known(ctx context.Context, conn *nats.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, DefaultPublishTimeout)
	defer cancel()
	return conn.FlushWithContext(ctx)
}

// relayed replaces the client's two ways to say that nobody listened.
func relayed(err error) error {
	if errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders) {
		return ErrNoStream
	}
	return err
}
