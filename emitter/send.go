package emitter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// publish gives the draft its number and sends it. What is still in line from
// an earlier call goes first.
func (p *Publisher) publish(ctx context.Context, d *draft) (Sent, error) {
	if err := p.take(ctx); err != nil {
		return Sent{}, err
	}
	defer p.give()
	if p.line != nil {
		if err := p.deliver(ctx); err != nil {
			return Sent{}, err
		}
	}
	o, err := p.prepare(d)
	if err != nil {
		return Sent{}, err
	}
	p.line = o
	if err := p.deliver(ctx); err != nil {
		return Sent{}, err
	}
	return o.sent(), nil
}

func (o *outgoing) sent() Sent {
	return Sent{EventID: o.id, ProducerSeq: o.seq, StreamSeq: o.streamSeq, Sum: o.sum}
}

// prepare writes the event, checks it the way the daemon will, and enters it
// into the chain as we compute it: its receipt may come before the broker's
// acknowledgement. An event that turns out never to be stored is withdrawn.
func (p *Publisher) prepare(d *draft) (*outgoing, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil, ErrEnded
	}
	after := appendTo(p.builder, d.kind)
	o := &outgoing{
		subject: p.key.Subject(d.verb), seq: p.next, kind: d.kind, final: d.final,
		before: p.builder, head: cloneDigest(after.Head),
	}
	var end *closing
	if d.final {
		end = p.closing(o.head)
	}
	o.id, o.payload = d.encode(&p.cfg.Scope, p.next, unixMS(p.cfg.Now()), end)
	o.sum = segments.Sum(o.payload)
	if err := p.check(o); err != nil {
		return nil, err
	}
	p.builder, p.ended = after, d.final
	p.track(o)
	return o, nil
}

func (p *Publisher) check(o *outgoing) error {
	if limit := p.sizeLimit(); len(o.payload) > limit {
		return &TooLargeError{Size: len(o.payload), Limit: limit}
	}
	e := events.Decode(events.Message{Subject: o.subject, Payload: o.payload}, events.Limits{MaxBytes: p.cfg.MaxEventBytes})
	if e.Fault != nil {
		return &InvalidError{Fault: *e.Fault}
	}
	return nil
}

func (p *Publisher) closing(head *segments.Digest) *closing {
	c := &closing{count: p.next + 1}
	if p.headUnknown || head == nil {
		return c
	}
	c.head = head
	if p.cfg.SigningKey != nil {
		c.signature = segments.Sign(p.cfg.SigningKey, &p.cfg.Scope, *head)
	}
	return c
}

// sizeLimit is the smaller of the daemon's limit and what the broker takes
// beside the headers that a publish carries.
func (p *Publisher) sizeLimit() int {
	limit := p.cfg.MaxEventBytes
	if broker := p.cfg.Conn.MaxPayload(); broker > 0 && int(broker)-publishHeadroom < limit {
		limit = int(broker) - publishHeadroom
	}
	return limit
}

// deliver sends the event in line until the broker has stored it. Every
// attempt sends the same bytes.
func (p *Publisher) deliver(ctx context.Context) error {
	var last error
	silent := silence{patience: p.cfg.PublishTimeout}
	for wait := time.Duration(0); ; wait = nextBackoff(wait) {
		if !p.pause(ctx, wait) {
			return p.unanswered(ctx, last)
		}
		ack, err := p.attempt(ctx)
		if err == nil {
			return p.stored(ack)
		}
		again, err := p.judge(ctx, err)
		if !again {
			return err
		}
		last = err
		if silent.tooLong(err) {
			return err
		}
		if p.line == nil { // an earlier attempt had been stored
			return nil
		}
	}
}

func (p *Publisher) attempt(ctx context.Context) (*jetstream.PubAck, error) {
	return p.send(ctx, &nats.Msg{Subject: p.line.subject, Data: p.line.payload}, p.lastSeq)
}

// send sends a message once. The leader of the stream takes it only if the
// chain's last message is at the expected sequence (unless the chain is shared).
func (p *Publisher) send(ctx context.Context, m *nats.Msg, expected uint64) (*jetstream.PubAck, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.PublishTimeout)
	defer cancel()
	opts := []jetstream.PublishOpt{jetstream.WithExpectStream(p.cfg.Stream), jetstream.WithRetryAttempts(0)}
	if !p.cfg.SharedChain {
		opts = append(opts, jetstream.WithExpectLastSequenceForSubject(expected, p.key.Subject("*")))
	}
	watched, stop := untilDenied(ctx, p.cfg.Conn, m.Subject)
	defer stop()
	ack, err := p.js.PublishMsg(watched, m, opts...)
	return ack, because(watched, err)
}

// stored records the acknowledgement of the event in line.
func (p *Publisher) stored(ack *jetstream.PubAck) error {
	if ack.Stream != p.cfg.Stream {
		p.drop()
		return fmt.Errorf("publish event: %w: %q", ErrWrongStream, ack.Stream)
	}
	p.settle(ack.Sequence)
	return nil
}

// settle takes the event out of the line: the stream holds it at seq.
func (p *Publisher) settle(seq uint64) {
	o := p.line
	p.line, p.lastSeq = nil, seq
	if o.streamSeq == 0 { // else Wait sent it again
		p.next, p.last = o.seq+1, o
	}
	o.streamSeq = seq
}

// drop takes the event out of the line: the stream does not hold it and never will.
func (p *Publisher) drop() {
	o := p.line
	p.line = nil
	if o.streamSeq != 0 {
		return // it holds an earlier copy
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.unconfirmed, o); i >= 0 {
		p.without(i)
		p.unconfirmed = slices.Delete(p.unconfirmed, i, i+1)
	}
}

// judge decides what a failed attempt means: try again or not, and what to say.
// An event that is certainly not stored and never will be leaves the line.
func (p *Publisher) judge(ctx context.Context, err error) (again bool, _ error) {
	var api *jetstream.APIError
	switch {
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum):
		size := len(p.line.payload)
		p.drop()
		return false, &TooLargeError{Size: size, Limit: p.sizeLimit()}
	case errors.Is(err, nats.ErrConnectionClosed):
		return false, fmt.Errorf("publish event: %w", ErrClosed)
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		return true, fmt.Errorf("publish event: %w", ErrNoStream)
	case errors.As(err, &api) && isWrongLast(api.ErrorCode):
		return p.resolve(ctx, err)
	case errors.As(err, &api) && api.ErrorCode == codeStreamNotMatch:
		p.drop()
		return false, fmt.Errorf("publish event: %w", ErrWrongStream)
	case errors.As(err, &api):
		return true, &RefusedError{Code: int(api.ErrorCode), Description: api.Description}
	case errors.Is(err, ErrNoReplies):
		return false, fmt.Errorf("publish event: %w", err)
	case errors.Is(err, ErrDenied), p.denied(p.line.subject):
		return false, fmt.Errorf("publish event to %s: %w", p.line.subject, ErrDenied)
	}
	return true, err
}

// codeStreamNotMatch: the expected stream is not the one that takes the subject.
const codeStreamNotMatch jetstream.ErrorCode = 10060

func isWrongLast(code jetstream.ErrorCode) bool {
	return code == jetstream.JSErrCodeStreamWrongLastSequence || code == jetstream.JSErrCodeStreamWrongLastSequenceConstant
}

// denied reports whether the broker refused a subject: it answers a denied
// publish with nothing, and says so on the connection alone.
func (p *Publisher) denied(subject string) bool {
	err := p.cfg.Conn.LastError()
	return errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), subject)
}

// resolve finds out why the chain's last message is not the one we know: an
// attempt of ours whose answer got lost, a trimmed stream, or another writer.
// If an attempt was stored, it is the first message behind the one we know,
// because the leader took it only there, whoever wrote behind it since. A
// replica that shows nothing there is late, or the attempt is still on its way:
// then neither is known, and trying again tells.
func (p *Publisher) resolve(ctx context.Context, refusal error) (again bool, _ error) {
	last, known := wrongLast(refusal)
	switch {
	case known && last == 0:
		p.lastSeq = 0 // everything of the chain has been trimmed
		return true, errors.New("the chain has been trimmed from the stream")
	case known && last < p.lastSeq:
		p.broken = fmt.Errorf("publish event: %w: its last message is %d, and was %d", ErrTakenBack, last, p.lastSeq)
		p.drop()
		return false, p.broken
	}
	next, err := p.following(ctx)
	switch {
	case err != nil:
		return ctx.Err() == nil, fmt.Errorf("look at the chain's last message: %w", err)
	case next == nil:
		return true, errBehind
	case next.Subject == p.line.subject && segments.Sum(next.Payload) == p.line.sum:
		p.settle(next.StreamSeq)
		return true, nil
	}
	return p.giveUp(next.StreamSeq)
}

// giveUp drops the event because somebody else's message stands in its place.
func (p *Publisher) giveUp(seq uint64) (again bool, _ error) {
	if p.last == nil && p.next == 0 {
		p.drop()
		return false, fmt.Errorf("begin chain: %w", ErrExists)
	}
	p.broken = fmt.Errorf("publish event: %w: message %d is not ours", ErrOtherWriter, seq)
	p.drop()
	return false, p.broken
}

func (p *Publisher) unanswered(ctx context.Context, last error) error {
	var refused *RefusedError
	if errors.As(last, &refused) || errors.Is(last, ErrNoStream) {
		return last
	}
	cause := context.Cause(ctx)
	if cause == nil {
		cause = ErrClosed
	}
	return &TimeoutError{EventID: p.line.id, For: "acknowledgement", Cause: cause}
}

// pause waits and reports whether the call goes on.
func (p *Publisher) pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
	case <-p.leaving:
	}
	return false
}

// sleep waits and reports whether ctx lasted.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func nextBackoff(d time.Duration) time.Duration { return min(max(2*d, minBackoff), maxBackoff) }
