package emitter

import (
	"context"
	"fmt"
	"sync"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// memory is a faithful store in memory: it dedupes by (chain, event id,
// digest), keeps a watermark per stream, and applies the state machine. Faults
// are injected through its hooks.
type memory struct {
	// before is called before a batch is applied, after when it has become
	// durable; an error of either is what Append returns.
	before, after func(b *events.Batch) error

	mu         sync.Mutex
	chains     map[events.Key]*memoryChain
	applied    map[events.Stream]uint64
	had        map[events.Stream]map[uint64]Applied
	epochs     []string
	lost       []string
	settings   []string // after which sequence, and which
	rejections []events.Rejection
	published  uint64
	added      chan struct{}
	disorder   []string // whatever came out of stream order
	batches    []int
}

type memoryChain struct {
	state    *events.State
	known    map[string]segments.Digest
	rejected map[string]bool
	segments []segments.Segment
	ids      []string // event ids of the segments
	verdicts []events.Verdict
}

func newMemory() *memory {
	return &memory{
		chains: map[events.Key]*memoryChain{}, applied: map[events.Stream]uint64{},
		had: map[events.Stream]map[uint64]Applied{}, added: make(chan struct{}, 1),
	}
}

func (m *memory) ledger() Ledger {
	return Ledger{
		Watermark: func(s events.Stream) (uint64, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.applied[s], nil
		},
		RecordLost: func(_ context.Context, s events.Stream, from, to uint64, why string) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			if from != m.applied[s]+1 {
				m.disorder = append(m.disorder, fmt.Sprintf("lost %d-%d at %d", from, to, m.applied[s]))
			}
			m.lost = append(m.lost, fmt.Sprintf("%d-%d %s", from, to, why))
			m.applied[s] = to
			return nil
		},
		BeginEpoch: func(_ context.Context, s events.Stream, base uint64, why string) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.epochs = append(m.epochs, fmt.Sprintf("%d %s", base, why))
			m.applied[s] = base
			return nil
		},
		RecordSettings: func(_ context.Context, s events.Stream, weak []events.Weakness) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.settings = append(m.settings, fmt.Sprintf("%d %v", m.applied[s], weak))
			return nil
		},
		AppliedAt: func(s events.Stream, seq uint64) (Applied, bool, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			had, ok := m.had[s][seq]
			return had, ok, nil
		},
	}
}

func (m *memory) Append(_ context.Context, b *events.Batch) ([]events.Effect, error) {
	if m.before != nil {
		if err := m.before(b); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	effects := make([]events.Effect, len(b.Events))
	m.batches = append(m.batches, len(b.Events))
	for i, e := range b.Events {
		effects[i] = m.apply(b.Stream, e)
	}
	m.mu.Unlock()
	if m.after != nil {
		if err := m.after(b); err != nil {
			return nil, err
		}
	}
	return effects, nil
}

func (m *memory) apply(stream events.Stream, e *events.Event) events.Effect {
	if e.StreamSeq > m.applied[stream]+1 {
		m.disorder = append(m.disorder, fmt.Sprintf("%d after %d", e.StreamSeq, m.applied[stream]))
	}
	c := m.chain(e.Key)
	if e.StreamSeq <= m.applied[stream] { // given again
		return events.Effect{Verdict: events.Duplicate, Head: c.state.Head}
	}
	m.applied[stream] = e.StreamSeq
	if m.had[stream] == nil {
		m.had[stream] = map[uint64]Applied{}
	}
	m.had[stream][e.StreamSeq] = Applied{Sum: e.Sum, BrokerMS: e.BrokerMS}
	if !e.Attributed {
		m.reject(e, events.Effect{Verdict: events.Rejected, Fault: e.Fault})
		return events.Effect{Verdict: events.Rejected, Fault: e.Fault}
	}
	return m.take(c, e)
}

func (m *memory) take(c *memoryChain, e *events.Event) events.Effect {
	known := events.Known{Rejected: c.rejected[e.ID]}
	if sum, ok := c.known[e.ID]; ok {
		known.Sum = &sum
	}
	effect := c.state.Apply(e, known)
	c.verdicts = append(c.verdicts, effect.Verdict)
	switch effect.Verdict {
	case events.Rejected:
		c.rejected[e.ID] = true
		m.reject(e, effect)
	case events.Duplicate:
	default:
		c.known[e.ID] = e.Sum
	}
	if effect.Segment != nil {
		c.segments = append(c.segments, *effect.Segment)
		c.ids = append(c.ids, e.ID)
	}
	return effect
}

func (m *memory) reject(e *events.Event, f events.Effect) {
	m.rejections = append(m.rejections, events.Rejection{
		ID: uint64(len(m.rejections) + 1), Message: e.Message, Key: e.Key, Attributed: e.Attributed, EventID: e.ID,
		Class: f.Fault.Class, Detail: f.Fault.Detail, Sum: e.Sum, Existing: f.Existing, AfterEnd: f.AfterEnd,
	})
	select {
	case m.added <- struct{}{}:
	default:
	}
}

func (m *memory) chain(key events.Key) *memoryChain {
	c := m.chains[key]
	if c == nil {
		c = &memoryChain{state: events.NewState(key), known: map[string]segments.Digest{}, rejected: map[string]bool{}}
		m.chains[key] = c
	}
	return c
}

// look calls f with the chain under the lock.
func (m *memory) look(key events.Key, f func(*memoryChain)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m.chain(key))
}

func (m *memory) highest() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	high := uint64(0)
	for _, seq := range m.applied {
		high = max(high, seq)
	}
	return high
}

func (m *memory) PendingRejections(limit int) ([]events.Rejection, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	pending := m.rejections[m.published:]
	return append([]events.Rejection(nil), pending[:min(limit, len(pending))]...), nil
}

func (m *memory) RejectionsPublished(_ context.Context, upTo uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.published = max(m.published, upTo)
	return nil
}

func (m *memory) RejectionsAdded() <-chan struct{} { return m.added }

var (
	_ Appender = (*memory)(nil)
	_ Outbox   = (*memory)(nil)
)
