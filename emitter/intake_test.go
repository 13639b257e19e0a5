package emitter

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

func TestN02FailingStoreKeepsOrder(t *testing.T) {
	t.Parallel()
	for name, persisted := range map[string]bool{"fails before": false, "fails but persisted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(c *IntakeConfig) { c.BatchEvents = 1 })
			failures := 3
			fault := func(b *events.Batch) error {
				if b.Events[0].StreamSeq == 3 && failures > 0 {
					failures--
					return errInjected
				}
				return nil
			}
			if persisted {
				r.store.after = fault
			} else {
				r.store.before = fault
			}
			r.start()
			for n := 1; n <= 5; n++ {
				r.publish(stepEvent("c", n))
			}
			r.applied(5)
			r.stop()
			r.inOrder("c", 1, 2, 3, 4, 5)
			if s := r.intake.Stats(); s.AppendErrors != 3 || s.Fetched != 5 || s.Acked != 5 || !s.Failing.IsZero() {
				t.Errorf("stats: %+v", s)
			}
		})
	}
}

func TestN08StoreFailsLongerThanAnyMaxDeliver(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *IntakeConfig) { c.AckWait = 50 * time.Millisecond })
	// A consumer left by somebody else, which would give up after three deliveries.
	_, err := r.js.CreateConsumer(deadline(t), DefaultStream, jetstream.ConsumerConfig{
		Durable: DefaultDurable, AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: 3, AckWait: 50 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	failing := atomic.Bool{}
	failing.Store(true)
	r.store.before = func(*events.Batch) error {
		if failing.Load() {
			return errInjected
		}
		return nil
	}
	r.start()
	r.publish(stepEvent("c", 1), stepEvent("c", 2))
	eventually(t, "six failed appends", func() bool { return r.intake.Stats().AppendErrors >= 6 })
	if s := r.intake.Stats(); s.Failing.IsZero() || s.LastError == "" || s.Applied != 0 || s.Lag == 0 {
		t.Errorf("a failing store does not show: %+v", s)
	}
	failing.Store(false)
	r.applied(2)
	r.publish(stepEvent("c", 3))
	r.applied(3)
	r.stop()
	r.inOrder("c", 1, 2, 3)
	info, err := r.js.Consumer(deadline(t), DefaultStream, DefaultDurable)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.CachedInfo().Config.MaxDeliver; got != -1 {
		t.Errorf("MaxDeliver %d", got)
	}
	if s := r.intake.Stats(); s.Lost != 0 {
		t.Errorf("lost %d", s.Lost)
	}
}

func TestN16SlowStoreAndRedelivery(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *IntakeConfig) { c.AckWait = 50 * time.Millisecond; c.BatchEvents = 16 })
	release := make(chan struct{})
	r.store.before = func(b *events.Batch) error {
		if b.Events[0].StreamSeq == 1 {
			<-release
		}
		return nil
	}
	r.start()
	for n := 1; n <= 10; n++ {
		r.publish(stepEvent("c", n))
	}
	eventually(t, "the broker delivers again what waits for the store", func() bool {
		c, err := r.js.Consumer(deadline(t), DefaultStream, DefaultDurable)
		return err == nil && c.CachedInfo().NumRedelivered > 0
	})
	if got := r.store.highest(); got != 0 {
		t.Fatalf("applied %d while stalled", got)
	}
	close(release)
	for n := 11; n <= 40; n++ {
		r.publish(stepEvent("c", n))
	}
	r.applied(40)
	eventually(t, "everything is acknowledged", func() bool {
		c, err := r.js.Consumer(deadline(t), DefaultStream, DefaultDurable)
		return err == nil && c.CachedInfo().AckFloor.Stream == 40 && c.CachedInfo().NumAckPending == 0
	})
	r.stop()
	r.inOrder("c", upTo(40)...)
	r.store.look(testKey("c"), func(c *memoryChain) {
		if c.state.Duplicates != 0 {
			t.Errorf("redeliveries reached the chain: %d duplicates", c.state.Duplicates)
		}
	})
	if s := r.intake.Stats(); s.Fetched != 40 || s.Sessions != 1 {
		t.Errorf("stats: %+v", s)
	}
}

func TestN20SamePayloadAtThreeSequences(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.publish(stepEvent("c", 1), stepEvent("c", 1), stepEvent("c", 1), stepEvent("c", 2))
	r.start()
	r.applied(4)
	r.stop()
	r.inOrder("c", 1, 2)
	r.store.look(testKey("c"), func(c *memoryChain) {
		if c.state.Duplicates != 2 {
			t.Errorf("%d duplicates", c.state.Duplicates)
		}
	})
	if got := r.intake.Stats().Verdicts[events.Duplicate]; got != 2 {
		t.Errorf("stats count %d duplicates", got)
	}
}

func TestN04DuplicateOutsideTheWindow(t *testing.T) {
	t.Parallel()
	r := newRigOn(t, newBroker(t))
	cfg := StreamConfig{}.withDefaults().stream(DefaultStream, events.SubjectRoot)
	cfg.Duplicates = 100 * time.Millisecond
	if _, err := r.js.CreateStream(deadline(t), cfg); err != nil {
		t.Fatal(err)
	}
	r.start()
	send := func() bool {
		ack, err := r.js.PublishMsg(deadline(t), stepEvent("c", 1), jetstream.WithMsgID("one"))
		if err != nil {
			t.Fatal(err)
		}
		return !ack.Duplicate
	}
	if !send() {
		t.Fatal("the first message is a duplicate")
	}
	eventually(t, "the broker has forgotten the id", send)
	r.applied(2)
	r.stop()
	r.inOrder("c", 1)
	r.store.look(testKey("c"), func(c *memoryChain) {
		if c.state.Duplicates != 1 {
			t.Errorf("%d duplicates", c.state.Duplicates)
		}
	})
}

func TestN06EmptyEventIDsAreRefusedEach(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start()
	subject := testKey("c").Subject(events.VerbStep)
	r.publish(&nats.Msg{Subject: subject, Data: []byte(`{"v":1,"event_id":"","kind":{"a":1}}`)},
		&nats.Msg{Subject: subject, Data: []byte(`{"v":1,"event_id":"","kind":{"a":2}}`)},
		&nats.Msg{Subject: subject, Data: []byte(`{"v":1,"kind":{"a":3}}`)}, &nats.Msg{Subject: subject, Data: []byte(`{"v":1,"kind":{"a":4}}`)}, stepEvent("c", 1))
	r.applied(5)
	r.stop()
	r.inOrder("c", 1)
	if got := r.intake.Stats().Rejected[events.BadID]; got != 4 {
		t.Errorf("%d rejected for their id: %+v", got, r.intake.Stats())
	}
}

func TestN22EventsBeforeWhatTheyBelongTo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	scope := testScope()
	commit := &draft{verb: events.VerbCommit, id: "commit", kind: &segments.CompCommitted{
		PlanCommitIDHex: segments.Sum(nil).String(), CompSemanticSHA256: segments.Sum(nil), StepTopo: []string{"s"}}}
	intent := &draft{verb: events.VerbIntent, id: "intent", kind: &segments.IntentBound{IntentLen: 3}}
	for i, d := range []*draft{commit, intent} {
		_, payload := d.encode(&scope, uint64(i), 1, nil)
		r.publish(&nats.Msg{Subject: testKey("early").Subject(d.verb), Data: payload})
	}
	r.publish(stepEvent("nobody", 1)) // a step for a run nobody opened, before there is a consumer
	r.start()
	r.applied(3)
	r.stop()
	r.inOrder("nobody", 1)
	r.store.look(testKey("early"), func(c *memoryChain) {
		conformity, codes := c.state.Conformity()
		if len(c.segments) != 2 || conformity == events.Conforming {
			t.Errorf("%d segments, %s %v", len(c.segments), conformity, codes)
		}
	})
}

func TestN10LimitsThatDroppedMessages(t *testing.T) {
	t.Parallel()
	r := newRigOn(t, newBroker(t))
	_, err := r.js.CreateStream(deadline(t), jetstream.StreamConfig{
		Name: DefaultStream, Subjects: []string{"evidence.>"}, MaxMsgs: 3, Discard: jetstream.DiscardOld, MaxAge: time.Hour, Storage: jetstream.MemoryStorage,
	})
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 10; n++ {
		r.publish(stepEvent("c", n))
	}
	r.start()
	r.applied(10)
	r.stop()
	r.inOrder("c", 8, 9, 10)
	if want := []string{"1-7 " + LostTrimmed}; !slices.Equal(r.store.lost, want) {
		t.Errorf("lost %v, want %v", r.store.lost, want)
	}
	var weak []events.Weakness
	for _, w := range r.intake.Stats().Warnings {
		weak = append(weak, w.Weakness)
	}
	if want := []events.Weakness{events.WeakMemory, events.WeakDiscard, events.WeakMaxAge, events.WeakMaxMsgs, events.WeakOneReplica, events.WeakWindow, events.WeakOneReplica}; !slices.Equal(weak, want) {
		t.Errorf("warnings %v, want %v", weak, want)
	}
}

func TestN14PurgeIsNoticed(t *testing.T) {
	t.Parallel()
	t.Run("while stopped", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.start()
		for n := 1; n <= 5; n++ {
			r.publish(stepEvent("c", n))
		}
		r.applied(5)
		r.stop()
		for n := 6; n <= 10; n++ {
			r.publish(stepEvent("c", n))
		}
		r.purge()
		r.publish(stepEvent("c", 11))
		r.start()
		r.applied(11)
		r.stop()
		r.inOrder("c", 1, 2, 3, 4, 5, 11)
		r.lostExactly("6-10 " + LostTrimmed)
	})
	t.Run("while running, nothing published after it", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, func(c *IntakeConfig) { c.BatchEvents = 1 })
		release := make(chan struct{})
		r.store.before = func(b *events.Batch) error {
			if b.Events[0].StreamSeq == 3 {
				<-release
			}
			return nil
		}
		r.start()
		for n := 1; n <= 9; n++ {
			r.publish(stepEvent("c", n))
		}
		r.applied(2)
		r.purge()
		close(release)
		r.applied(9) // delivered before the purge, or recorded as lost
		r.stop()
		lost := r.intake.Stats().Lost
		if lost == 0 || len(r.store.lost) == 0 {
			t.Errorf("nothing is recorded as lost: %v", r.store.lost)
		}
		r.inOrder("c", upTo(9-int(lost))...)
	})
	t.Run("single messages", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		for n := 1; n <= 9; n++ {
			r.publish(stepEvent("c", n))
		}
		stream, err := r.js.Stream(deadline(t), DefaultStream)
		if err != nil {
			t.Fatal(err)
		}
		for _, seq := range []uint64{3, 4, 7} {
			if err := stream.DeleteMsg(deadline(t), seq); err != nil {
				t.Fatal(err)
			}
		}
		r.start()
		r.applied(9)
		r.stop()
		r.inOrder("c", 1, 2, 5, 6, 8, 9)
		r.lostExactly("3-4 "+LostDeleted, "7-7 "+LostDeleted)
	})
}
