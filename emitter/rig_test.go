package emitter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

func testScope() segments.Scope {
	return segments.Scope{
		SchemaVersion: 1, TenantID: "acme", PromptHash: strings.Repeat("ab", 32), ExecuteSessionID: strings.Repeat("0c", 16),
		CatalogCGSHash: strings.Repeat("ef", 32), DomainRevision: 3, EntryID: "tracker",
	}
}

func testKey(chain string) events.Key {
	s := testScope()
	return events.Key{Tenant: s.TenantID, PromptHash: s.PromptHash, Session: s.ExecuteSessionID, Chain: chain}
}

// stepEvent is a step with an id of its own.
func stepEvent(chain string, n int) *nats.Msg {
	scope := testScope()
	d := &draft{verb: events.VerbStep, id: fmt.Sprintf("e%d", n), kind: &segments.StepExecuted{
		StepID: "s", StepIndex: uint32(n), RequestFingerprints: []string{"a"}, SourceLine: "x.list()",
		ParsedExprDigest: segments.Sum([]byte{byte(n)}),
	}}
	_, payload := d.encode(&scope, uint64(n), uint64(1_780_000_000_000+n), nil)
	return &nats.Msg{Subject: testKey(chain).Subject(events.VerbStep), Data: payload}
}

// rig is a broker with streams, a store and an intake.
type rig struct {
	t      testing.TB
	broker *broker
	js     jetstream.JetStream
	store  *memory
	cfg    IntakeConfig
	intake *Intake
	stop   func()
	ending <-chan struct{} // closed when the intake is told to stop
}

func newRig(t testing.TB, change ...func(*IntakeConfig)) *rig {
	t.Helper()
	r := newRigOn(t, newBroker(t), change...)
	if _, err := EnsureStreams(deadline(t), r.js, r.cfg.Streams); err != nil {
		t.Fatal(err)
	}
	return r
}

func newRigOn(t testing.TB, b *broker, change ...func(*IntakeConfig)) *rig {
	t.Helper()
	r := &rig{t: t, broker: b, js: b.js(), store: newMemory()}
	r.cfg = IntakeConfig{JS: r.js, Appender: r.store, Ledger: r.store.ledger(), CheckInterval: 100 * time.Millisecond}
	for _, f := range change {
		f(&r.cfg)
	}
	return r
}

// start runs the intake until the test ends or r.stop is called.
func (r *rig) start() {
	r.t.Helper()
	in, err := NewIntake(r.cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	r.run(in)
}

// run is start with an intake that is there, which may have run before and remembers it.
func (r *rig) run(in *Intake) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- in.Run(ctx) }()
	stopped := false
	r.intake, r.ending = in, ctx.Done()
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			if err != nil {
				r.t.Errorf("Run: %v", err)
			}
		case <-time.After(20 * time.Second):
			r.t.Error("the intake does not stop")
		}
	}
	r.t.Cleanup(r.stop)
}

func (r *rig) publish(msgs ...*nats.Msg) {
	r.t.Helper()
	for _, m := range msgs {
		if _, err := r.js.PublishMsg(deadline(r.t), m); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) applied(seq uint64) {
	r.t.Helper()
	eventually(r.t, fmt.Sprintf("sequence %d is applied", seq), func() bool { return r.store.highest() >= seq })
}

// inOrder asserts that the chain holds exactly these events, in this order.
func (r *rig) inOrder(chain string, want ...int) {
	r.t.Helper()
	ids := make([]string, len(want))
	for i, n := range want {
		ids[i] = fmt.Sprintf("e%d", n)
	}
	r.store.look(testKey(chain), func(c *memoryChain) {
		if !slices.Equal(c.ids, ids) {
			r.t.Errorf("chain %s holds %v, want %v", chain, c.ids, ids)
		}
		if err := walk(c.segments); err != nil {
			r.t.Errorf("chain %s: %v", chain, err)
		}
	})
	if len(r.store.disorder) > 0 {
		r.t.Errorf("out of stream order: %v", r.store.disorder)
	}
}

func walk(chain []segments.Segment) error {
	var w segments.Walk
	for i := range chain {
		if err := w.Step(&chain[i]); err != nil {
			return err
		}
	}
	return nil
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i + 1
	}
	return all
}

var errInjected = errors.New("injected")

func (r *rig) purge() {
	r.t.Helper()
	stream, err := r.js.Stream(deadline(r.t), DefaultStream)
	if err == nil {
		err = stream.Purge(deadline(r.t))
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) lostExactly(want ...string) {
	r.t.Helper()
	if !slices.Equal(r.store.lost, want) {
		r.t.Errorf("lost %v, want %v", r.store.lost, want)
	}
}
