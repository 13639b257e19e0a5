package emitter

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/chaind/chaind/events"
)

// Confirmation says that an event is durable at the daemon.
type Confirmation struct {
	Event   EventReceipt // what became of the event
	Receipt *Receipt     // the message that said so
}

// Wait returns when the event sent last is durable at the daemon: as a segment,
// an attempt, the end, or a duplicate. With it every event before is, unless the
// broker lost some in between: that shows here as a [HeadError] where segments
// of an unshared chain are missing, and else in the evidence, which is
// incomplete by producer_seq and event_count. When
// an event since the last call was rejected (or came late) it returns the
// [RejectedError] of the first such event; calling again goes on, and in the
// end returns the last event's answer whatever it is: see its verdict. A
// [HeadError] says that the daemon's chain is not ours. Receipts may be lost,
// so an event without one is sent again from time to time. It returns a
// [TimeoutError] when ctx ends first.
func (p *Publisher) Wait(ctx context.Context) (*Confirmation, error) {
	if err := p.take(ctx); err != nil {
		return nil, err
	}
	defer p.give()
	if p.line != nil {
		if err := p.deliver(ctx); err != nil {
			return nil, err
		}
	}
	if p.last == nil {
		return nil, ErrNothingSent
	}
	if err := p.await(ctx); err != nil {
		return nil, err
	}
	return p.conclude()
}

// await waits for the last event's receipt, sending it again when none comes.
func (p *Publisher) await(ctx context.Context) error {
	for {
		news, done := p.look(func() bool { return p.last.receipt != nil })
		if done {
			return nil
		}
		patience := p.cfg.ReceiptTimeout
		if p.last.missed {
			patience, p.last.missed = 0, false
		}
		again := time.NewTimer(patience)
		select {
		case <-news:
			again.Stop()
		case <-ctx.Done():
			again.Stop()
			return &TimeoutError{EventID: p.last.id, For: "receipt", Cause: context.Cause(ctx)}
		case <-p.leaving:
			again.Stop()
			return ErrClosed
		case <-again.C:
			p.line = p.last
			if err := p.deliver(ctx); err != nil {
				return err
			}
		}
	}
}

// look tests a condition under the lock, and returns the channel that closes at the next receipt.
func (p *Publisher) look(done func() bool) (<-chan struct{}, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.news, done()
}

func (p *Publisher) conclude() (*Confirmation, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.refused) > 0 {
		err := p.refused[0]
		p.refused = p.refused[1:]
		return nil, err
	}
	o := p.last
	if want := hexOf(o.head); !p.headUnknown && !p.cfg.SharedChain && o.answer.Head != want {
		return nil, &HeadError{EventID: o.id, Want: want, Got: o.answer.Head}
	}
	return &Confirmation{Event: o.answer, Receipt: o.receipt}, nil
}

// WaitSealed returns the receipt that the daemon sends when the evidence of
// the finished chain has been written. It may be lost: [ErrTimeout] does not mean that nothing was written.
func (p *Publisher) WaitSealed(ctx context.Context) (*Receipt, error) {
	for {
		var sealed *Receipt
		news, done := p.look(func() bool { sealed = p.sealed; return sealed != nil })
		if done {
			return sealed, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the sealed receipt: %w: %w", ErrTimeout, context.Cause(ctx))
		case <-p.leaving:
			return nil, ErrClosed
		}
	}
}

// receive handles the chain's receipts, in the subscription's goroutine.
func (p *Publisher) receive(m *nats.Msg) {
	r, err := ParseReceipt(m.Data)
	if err != nil || !genuine(m, r) || r.Key() != p.key || r.Stream != p.cfg.Stream {
		return // not one of ours; Wait sends again
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Type == ReceiptSealed {
		p.sealed = r
	}
	for i := range r.Events {
		p.confirm(r, &r.Events[i])
	}
	close(p.news)
	p.news = make(chan struct{})
}

// confirm gives an event its receipt. mu is held.
func (p *Publisher) confirm(r *Receipt, answer *EventReceipt) {
	for i, o := range p.unconfirmed {
		if o.id != answer.EventID || o.sum.String() != answer.SHA256 {
			continue
		}
		o.receipt, o.answer = r, *answer
		if answer.Verdict == events.Rejected || answer.Verdict == events.Late {
			p.refused = append(p.refused, rejectedError(answer))
			p.without(i)
		}
		p.unconfirmed = append(p.unconfirmed[:i], p.unconfirmed[i+1:]...)
		return
	}
}

// without recomputes the chain as it is when event i is no part of it. mu is held.
func (p *Publisher) without(i int) {
	gone := p.unconfirmed[i]
	b := gone.before
	gone.head = cloneDigest(b.Head)
	p.ended = p.ended && !gone.final
	for _, o := range p.unconfirmed[i+1:] {
		o.before = b
		b = appendTo(b, o.kind)
		o.head = cloneDigest(b.Head)
	}
	p.builder = b
}
