package emitter

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"pgregory.net/rapid"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

func (r *rig) publisherConfig(chain string) PublisherConfig {
	return PublisherConfig{Conn: r.js.Conn(), Scope: testScope(), Chain: chain,
		ReceiptTimeout: 5 * time.Second, PublishTimeout: 2 * time.Second,
		Now: func() time.Time { return time.UnixMilli(1_780_000_000_000) }}
}

func (r *rig) begin(cfg PublisherConfig) *Publisher {
	r.t.Helper()
	p, err := Begin(deadline(r.t), cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = p.Close() })
	return p
}

const testComp = `{"version":2,"steps":{"a":{"kind":"query"}},"bind":{"topo":["a","b"]},"return":{"kind":"step","step":"b"}}`

const testArtifact = `{"entry_id":"tracker","parsed_preimage":{"op":"get","id":"1"},"display_lines":["x.get()"],"request_fingerprints":["f1"]}`

func must(t testing.TB) func(Sent, error) Sent {
	return func(s Sent, err error) Sent {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// wholeRun publishes one event of every kind.
func wholeRun(t testing.TB, p *Publisher) {
	t.Helper()
	ctx, ok := deadline(t), must(t)
	ok(p.Intent(ctx, Intent{Text: "close the issue", KeepText: true}))
	ok(p.Commit(ctx, Commit{Comp: []byte(testComp), StepTopo: []string{"a", "b"}}))
	ok(p.Attempt(ctx, Attempt{StepID: "a"}))
	ok(p.Step(ctx, Step{StepID: "a", RequestFingerprints: []string{"f1"}, SourceLine: "x.get()", Parsed: []byte(`{"expr":{"op":"get"},"projection":null}`), KeepParsed: true}))
	ok(p.Attempt(ctx, Attempt{StepID: "b", StepIndex: 1}))
	ok(p.Attempt(ctx, Attempt{StepID: "b", StepIndex: 1, Failed: true, Reason: "timeout"}))
	ok(p.Step(ctx, Step{StepID: "b", StepIndex: 1, RequestFingerprints: []string{}, SourceLine: "y", Parsed: []byte(`1`)}))
	ok(p.Seal(ctx, Seal{Artifact: []byte(testArtifact), StepID: new("b"), ResourceIndex: new(uint64(0)), Anchors: &segments.Anchors{PlanCommitRef: new("pc1")}}))
}

func TestPublisherWholeRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start()
	cfg := r.publisherConfig("run")
	cfg.SigningKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	p := r.begin(cfg)
	wholeRun(t, p)
	c, err := p.Wait(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	head, known := p.Head()
	if c.Event.Verdict != events.Finished || c.Receipt.Outcome != events.Succeeded || !known || c.Receipt.Head != head.String() {
		t.Errorf("confirmation %+v, receipt %+v, head %v", c.Event, c.Receipt, head)
	}
	if _, err := p.Step(deadline(t), Step{StepID: "c", Parsed: []byte("1")}); !errors.Is(err, ErrEnded) {
		t.Errorf("after the end: %v", err)
	}
	r.stop()
	r.store.look(testKey("run"), func(c *memoryChain) {
		conformity, codes := c.state.Conformity()
		coverage, why := c.state.Coverage()
		if conformity != events.Conforming || coverage != events.Complete || c.state.ProducerHead != events.HeadAgrees || c.state.ProducerSignature != events.SignatureValid {
			t.Errorf("%s %v, %s %v, head %s, signature %s", conformity, codes, coverage, why, c.state.ProducerHead, c.state.ProducerSignature)
		}
		if len(c.segments) != 5 || *c.state.Head != *head || c.state.Steps[1].Failed != 1 {
			t.Errorf("state %+v", c.state)
		}
	})
}

// Whatever a runtime publishes, the daemon's chain is the producer's, complete.
func TestPublisherRoundTripProperty(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start()
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		chain := fmt.Sprintf("p%d", runs)
		p, err := Begin(deadline(t), r.publisherConfig(chain))
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { _ = p.Close() }()
		acts(rt, t, p)
		c, err := p.Wait(deadline(t))
		if err != nil {
			rt.Fatal(err)
		}
		head, _ := p.Head()
		r.store.look(testKey(chain), func(got *memoryChain) {
			coverage, why := got.state.Coverage()
			switch {
			case hexOf(got.state.Head) != hexOf(head):
				rt.Errorf("head %s, the producer has %s", hexOf(got.state.Head), hexOf(head))
			case coverage != events.Complete:
				rt.Errorf("coverage %s %v", coverage, why)
			case got.state.Outcome != c.Receipt.Outcome:
				rt.Errorf("outcome %s, receipted %s", got.state.Outcome, c.Receipt.Outcome)
			}
		})
	})
}

func acts(rt *rapid.T, t *testing.T, p *Publisher) {
	ctx, ok := deadline(t), must(t)
	text := rapid.StringOf(rapid.RuneFrom([]rune("ab\"\\\n\u0001é😀\u2028")))
	for range rapid.IntRange(0, 4).Draw(rt, "events") {
		switch rapid.IntRange(0, 3).Draw(rt, "act") {
		case 0:
			ok(p.Intent(ctx, Intent{Text: text.Draw(rt, "intent"), KeepText: rapid.Bool().Draw(rt, "keep")}))
		case 1:
			ok(p.Attempt(ctx, Attempt{StepID: text.Draw(rt, "step"), Failed: true, Reason: text.Draw(rt, "reason")}))
		case 2:
			ok(p.Step(ctx, Step{StepID: text.Draw(rt, "step"), SourceLine: text.Draw(rt, "line"), Parsed: []byte("1e2"), RequestFingerprints: rapid.SliceOf(text).Draw(rt, "fingerprints")}))
		default:
			ok(p.Seal(ctx, Seal{More: true, RunDigest: new(segments.Sum([]byte(text.Draw(rt, "run"))))}))
		}
	}
	outcome := rapid.SampledFrom([]events.Outcome{"", events.Failed, events.Cancelled, events.Abandoned}).Draw(rt, "outcome")
	ok(p.Seal(ctx, Seal{Outcome: outcome, Reason: text.Draw(rt, "reason")}))
}

// gate stalls the store while it is shut.
type gate struct {
	mu      sync.Mutex
	opened  chan struct{} // closed by open; nil: not shut
	entered chan struct{} // closed when an Append waits
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opened, g.entered = make(chan struct{}), make(chan struct{})
}

func (g *gate) pass(*events.Batch) error {
	g.mu.Lock()
	opened, entered := g.opened, g.entered
	g.entered = nil
	g.mu.Unlock()
	if entered != nil {
		close(entered)
	}
	if opened != nil {
		<-opened
	}
	return nil
}

func TestWaitReturnsOnlyAfterTheCommit(t *testing.T) {
	t.Parallel()
	// Each publishes what Wait waits for, behind an event "one" that is durable.
	for name, last := range map[string]func(*rig, *Publisher) *Publisher{
		"new event": func(r *rig, p *Publisher) *Publisher {
			must(t)(p.Attempt(deadline(t), Attempt{StepID: "s"}))
			return p
		},
		"rejection": func(r *rig, p *Publisher) *Publisher {
			must(t)(p.Intent(deadline(t), Intent{EventID: "one", Text: "something else"}))
			return p
		},
		"duplicate": func(r *rig, p *Publisher) *Publisher {
			again, err := Resume(deadline(t), r.publisherConfig("c")) // its Wait sends "one" again
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = again.Close() })
			return again
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, g := newRig(t), &gate{}
			r.store.before = g.pass
			r.start()
			p := r.begin(r.publisherConfig("c"))
			must(t)(p.Intent(deadline(t), Intent{EventID: "one", Text: "x"}))
			if _, err := p.Wait(deadline(t)); err != nil {
				t.Fatal(err)
			}
			g.shut()
			opened, entered := g.opened, g.entered
			p = last(r, p)
			released := atomic.Bool{}
			answered := make(chan bool, 1)
			go func() {
				_, err := p.Wait(deadline(t))
				answered <- released.Load() && (err == nil || errors.Is(err, ErrRejected))
			}()
			<-entered                                   // the event is with the store, which is stalled
			if err := r.js.Conn().Flush(); err != nil { // whatever was sent before is here
				t.Fatal(err)
			}
			select {
			case <-answered:
				t.Fatal("Wait returned while the store is stalled")
			default:
			}
			released.Store(true)
			close(opened)
			if !<-answered {
				t.Fatal("Wait returned before the commit, or with an error")
			}
		})
	}
}

func TestWaitForDuplicatesAndRejections(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start()
	p := r.begin(r.publisherConfig("c"))
	must(t)(p.Intent(deadline(t), Intent{EventID: "one", Text: "x"}))
	must(t)(p.Intent(deadline(t), Intent{EventID: "one", Text: "something else"}))
	must(t)(p.Attempt(deadline(t), Attempt{StepID: "s"}))
	var rejected *RejectedError
	if _, err := p.Wait(deadline(t)); !errors.As(err, &rejected) || rejected.Class != events.Conflict || rejected.Existing == nil || !errors.Is(err, ErrRejected) {
		t.Fatalf("Wait: %v", err)
	}
	c, err := p.Wait(deadline(t)) // and it goes on, with the head that the chain really has
	if err != nil || c.Event.Verdict != events.Attempted {
		t.Fatalf("Wait again: %+v, %v", c, err)
	}
	again, err := Resume(deadline(t), r.publisherConfig("c"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	c, err = again.Wait(deadline(t)) // its receipt was sent before it listened
	if err != nil || c.Event.Verdict != events.Duplicate {
		t.Fatalf("Wait for a duplicate: %+v, %v", c, err)
	}
}

func TestLostReceiptIsAskedForAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cfg := r.publisherConfig("c")
	cfg.ReceiptTimeout = 30 * time.Millisecond
	r.cfg.NoReceipts = true
	r.start()
	p := r.begin(cfg)
	must(t)(p.Intent(deadline(t), Intent{Text: "x"}))
	r.applied(1)
	r.stop()
	r.cfg.NoReceipts = false
	r.start()
	c, err := p.Wait(deadline(t))
	if err != nil || c.Event.Verdict != events.Duplicate {
		t.Fatalf("Wait: %+v, %v", c, err)
	}
	must(t)(p.Seal(deadline(t), Seal{Outcome: events.Cancelled}))
	if _, err := p.Wait(deadline(t)); err != nil {
		t.Fatal(err)
	}
	r.store.look(testKey("c"), func(c *memoryChain) {
		if coverage, why := c.state.Coverage(); coverage != events.Complete {
			t.Errorf("coverage %s %v", coverage, why)
		}
	})
}

func TestResumeGoesOnWhereTheRuntimeDied(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start()
	ctx, ok := deadline(t), must(t)
	first := r.begin(r.publisherConfig("c"))
	ok(first.Intent(ctx, Intent{Text: "x"}))
	ok(first.Attempt(ctx, Attempt{StepID: "a"}))
	ok(first.Step(ctx, Step{StepID: "a", Parsed: []byte("1")}))
	before, _ := first.Head()

	second, err := Resume(ctx, r.publisherConfig("c"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = second.Close() }()
	if head, known := second.Head(); !known || *head != *before {
		t.Fatalf("head %v after resume, want %v", head, before)
	}
	if s := ok(second.Step(ctx, Step{StepID: "b", Parsed: []byte("2")})); s.ProducerSeq != 3 {
		t.Errorf("producer_seq %d", s.ProducerSeq)
	}
	// The first writer is alive after all: the broker refuses its event.
	if _, err := first.Step(ctx, Step{StepID: "c", Parsed: []byte("3")}); !errors.Is(err, ErrOtherWriter) {
		t.Errorf("two writers: %v", err)
	}
	if _, err := first.Wait(ctx); !errors.Is(err, ErrOtherWriter) {
		t.Errorf("two writers: %v", err)
	}
	ok(second.Seal(ctx, Seal{}))
	if _, err := second.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	r.store.look(testKey("c"), func(c *memoryChain) {
		if coverage, why := c.state.Coverage(); coverage != events.Complete || c.state.ProducerHead != events.HeadAgrees {
			t.Errorf("coverage %s %v, head %s", coverage, why, c.state.ProducerHead)
		}
	})
	third, err := Resume(ctx, r.publisherConfig("c"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = third.Close() }()
	if _, err := third.Intent(ctx, Intent{}); !errors.Is(err, ErrEnded) {
		t.Errorf("resumed after the end: %v", err)
	}
	if c, err := third.Wait(ctx); err != nil || c.Receipt.LastEventID != third.last.id {
		t.Errorf("Wait after the end: %+v, %v", c, err)
	}
}

func TestResumeOfATrimmedChain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start()
	ctx, ok := deadline(t), must(t)
	p := r.begin(r.publisherConfig("c"))
	ok(p.Intent(ctx, Intent{Text: "x"}))
	ok(p.Attempt(ctx, Attempt{StepID: "a"}))
	r.applied(2)
	stream, err := r.js.Stream(ctx, DefaultStream)
	if err == nil {
		err = stream.Purge(ctx, jetstream.WithPurgeSequence(2))
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err = Resume(ctx, r.publisherConfig("c"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	if _, known := p.Head(); known {
		t.Error("the head of a trimmed chain is known")
	}
	if s := ok(p.Seal(ctx, Seal{Outcome: events.Failed})); s.ProducerSeq != 2 {
		t.Errorf("producer_seq %d", s.ProducerSeq)
	}
	if _, err := p.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	r.store.look(testKey("c"), func(c *memoryChain) {
		if coverage, why := c.state.Coverage(); coverage != events.Complete {
			t.Errorf("coverage %s %v", coverage, why)
		}
	})
}

func TestTrimmedUnderThePublisher(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.begin(r.publisherConfig("c"))
	must(t)(p.Intent(deadline(t), Intent{Text: "a"}))
	r.purge()
	must(t)(p.Attempt(deadline(t), Attempt{StepID: "s"}))
}

// A call whose context is over leaves its event in line or never takes it; the chain has no hole.
func TestCancelledCallsLeaveNoHole(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start()
	p := r.begin(r.publisherConfig("c"))
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for range 5 {
		if _, err := p.Attempt(over, Attempt{StepID: "cancelled"}); err == nil {
			t.Fatal("no error from a cancelled call")
		}
		must(t)(p.Attempt(deadline(t), Attempt{StepID: "s"}))
	}
	must(t)(p.Seal(deadline(t), Seal{}))
	if _, err := p.Wait(deadline(t)); err != nil {
		t.Fatal(err)
	}
	r.store.look(testKey("c"), func(c *memoryChain) {
		if coverage, why := c.state.Coverage(); coverage != events.Complete {
			t.Errorf("coverage %s %v", coverage, why)
		}
	})
}

func TestRepeatedAttemptWhoseAnswerGotLost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start()
	ctx := deadline(t)
	p := r.begin(r.publisherConfig("c"))
	must(t)(p.Intent(ctx, Intent{Text: "x"}))
	// What happens when an answer gets lost: the broker has the event, the publisher does not know.
	o, err := p.prepare(&draft{verb: events.VerbStep, phase: events.PhaseBegin, stepID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	p.line = o
	r.publish(&nats.Msg{Subject: o.subject, Data: o.payload})
	s := must(t)(p.Seal(ctx, Seal{}))
	if s.ProducerSeq != 2 || s.StreamSeq != 3 {
		t.Errorf("sent %+v", s)
	}
	r.applied(3)
	r.stop()
	r.store.look(testKey("c"), func(c *memoryChain) {
		if coverage, why := c.state.Coverage(); coverage != events.Complete || c.state.Duplicates != 0 {
			t.Errorf("coverage %s %v, %d duplicates", coverage, why, c.state.Duplicates)
		}
	})
}

func TestRejectedSealLeavesTheChainOpen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start()
	p := r.begin(r.publisherConfig("c"))
	must(t)(p.Intent(deadline(t), Intent{EventID: "one", Text: "x"}))
	must(t)(p.Seal(deadline(t), Seal{EventID: "one"}))
	if _, err := p.Wait(deadline(t)); !errors.Is(err, ErrRejected) {
		t.Fatalf("Wait: %v", err)
	}
	must(t)(p.Seal(deadline(t), Seal{Outcome: events.Failed}))
	c, err := p.Wait(deadline(t))
	if err != nil || c.Event.Verdict != events.Finished {
		t.Fatalf("Wait: %+v, %v", c, err)
	}
}

func TestUnseenRejectionShowsInTheHead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.cfg.NoReceipts = true
	r.start()
	p := r.begin(r.publisherConfig("c"))
	must(t)(p.Intent(deadline(t), Intent{EventID: "one", Text: "x"}))
	must(t)(p.Intent(deadline(t), Intent{EventID: "one", Text: "y"}))
	r.applied(2)
	r.stop()
	r.cfg.NoReceipts = false
	r.start()
	must(t)(p.Attempt(deadline(t), Attempt{StepID: "s"}))
	var differs *HeadError
	if _, err := p.Wait(deadline(t)); !errors.As(err, &differs) || differs.Want == differs.Got {
		t.Fatalf("Wait: %v", err)
	}
	again, err := Resume(deadline(t), r.publisherConfig("c")) // what the error is for
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	must(t)(again.Seal(deadline(t), Seal{}))
	if _, err := again.Wait(deadline(t)); err != nil {
		t.Fatal(err)
	}
}
