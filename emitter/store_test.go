package emitter

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/store"
)

// flaky is the real store with faults: every third Append fails before the
// store sees it, every fifth after the store has made it durable.
type flaky struct {
	*store.Store
	calls atomic.Uint64
}

func (f *flaky) Append(ctx context.Context, b *events.Batch) ([]events.Effect, error) {
	n := f.calls.Add(1)
	if n%3 == 0 {
		return nil, errInjected
	}
	effects, err := f.Store.Append(ctx, b)
	if n%5 == 0 {
		return nil, errInjected
	}
	return effects, err
}

func storeLedger(s *store.Store) Ledger {
	return Ledger{
		Watermark: func(stream events.Stream) (uint64, error) {
			w, err := s.Watermark(stream)
			return w.Applied, err
		},
		RecordLost: s.RecordLost,
		BeginEpoch: func(ctx context.Context, stream events.Stream, base uint64, why string) error {
			_, err := s.BeginEpoch(ctx, stream, base, why)
			return err
		},
		RecordSettings: s.RecordSettings,
		AppliedAt: func(stream events.Stream, seq uint64) (Applied, bool, error) {
			had, known, err := s.AppliedAt(stream, seq)
			return Applied(had), known, err
		},
	}
}

type vectorLine struct {
	Subject string            `json:"subject"`
	Headers map[string]string `json:"headers"`
	Payload string            `json:"payload"`
}

type vectorChain struct {
	Tenant     string  `json:"tenant"`
	PromptHash string  `json:"prompt_hash"`
	Session    string  `json:"session"`
	Chain      string  `json:"chain"`
	Outcome    string  `json:"outcome"`
	Conformity string  `json:"conformity"`
	Segments   uint64  `json:"segments"`
	Head       *string `json:"head"`
	Duplicates uint64  `json:"duplicates"`
	Coverage   string  `json:"coverage"`
	Rejected   []any   `json:"rejected"`
	Late       []any   `json:"late"`
}

func readVectors(t *testing.T, name string) (lines []vectorLine, limit int, chains []vectorChain) {
	t.Helper()
	dir := filepath.Join("..", "testdata", "events")
	text, err := os.ReadFile(filepath.Join(dir, name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var l vectorLine
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	var expected struct {
		MaxEventBytes int           `json:"max_event_bytes"`
		Chains        []vectorChain `json:"chains"`
	}
	text, err = os.ReadFile(filepath.Join(dir, name+".expected.json"))
	if err == nil {
		err = json.Unmarshal(text, &expected)
	}
	if err != nil || len(lines) == 0 || len(expected.Chains) == 0 {
		t.Fatalf("vectors %s: %v", name, err)
	}
	return lines, expected.MaxEventBytes, expected.Chains
}

// The vectors go through a real broker into the real store, which fails now
// and then, while the consumer is deleted and the connection lost.
func TestVectorsThroughTroubleIntoTheStore(t *testing.T) {
	t.Parallel()
	lines, limit, chains := readVectors(t, "small")
	s, err := store.Open(store.Config{Dir: filepath.Join(t.TempDir(), "store")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	r := newRig(t, func(c *IntakeConfig) {
		c.Appender, c.Ledger = &flaky{Store: s}, storeLedger(s)
		c.Limits = events.Limits{MaxBytes: limit}
		c.BatchEvents, c.AckWait = 7, 100*time.Millisecond
	})
	r.drain(s)
	r.start()
	eventually(t, "the first session", func() bool { return r.intake.Stats().Sessions > 0 })
	for i, l := range lines {
		m := &nats.Msg{Subject: l.Subject, Data: []byte(l.Payload), Header: nats.Header{}}
		for name, value := range l.Headers {
			m.Header.Set(name, value)
		}
		r.publish(m)
		switch i % 100 {
		case 40:
			_ = r.js.DeleteConsumer(deadline(t), DefaultStream, DefaultDurable)
		case 80:
			if err := r.js.Conn().ForceReconnect(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "connected again", r.js.Conn().IsConnected)
		}
	}
	eventually(t, "everything is applied", func() bool { return r.intake.Stats().Applied == uint64(len(lines)) })
	r.stop()
	if stats := r.intake.Stats(); stats.AppendErrors == 0 || stats.Sessions < 2 || stats.Lost != 0 {
		t.Errorf("too little trouble, or too much: %+v", stats)
	}
	for _, want := range chains {
		checkVectorChain(t, s, want)
	}
	eventually(t, "all rejections are published", func() bool {
		pending, err := s.PendingRejections(1)
		return err == nil && len(pending) == 0
	})
}

func checkVectorChain(t *testing.T, s *store.Store, want vectorChain) {
	t.Helper()
	key := events.Key{Tenant: want.Tenant, PromptHash: want.PromptHash, Session: want.Session, Chain: want.Chain}
	if key.Tenant == "_" {
		key.Tenant = ""
	}
	record, err := s.Chain(key)
	if err != nil {
		t.Errorf("chain %+v: %v", key, err)
		return
	}
	got := record.State
	conformity, _ := got.Conformity()
	coverage, _ := got.Coverage()
	head := ""
	if want.Head != nil {
		head = *want.Head
	}
	if hexOf(got.Head) != head || got.Segments != want.Segments || string(got.Outcome) != want.Outcome ||
		string(conformity) != want.Conformity || string(coverage) != want.Coverage {
		t.Errorf("chain %s: head %s, %d segments, %s, %s, %s; want %+v", want.Chain, hexOf(got.Head), got.Segments, got.Outcome, conformity, coverage, want)
	}
	if got.Duplicates != want.Duplicates || got.Late != uint64(len(want.Late)) || got.Rejected != uint64(len(want.Rejected)) {
		t.Errorf("chain %s: %d duplicates, %d late, %d rejected; want %d, %d, %d", want.Chain,
			got.Duplicates, got.Late, got.Rejected, want.Duplicates, len(want.Late), len(want.Rejected))
	}
}
