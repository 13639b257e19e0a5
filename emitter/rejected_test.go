package emitter

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// drain runs a RejectedPublisher until the test ends.
func (r *rig) drain(box Outbox) {
	r.t.Helper()
	p, err := NewRejectedPublisher(RejectedConfig{JS: r.js, Outbox: box})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	r.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("Run: %v", err)
		}
	})
}

// rejectedMessages reads n messages of the rejected stream.
func (r *rig) rejectedMessages(n int) []*jetstream.RawStreamMsg {
	r.t.Helper()
	stream, err := r.js.Stream(deadline(r.t), DefaultRejectedStream)
	if err != nil {
		r.t.Fatal(err)
	}
	eventually(r.t, "the rejections are published", func() bool {
		info, err := stream.Info(context.Background())
		return err == nil && info.State.LastSeq >= uint64(n)
	})
	var all []*jetstream.RawStreamMsg
	for seq := 1; seq <= n; seq++ {
		m, err := stream.GetMsg(deadline(r.t), uint64(seq))
		if err != nil {
			r.t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

func TestRejectedEventsArePublished(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start()
	r.drain(r.store)
	conflicting := stepEvent("c", 1)
	conflicting.Data = bytes.Replace(conflicting.Data, []byte("x.list()"), []byte("y.list()"), 1)
	r.publish(stepEvent("c", 1), conflicting,
		&nats.Msg{Subject: testKey("c").Subject("finish"), Data: []byte("{}")},
		&nats.Msg{Subject: "evidence.nobody", Data: []byte("\x00\xff")})
	got := r.rejectedMessages(3)
	m := got[0]
	sum, first := segments.Sum(conflicting.Data), segments.Sum(stepEvent("c", 1).Data)
	want := map[string]string{
		HeaderClass: string(events.Conflict), HeaderStreamSeq: "2", HeaderSHA256: sum.String(), HeaderEventID: "e1",
		HeaderExisting: first.String(), HeaderSubject: conflicting.Subject, HeaderTruncatedTo: "", HeaderAfterEnd: "",
	}
	for name, value := range want {
		if m.Header.Get(name) != value {
			t.Errorf("header %s: %q, want %q", name, m.Header.Get(name), value)
		}
	}
	if m.Header.Get(HeaderDetail) == "" || m.Header.Get(HeaderBrokerMS) == "" || !bytes.Equal(m.Data, conflicting.Data) {
		t.Errorf("message %+v", m)
	}
	if m.Subject != strings.Replace(conflicting.Subject, "evidence.", "evidence-rejected.", 1) {
		t.Errorf("subject %s", m.Subject)
	}
	if got[1].Header.Get(HeaderClass) != string(events.BadSubject) || got[2].Subject != events.UnattributedSubject {
		t.Errorf("messages %+v, %+v", got[1], got[2])
	}
}

// forgetful loses the record that something was published, once.
type forgetful struct {
	*memory
	forgot atomic.Bool
}

func (f *forgetful) RejectionsPublished(ctx context.Context, upTo uint64) error {
	if f.forgot.CompareAndSwap(false, true) {
		return errInjected
	}
	return f.memory.RejectionsPublished(ctx, upTo)
}

func TestCrashBetweenAcknowledgementAndRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start()
	r.publish(&nats.Msg{Subject: testKey("c").Subject(events.VerbStep), Data: []byte("no")})
	r.applied(1)
	box := &forgetful{memory: r.store}
	r.drain(box)
	eventually(t, "the rejection is recorded as published", func() bool {
		pending, err := box.PendingRejections(1)
		return err == nil && len(pending) == 0
	})
	stream, err := r.js.Stream(deadline(t), DefaultRejectedStream)
	if err != nil {
		t.Fatal(err)
	}
	if got := stream.CachedInfo().State.Msgs; !box.forgot.Load() || got != 1 {
		t.Errorf("%d messages for one rejection", got)
	}
}

func TestRejectionsWaitForTheirStream(t *testing.T) {
	t.Parallel()
	r := newRigOn(t, newBroker(t))
	r.store.reject(&events.Event{Message: events.Message{Subject: "evidence.x", StreamSeq: 1}}, events.Effect{Fault: &events.Fault{Class: events.BadSubject}})
	r.drain(r.store)
	if _, err := EnsureStreams(deadline(t), r.js, StreamConfig{}); err != nil {
		t.Fatal(err)
	}
	r.rejectedMessages(1)
}

func TestRejectedMessageFitsTheBroker(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	payload := bytes.Repeat([]byte("x"), 1<<20)
	r.store.reject(&events.Event{Message: events.Message{Subject: "evidence.x", StreamSeq: 1, Payload: payload}, Sum: segments.Sum(payload)},
		events.Effect{Fault: &events.Fault{Class: events.TooLarge, Detail: strings.Repeat("\n", 4096)}})
	r.drain(r.store)
	m := r.rejectedMessages(1)[0]
	if kept := m.Header.Get(HeaderTruncatedTo); kept == "" || len(m.Data) >= len(payload) {
		t.Errorf("truncated to %q, %d bytes", kept, len(m.Data))
	}
	sum := segments.Sum(payload)
	if m.Header.Get(HeaderSHA256) != sum.String() {
		t.Errorf("digest %s", m.Header.Get(HeaderSHA256))
	}
}

func TestRejectionsNeverHoldUpTheIntake(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.js.DeleteStream(deadline(t), DefaultRejectedStream); err != nil {
		t.Fatal(err)
	}
	r.drain(r.store)
	r.cfg.Streams.Rejected = "SOMETHING_ELSE" // so that nobody creates the right one
	r.start()
	for n := 1; n <= 20; n++ {
		r.publish(&nats.Msg{Subject: testKey("c").Subject(events.VerbStep), Data: []byte("no")}, stepEvent("c", n))
	}
	r.applied(40)
	r.stop()
	r.inOrder("c", upTo(20)...)
}

func TestStreamsAreCreatedAndNeverChanged(t *testing.T) {
	t.Parallel()
	r := newRigOn(t, newBroker(t))
	got, err := EnsureStreams(deadline(t), r.js, StreamConfig{})
	if err != nil || len(got.Created) != 2 || len(got.Warnings) != 2 || got.Warnings[0].Weakness != events.WeakOneReplica || got.Evidence.CreatedNS == 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	stream, err := r.js.Stream(deadline(t), DefaultStream)
	if err != nil {
		t.Fatal(err)
	}
	cfg := stream.CachedInfo().Config
	if cfg.Storage != jetstream.FileStorage || cfg.Discard != jetstream.DiscardNew || cfg.MaxAge != 0 || cfg.Retention != jetstream.LimitsPolicy || cfg.Replicas != 1 || cfg.MaxMsgs > 0 || cfg.MaxBytes > 0 {
		t.Errorf("configuration %+v", cfg)
	}
	again, err := EnsureStreams(deadline(t), r.js, StreamConfig{Replicas: 3, MaxEventBytes: 8 << 20})
	if err != nil || len(again.Created) != 0 || again.Evidence != got.Evidence {
		t.Fatalf("%+v, %v", again, err)
	}
	var weak []string
	for _, w := range again.Warnings {
		weak = append(weak, string(w.Weakness))
		if !strings.Contains(w.String(), w.Stream) {
			t.Errorf("warning %q", w)
		}
	}
	if len(weak) != 6 || weak[0] != string(events.WeakOneReplica) || weak[1] != string(events.WeakReplicas) || weak[2] != string(events.WeakSize) {
		t.Errorf("warnings %v", weak)
	}
	after, err := stream.Info(deadline(t))
	if err != nil || after.Config.Replicas != 1 || after.Config.MaxMsgSize != cfg.MaxMsgSize {
		t.Errorf("the stream was changed: %+v, %v", after, err)
	}
}

func TestEnsureStreamsFails(t *testing.T) {
	t.Parallel()
	b := newBroker(t, func(o *server.Options) { o.JetStream = false })
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if got, err := EnsureStreams(ctx, b.js(), StreamConfig{}); err == nil || got != nil {
		t.Errorf("without JetStream: %+v, %v", got, err)
	}
	if _, err := NewIntake(IntakeConfig{}); err == nil {
		t.Error("an empty configuration")
	}
	if _, err := NewRejectedPublisher(RejectedConfig{}); err == nil {
		t.Error("an empty configuration")
	}
	if _, err := Connect(ConnConfig{URL: "nats://127.0.0.1:1"}); err == nil {
		t.Error("connected to nothing")
	}
	for _, c := range []ConnConfig{{CredsFile: "missing"}, {CAFile: "missing"}, {CAFile: "doc.go"}, {CertFile: "missing"}} {
		if _, err := c.Options(); err == nil {
			t.Errorf("options of %+v", c)
		}
	}
	if !errors.Is(relayed(nats.ErrNoResponders), ErrNoStream) {
		t.Error("relayed")
	}
}
