package emitter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/events"
)

func TestConsumerDeletedUnderUs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start()
	for n := 1; n <= 60; n++ {
		r.publish(stepEvent("c", n))
		if n%20 == 0 {
			err := r.js.DeleteConsumer(deadline(t), DefaultStream, DefaultDurable)
			if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
				t.Fatal(err)
			}
		}
	}
	r.applied(60)
	r.stop()
	r.inOrder("c", upTo(60)...)
	r.lostExactly()
}

func TestConnectionLostAndBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start()
	r.publish(stepEvent("c", 1))
	r.applied(1)
	before := r.intake.Stats().Sessions
	if err := r.js.Conn().ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another session", func() bool { return r.intake.Stats().Sessions > before })
	r.publish(stepEvent("c", 2))
	r.applied(2)
	r.stop()
	r.inOrder("c", 1, 2)
}

func TestBrokerRestart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start()
	publisher := r.broker.js()
	for n := 1; n <= 30; n++ {
		if n%10 == 0 {
			r.broker.stop()
			eventually(t, "the loss of the connection shows", func() bool { return !r.intake.Stats().Connected })
			r.broker.start()
		}
		eventually(t, fmt.Sprintf("message %d is stored", n), func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
			defer cancel()
			_, err := publisher.PublishMsg(ctx, stepEvent("c", n))
			return err == nil // else it may be stored all the same: then it is a duplicate
		})
	}
	eventually(t, "all events are in the chain", func() bool {
		n := 0
		r.store.look(testKey("c"), func(c *memoryChain) { n = len(c.ids) })
		return n == 30
	})
	r.stop()
	r.inOrder("c", upTo(30)...)
	r.lostExactly()
	if len(r.store.epochs) > 0 {
		t.Errorf("epochs %v", r.store.epochs)
	}
}

func TestRestartContinuesBehindTheWatermark(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *IntakeConfig) { c.BatchEvents = 1; c.StopTimeout = time.Millisecond })
	for n := 1; n <= 20; n++ {
		r.publish(stepEvent("c", n))
	}
	for _, upTo := range []uint64{5, 11, 20} {
		r.start()
		r.applied(upTo)
		r.stop()
	}
	r.inOrder("c", upTo(20)...)
	r.lostExactly()
}

// Case C22: a stop waits for the append that runs, acknowledges what that made
// durable and no more; the rest comes again.
func TestC22StopFinishesTheRunningAppend(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *IntakeConfig) { c.BatchEvents = 50 })
	entered, release := make(chan struct{}), make(chan struct{})
	var again atomic.Bool
	r.store.before = func(b *events.Batch) error {
		if b.Events[0].StreamSeq == 1 {
			close(entered)
			<-release
		}
		if !again.Load() && b.Events[len(b.Events)-1].StreamSeq == 200 {
			return errInjected // so that something is left, however late the stop is heard of
		}
		return nil
	}
	for n := 1; n <= 200; n++ {
		r.publish(stepEvent("c", n))
	}
	r.start()
	<-entered
	stopped := make(chan struct{})
	go func() { r.stop(); close(stopped) }()
	<-r.ending
	select {
	case <-stopped:
		t.Fatal("stopped while an append was running")
	default:
	}
	close(release)
	<-stopped
	durable := r.store.highest()
	if durable == 0 || durable == 200 {
		t.Fatalf("%d of 200 durable at the stop", durable)
	}
	floor := func() uint64 {
		c, err := r.js.Consumer(deadline(t), DefaultStream, DefaultDurable)
		if err != nil {
			t.Fatal(err)
		}
		return c.CachedInfo().AckFloor.Stream
	}
	eventually(t, "what is durable is acknowledged", func() bool { return floor() >= durable })
	if got := floor(); got != durable {
		t.Errorf("acknowledged up to %d, durable up to %d", got, durable)
	}
	again.Store(true)
	r.start()
	r.applied(200)
	r.stop()
	r.inOrder("c", upTo(200)...)
}

// Case C22: a stop does not wait for ever for an append that does not end. What
// was in flight is not acknowledged, and comes again.
func TestC22StopHasADeadline(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *IntakeConfig) { c.StopTimeout = 10 * time.Millisecond })
	entered := make(chan struct{})
	stuck := &stuckStore{Appender: r.store, entered: entered}
	r.cfg.Appender = stuck
	for n := 1; n <= 200; n++ {
		r.publish(stepEvent("c", n))
	}
	r.start()
	<-entered
	r.stop() // fails when the intake does not end
	if got := r.store.highest(); got != 0 {
		t.Fatalf("%d is durable", got)
	}
	c, err := r.js.Consumer(deadline(t), DefaultStream, DefaultDurable)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.CachedInfo().AckFloor.Stream; got != 0 {
		t.Errorf("acknowledged up to %d, and nothing is durable", got)
	}
	r.cfg.Appender = r.store
	r.start()
	r.applied(200)
	r.stop()
	r.inOrder("c", upTo(200)...)
	r.lostExactly()
}

// stuckStore takes no batch, and says so when it is asked to give up.
type stuckStore struct {
	Appender
	entered chan struct{}
	once    sync.Once
}

func (s *stuckStore) Append(ctx context.Context, _ *events.Batch) ([]events.Effect, error) {
	s.once.Do(func() { close(s.entered) })
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// An empty message with a status header looks to the client library like a
// word from the broker: it must neither stop the intake nor be skipped.
func TestMessagesThatLookLikeStatus(t *testing.T) {
	t.Parallel()
	for _, h := range []nats.Header{
		{"Status": {"409"}, "Description": {"Consumer Deleted"}},
		{"Status": {"100"}},
		{"Status": {"408"}, "Description": {"Request Timeout"}},
		{"Status": {"400"}, "Description": {"Bad Request"}},
		{"Status": {"503"}},
	} {
		t.Run(h.Get("Status"), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(c *IntakeConfig) { c.CheckInterval = 30 * time.Millisecond })
			poison := func() *nats.Msg {
				return &nats.Msg{Subject: testKey("c").Subject(events.VerbStep), Header: h}
			}
			r.publish(poison(), stepEvent("c", 1))
			r.start()
			r.applied(2)
			r.publish(poison(), poison(), stepEvent("c", 2), poison())
			r.applied(6)
			r.stop()
			r.inOrder("c", 1, 2)
			r.lostExactly()
			if got := r.intake.Stats().Rejected[events.Malformed]; got != 4 {
				t.Errorf("%d rejected, want 4: %+v", got, r.intake.Stats())
			}
		})
	}
}

func TestN12BrokerLosesItsLastMessages(t *testing.T) {
	t.Parallel()
	for name, withSums := range map[string]bool{"ledger knows the digests": true, "ledger does not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBroker(t)
			r := newRigOn(t, b, func(c *IntakeConfig) {
				if !withSums {
					c.Ledger.AppliedAt = nil
				}
			})
			r.start()
			for n := 1; n <= 7; n++ {
				r.publish(stepEvent("c", n))
			}
			r.applied(7)
			b.stop()
			copied := filepath.Join(t.TempDir(), "js")
			if err := os.CopyFS(copied, os.DirFS(b.opts.StoreDir)); err != nil {
				t.Fatal(err)
			}
			b.start()
			for n := 8; n <= 10; n++ {
				eventually(t, "published", func() bool { _, err := r.js.PublishMsg(deadline(t), stepEvent("c", n)); return err == nil })
			}
			r.applied(10)
			r.stop()
			b.stop()
			b.opts.StoreDir = copied
			b.start()
			for n := 11; n <= 14; n++ { // new events under sequences 8 to 11, one more than were lost
				eventually(t, "published", func() bool { _, err := r.js.PublishMsg(deadline(t), stepEvent("c", n)); return err == nil })
			}
			if withSums {
				r.start()
			} else { // then only a stream that is behind shows, or what this process remembers
				r.run(r.intake)
			}
			eventually(t, "all events are in the chain", func() bool {
				n := 0
				r.store.look(testKey("c"), func(c *memoryChain) { n = len(c.ids) })
				return n == 14
			})
			r.stop()
			r.store.look(testKey("c"), func(c *memoryChain) {
				if want := []string{"e11", "e12", "e13", "e14"}; !slices.Equal(c.ids[10:], want) {
					t.Errorf("chain ends in %v", c.ids[10:])
				}
			})
			want := "7 " + EpochDiffers
			if !withSums {
				want = "0 " + EpochDiffers
			}
			if !slices.Equal(r.store.epochs, []string{want}) {
				t.Errorf("epochs %v, want %q", r.store.epochs, want)
			}
		})
	}
}

func TestStreamBehindTheWatermark(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	stream, err := r.js.Stream(deadline(t), DefaultStream)
	if err != nil {
		t.Fatal(err)
	}
	r.store.applied[identity(stream.CachedInfo())] = 50
	r.publish(stepEvent("c", 1), stepEvent("c", 2))
	r.start()
	eventually(t, "the events are in the chain", func() bool {
		n := 0
		r.store.look(testKey("c"), func(c *memoryChain) { n = len(c.ids) })
		return n == 2
	})
	r.stop()
	r.inOrder("c", 1, 2)
	if want := []string{"0 " + EpochBehind}; !slices.Equal(r.store.epochs, want) {
		t.Errorf("epochs %v", r.store.epochs)
	}
}

func TestStreamRecreatedUnderUs(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *IntakeConfig) { c.CheckInterval = 30 * time.Millisecond })
	r.start()
	r.publish(stepEvent("c", 1), stepEvent("c", 2))
	r.applied(2)
	if err := r.js.DeleteStream(deadline(t), DefaultStream); err != nil {
		t.Fatal(err)
	}
	for n := 3; n <= 5; n++ {
		eventually(t, "the stream is there again", func() bool { _, err := r.js.PublishMsg(deadline(t), stepEvent("c", n)); return err == nil })
	}
	eventually(t, "all events are in the chain", func() bool {
		n := 0
		r.store.look(testKey("c"), func(c *memoryChain) { n = len(c.ids) })
		return n == 5
	})
	r.stop()
	r.inOrder("c", upTo(5)...)
	if len(r.store.applied) != 2 {
		t.Errorf("%d stream identities", len(r.store.applied))
	}
}

func TestFatalErrorOfTheAppenderEndsRun(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *IntakeConfig) { c.Fatal = func(err error) bool { return errors.Is(err, errInjected) } })
	r.store.before = func(*events.Batch) error { return errInjected }
	r.publish(stepEvent("c", 1))
	in, err := NewIntake(r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Run(deadline(t)); !errors.Is(err, errInjected) {
		t.Errorf("Run: %v", err)
	}
}

// A pull request ends early when it has brought its bytes; then more are asked for.
func TestLargeMessages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	body := bytes.Repeat([]byte(" "), 300<<10)
	for n := 1; n <= 40; n++ {
		m := stepEvent("c", n)
		m.Data = append(m.Data, body...) // white space behind the event is none of our business
		r.publish(m)
	}
	r.start()
	r.applied(40)
	r.stop()
	r.inOrder("c", upTo(40)...)
	for _, n := range r.store.batches {
		if n*len(body) > DefaultBatchBytes+len(body) {
			t.Errorf("a batch of %d events", n)
		}
	}
}

func TestDeniedPublishIsLogged(t *testing.T) {
	t.Parallel()
	b := newBroker(t, func(o *server.Options) {
		o.Users = []*server.User{{Username: "u", Password: "p", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"evidence.>"}}}}}
	})
	lines := make(chan string, 16)
	opts, err := ConnConfig{Logger: slog.New(slog.NewTextHandler(lineWriter(lines), nil))}.Options()
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(b.srv.ClientURL(), append(opts, nats.UserInfo("u", "p"))...)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.Publish("evidence.secret", []byte("payload")); err != nil {
		t.Fatal(err)
	}
	select {
	case line := <-lines:
		if !strings.Contains(line, "level=ERROR") || !strings.Contains(line, "evidence.secret") || strings.Contains(line, "payload") {
			t.Errorf("logged %s", line)
		}
	case <-deadline(t).Done():
		t.Fatal("nothing is logged")
	}
}

type lineWriter chan string

func (w lineWriter) Write(b []byte) (int, error) {
	w <- string(b)
	return len(b), nil
}
