package emitter

import (
	"context"
	"fmt"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// Resume goes on with a chain that has events already, after a restart of the
// runtime: it reads the chain's messages back from the stream and takes up
// numbering and head behind them. A chain without messages is begun. When the
// stream no longer holds the chain's beginning, the numbering goes on and the
// head stays unknown. That the stream lost the chain's end shows only with
// [PublisherConfig.LastSent]. After the last seal every call returns [ErrEnded], but
// [Publisher.Wait] still brings the last event's receipt.
func Resume(ctx context.Context, cfg PublisherConfig) (*Publisher, error) {
	p, err := Begin(ctx, cfg)
	if err != nil {
		return nil, err
	}
	r := replay{sought: p.cfg.LastSent, state: events.NewState(p.key), known: map[string]segments.Digest{},
		decoder: events.NewDecoder(events.Limits{MaxBytes: p.cfg.MaxEventBytes})}
	if err := p.readAll(ctx, r.apply); err != nil {
		_ = p.sub.Unsubscribe()
		return nil, fmt.Errorf("resume chain %s: %w", p.key.Chain, err)
	}
	p.takeUp(&r)
	p.keepClear(&r)
	return p, nil
}

// keepClear leaves out the numbers of events that the stream has lost, as far as
// the caller remembers one. If another event has that number by now, a life
// of the producer that did not remember gave it: then one number is left out.
func (p *Publisher) keepClear(r *replay) {
	sent := p.cfg.LastSent
	if sent == nil || r.found || r.trimmed && r.next > sent.ProducerSeq {
		return
	}
	p.next = max(r.next, sent.ProducerSeq) + 1
	p.mu.Lock()
	defer p.mu.Unlock()
	p.headUnknown = true
}

// replay applies a chain's messages the way the daemon does.
type replay struct {
	state   *events.State
	known   map[string]segments.Digest // event id to the payload that holds it
	decoder *events.Decoder

	next     uint64 // number behind the highest seen, or behind the count of events where they have none
	trimmed  bool   // the first message is not the chain's first event
	sought   *Sent  // nil: none
	found    bool   // the stream holds it
	rejected map[string]bool
	last     *outgoing
}

func (r *replay) apply(m events.Message) {
	e := r.decoder.Decode(m)
	known := events.Known{Rejected: r.rejected[e.ID]}
	if sum, ok := r.known[e.ID]; ok {
		known.Sum = &sum
	}
	effect := r.state.Apply(e, known)
	switch {
	case e.ID == "":
	case effect.Verdict == events.Rejected:
		if r.rejected == nil {
			r.rejected = map[string]bool{}
		}
		r.rejected[e.ID] = true
	default:
		r.known[e.ID] = e.Sum
	}
	r.number(e, effect.Verdict)
	r.found = r.found || r.sought != nil && r.sought.Sum == e.Sum
	r.last = &outgoing{subject: m.Subject, payload: m.Payload, sum: e.Sum, id: e.ID, streamSeq: m.StreamSeq,
		head: cloneDigest(effect.Head), missed: true, final: r.state.Outcome != events.Open}
}

func (r *replay) number(e *events.Event, v events.Verdict) {
	if r.last == nil {
		r.trimmed = e.ProducerSeq != nil && *e.ProducerSeq > 0
	}
	if v == events.Duplicate {
		return
	}
	r.next++
	if e.ProducerSeq != nil {
		r.next = max(r.next, *e.ProducerSeq+1)
	}
}

// takeUp goes on where the replay ended.
func (p *Publisher) takeUp(r *replay) {
	if r.last == nil {
		return
	}
	p.last, p.lastSeq, p.next = r.last, r.last.streamSeq, r.next
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = r.state.Outcome != events.Open
	p.builder = segments.Builder{Next: r.state.Segments, Head: cloneDigest(r.state.Head)}
	p.headUnknown = r.trimmed
	p.last.before = p.builder
	p.track(p.last)
}
