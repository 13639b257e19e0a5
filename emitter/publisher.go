package emitter

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// PublisherConfig says for which chain a [Publisher] publishes.
type PublisherConfig struct {
	Conn *nats.Conn // required; it stays the caller's

	// Scope is sent with every event. Its tenant, prompt hash and session are
	// part of the subject. SchemaVersion 0 means segments.ScopeSchemaVersion.
	Scope segments.Scope
	// Chain names the transcript: 1 to 64 of [A-Za-z0-9_-]. A ULID serves.
	Chain string

	Stream        string // that must take the events; "": DefaultStream
	MaxEventBytes int    // the daemon's limit; 0: DefaultMaxEventBytes

	// SigningKey is the producer's own key: the last seal then carries a
	// signature that does not depend on the operator of the daemon. nil: none.
	SigningKey ed25519.PrivateKey

	// SharedChain lets others write to the chain too. Without it the broker
	// refuses an event when the chain's last message is not the one that this
	// publisher knows, which keeps two writers from forking a chain and a
	// retry from being stored twice. (Brokers before 2.11 cannot do that: there
	// the chain is always shared, and repeats are left to the daemon.)
	SharedChain bool

	// LastSent is for Resume: the last event of the chain whose publishing
	// returned, as the runtime kept it across its restart. Where the stream holds it
	// no more, the broker lost at least that one: Resume gives its number, and those
	// before it, to no other event, and the head is unknown, so that the chain is
	// complete only if the daemon had taken what was lost. nil: what the stream holds
	// is all that Resume knows, and a tail that was lost before the daemon took it
	// is missed by nobody.
	LastSent *Sent

	PublishTimeout time.Duration    // for one acknowledgement, and before ErrNoStream; 0: DefaultPublishTimeout
	ReceiptTimeout time.Duration    // before an event without receipt is sent again; 0: DefaultReceiptTimeout
	Now            func() time.Time // stamps at_ms; nil: time.Now
}

// Key is the chain's identity.
func (c PublisherConfig) Key() events.Key {
	return events.Key{Tenant: c.Scope.TenantID, PromptHash: c.Scope.PromptHash, Session: c.Scope.ExecuteSessionID, Chain: c.Chain}
}

func (c PublisherConfig) withDefaults() PublisherConfig {
	if c.Scope.SchemaVersion == 0 {
		c.Scope.SchemaVersion = segments.ScopeSchemaVersion
	}
	c.Stream = orString(c.Stream, DefaultStream)
	c.MaxEventBytes = orNumber(c.MaxEventBytes, DefaultMaxEventBytes)
	c.PublishTimeout = orNumber(c.PublishTimeout, DefaultPublishTimeout)
	c.ReceiptTimeout = orNumber(c.ReceiptTimeout, DefaultReceiptTimeout)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c PublisherConfig) validate() error {
	if c.Conn == nil {
		return errors.New("publisher configuration: Conn is missing")
	}
	if err := c.Key().Validate(); err != nil {
		return fmt.Errorf("publisher configuration: %w", err)
	}
	if n := len(c.SigningKey); n != 0 && n != ed25519.PrivateKeySize {
		return fmt.Errorf("publisher configuration: signing key of %d bytes", n)
	}
	if c.LastSent != nil && c.LastSent.Sum == (segments.Digest{}) {
		return errors.New("publisher configuration: LastSent has no digest: it is none that a Publisher returned")
	}
	return nil
}

// Publisher publishes the events of one chain, one at a time. A call returns
// when the broker has stored the event (which may precede its fsync); [Publisher.Wait]
// when the daemon has made it durable. Calls may come from several goroutines; they take turns.
type Publisher struct {
	cfg  PublisherConfig
	key  events.Key
	js   jetstream.JetStream
	sub  *nats.Subscription
	turn chan struct{} // capacity 1: holding the token is the right to send

	leaving   chan struct{} // closed by Close, so that a call that waits returns
	closeOnce sync.Once

	// Owned by the holder of the turn.
	line    *outgoing // sent, and not known to be stored; nil: none
	last    *outgoing // stored last; nil: none
	lastSeq uint64    // stream sequence of the chain's last message; 0: none
	next    uint64    // producer_seq of the next event
	broken  error     // set once the chain belongs to somebody else, or Close was called

	mu sync.Mutex
	// Guarded by mu, held for memory operations only.
	builder     segments.Builder
	ended       bool          // the last seal has been sent, and was not refused
	headUnknown bool          // Resume could not read the chain from its start, or to the end that it once had
	unconfirmed []*outgoing   // in the order of sending
	refused     []error       // *RejectedError of events not yet told to the caller
	news        chan struct{} // closed and replaced when a receipt came
	sealed      *Receipt      // the chain's evidence has been written
}

// outgoing is one event on its way.
type outgoing struct {
	subject string
	payload []byte
	sum     segments.Digest
	id      string
	seq     uint64        // producer_seq
	kind    segments.Kind // nil: no segment
	final   bool          // the last seal

	streamSeq uint64           // once stored
	before    segments.Builder // chain before the event
	head      *segments.Digest // chain after it, as we computed it
	receipt   *Receipt         // nil: none yet
	answer    EventReceipt     // this event's part of the receipt
	missed    bool             // its receipt came, if it came, before we listened
}

// Sent says that the broker has stored an event. A runtime that keeps it, in a
// file say, can hand it to [Resume].
type Sent struct {
	EventID     string
	ProducerSeq uint64
	StreamSeq   uint64
	Sum         segments.Digest // SHA-256 of the payload
}

// Begin starts a chain. The first event fails with [ErrExists] when the chain has events already.
func Begin(ctx context.Context, cfg PublisherConfig) (*Publisher, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	js, err := jetstream.New(cfg.Conn)
	if err != nil {
		return nil, fmt.Errorf("begin chain: %w", err)
	}
	cfg = cfg.withDefaults()
	p := &Publisher{
		cfg: cfg, key: cfg.Key(), js: js,
		turn: make(chan struct{}, 1), leaving: make(chan struct{}), news: make(chan struct{}),
	}
	p.turn <- struct{}{}
	p.sub, err = cfg.Conn.Subscribe(p.key.ReceiptSubject(), p.receive)
	if err != nil {
		return nil, fmt.Errorf("subscribe to receipts: %w", err)
	}
	// The broker must know the subscription before the first event, or its receipt is lost.
	if err := known(ctx, cfg.Conn); err != nil {
		_ = p.sub.Unsubscribe()
		return nil, fmt.Errorf("subscribe to receipts: %w", err)
	}
	p.cfg.SharedChain = cfg.SharedChain || !comparesLast(cfg.Conn.ConnectedServerVersion())
	return p, nil
}

// comparesLast reports whether a broker of this version compares the last
// message under a subject with wildcards ("Nats-Expected-Last-Subject-Sequence-Subject").
func comparesLast(version string) bool {
	var major, minor int
	n, err := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return err == nil && n == 2 && (major > 2 || major == 2 && minor >= 11)
}

// Key is the chain's identity.
func (p *Publisher) Key() events.Key { return p.key }

// Head is the chain's head as the publisher computed it over the events it
// sent and has not seen rejected; nil: no segment yet. After a Resume that
// could not read the chain's beginning, or [PublisherConfig.LastSent], it is
// unknown (false), and the last seal carries no producer_head.
func (p *Publisher) Head() (*segments.Digest, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return cloneDigest(p.builder.Head), !p.headUnknown
}

// Close ends the publisher, not the chain. It returns ErrUnsent when the last
// event was sent and it is not known whether it was stored. It is idempotent.
func (p *Publisher) Close() error {
	p.closeOnce.Do(func() { close(p.leaving) })
	<-p.turn
	defer func() { p.turn <- struct{}{} }()
	if errors.Is(p.broken, ErrClosed) {
		return nil
	}
	p.broken = ErrClosed
	if err := p.sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) && !errors.Is(err, nats.ErrBadSubscription) {
		return fmt.Errorf("close publisher: %w", err)
	}
	if p.line != nil && p.line.streamSeq == 0 {
		return fmt.Errorf("close publisher: event %s: %w", p.line.id, ErrUnsent)
	}
	return nil
}

// take waits for the turn. The caller gives it back with p.give.
func (p *Publisher) take(ctx context.Context) error {
	select {
	case <-p.turn:
	case <-ctx.Done():
		return fmt.Errorf("wait for the turn: %w", ctx.Err())
	case <-p.leaving:
		return ErrClosed
	}
	if p.broken != nil {
		p.give()
		return p.broken
	}
	return nil
}

func (p *Publisher) give() { p.turn <- struct{}{} }

func cloneDigest(d *segments.Digest) *segments.Digest {
	if d == nil {
		return nil
	}
	c := *d
	return &c
}

// appendTo appends kind to a copy of b and returns the copy.
func appendTo(b segments.Builder, kind segments.Kind) segments.Builder {
	b.Head = cloneDigest(b.Head)
	if kind != nil {
		b.Append(kind, nil)
	}
	return b
}

// track remembers an event until its receipt comes. The oldest is forgotten
// when too many wait: Wait needs the last one only. mu is held.
func (p *Publisher) track(o *outgoing) {
	if len(p.unconfirmed) >= maxUnconfirmed {
		p.unconfirmed = slices.Delete(p.unconfirmed, 0, 1)
	}
	p.unconfirmed = append(p.unconfirmed, o)
}
