package emitter

import (
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/chaind/chaind/events"
)

// lostRange is a range of sequences, both included, that will not be delivered.
type lostRange struct {
	from, to uint64
	why      string
}

// batch is what one Append takes: first the lost ranges that lie before its
// events, then the events in stream order.
type batch struct {
	lost   []lostRange
	events []*events.Event
	bytes  int       // payload bytes
	ack    *nats.Msg // the last delivered message; nil: none of them was delivered
}

func (b *batch) reset() {
	clear(b.events)
	*b = batch{lost: b.lost[:0], events: b.events[:0]}
}

// handoff passes batches from the goroutine that receives to the one that
// commits: one batch is gathered while another is with the Appender. Whatever
// was gathered by the time the Appender is free goes next, so that an idle
// intake adds no delay and a busy one makes its batches larger.
type handoff struct {
	maxEvents, maxBytes int
	linger              time.Duration

	mu      sync.Mutex
	changed *sync.Cond // of everything below
	cur     *batch
	more    bool      // the broker has more messages on their way
	since   time.Time // of the first event in cur
	closed  bool
}

func newHandoff(cfg *IntakeConfig) *handoff {
	h := &handoff{maxEvents: cfg.BatchEvents, maxBytes: cfg.BatchBytes, linger: cfg.BatchTime, cur: &batch{}}
	h.changed = sync.NewCond(&h.mu)
	return h
}

func (h *handoff) full() bool {
	return len(h.cur.events) >= h.maxEvents || h.cur.bytes >= h.maxBytes
}

func (h *handoff) empty() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.vacant()
}

func (h *handoff) vacant() bool { return len(h.cur.events) == 0 && len(h.cur.lost) == 0 }

// put adds the next event, waiting while the batch is full. It returns false
// when the session is over.
func (h *handoff) put(e *events.Event, ack *nats.Msg, more bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.full() && !h.closed {
		h.changed.Wait()
	}
	if h.closed {
		return false
	}
	if len(h.cur.events) == 0 {
		h.since = time.Now()
	}
	h.cur.events = append(h.cur.events, e)
	h.cur.bytes += len(e.Payload)
	if ack != nil {
		h.cur.ack = ack
	}
	h.more = more
	if len(h.cur.events) == 1 || !more || h.full() {
		h.changed.Broadcast()
	}
	return true
}

// lose adds a lost range. The events before it must be durable first, so it
// waits until they have been taken.
func (h *handoff) lose(l lostRange) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.cur.events) > 0 && !h.closed {
		h.more = false
		h.changed.Broadcast()
		h.changed.Wait()
	}
	if h.closed {
		return false
	}
	h.cur.lost = append(h.cur.lost, l)
	h.more = false
	h.changed.Broadcast()
	return true
}

// take returns the gathered batch and goes on gathering in spare; nil: the
// session is over.
func (h *handoff) take(spare *batch) *batch {
	spare.reset()
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.vacant() && !h.closed {
		h.changed.Wait()
	}
	h.await()
	if h.closed {
		return nil
	}
	b := h.cur
	h.cur = spare
	h.changed.Broadcast()
	return b
}

// await gives messages that are known to come a moment to join the batch.
func (h *handoff) await() {
	left := h.linger - time.Since(h.since)
	if !h.more || h.full() || h.closed || left <= 0 {
		return
	}
	late := false
	timer := time.AfterFunc(left, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		late = true
		h.changed.Broadcast()
	})
	defer timer.Stop()
	for h.more && !h.full() && !h.closed && !late {
		h.changed.Wait()
	}
}

func (h *handoff) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.changed.Broadcast()
}
