package emitter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// Case N18: what is too large is refused before it is sent, with size and limit,
// and takes no number. The runtime then sends the digest alone, or a short text that
// says what was withheld and why: the run has its step either way and is complete.
func TestN18TooLarge(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start()
	p := r.begin(r.publisherConfig("c"))
	ctx := deadline(t)
	big := []byte(`"` + strings.Repeat("x", 2<<20) + `"`)
	for name, send := range map[string]func() (Sent, error){
		"intent": func() (Sent, error) { return p.Intent(ctx, Intent{Text: string(big), KeepText: true}) },
		"plan": func() (Sent, error) {
			return p.Commit(ctx, Commit{Comp: large(testComp), StepTopo: []string{"a", "b"}})
		},
		"expression": func() (Sent, error) { return p.Step(ctx, Step{StepID: "a", Parsed: big, KeepParsed: true}) },
		"snapshot":   func() (Sent, error) { return p.Seal(ctx, Seal{Artifact: large(testArtifact)}) },
	} {
		var tooLarge *TooLargeError
		_, err := send()
		if !errors.As(err, &tooLarge) || tooLarge.Size < 2<<20 || tooLarge.Limit != DefaultMaxEventBytes-publishHeadroom || !errors.Is(err, ErrTooLarge) {
			t.Fatalf("%s of 2 MiB: %v", name, err)
		}
	}
	// What the error says to do: the digest alone, or what was withheld in its place.
	withheld := fmt.Appendf(nil, `{"withheld":"too large","bytes":%d,"sha256":"%s"}`, len(big), segments.Sum(big))
	ok := must(t)
	if s := ok(p.Intent(ctx, Intent{Text: string(big)})); s.ProducerSeq != 0 {
		t.Errorf("the refused events took numbers: %+v", s)
	}
	ok(p.Commit(ctx, Commit{Comp: large(testComp), OmitComp: true, StepTopo: []string{"a", "b"}}))
	ok(p.Step(ctx, Step{StepID: "a", Parsed: big}))
	ok(p.Step(ctx, Step{StepID: "b", SourceLine: "payload withheld: too large", Parsed: withheld, KeepParsed: true}))
	ok(p.Seal(ctx, Seal{Artifact: large(testArtifact), OmitArtifact: true}))
	if _, err := p.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	r.store.look(testKey("c"), func(c *memoryChain) {
		if coverage, why := c.state.Coverage(); coverage != events.Complete || c.state.Rejected != 0 || len(c.segments) != 5 {
			t.Fatalf("%d segments, %d rejected, %s %v", len(c.segments), c.state.Rejected, coverage, why)
		}
		if conformity, codes := c.state.Conformity(); conformity != events.Conforming {
			t.Errorf("%s %v", conformity, codes)
		}
		for seq, text := range map[int][]byte{2: big, 3: withheld} {
			if k := c.segments[seq].Kind.(*segments.StepExecuted); k.ParsedExprDigest != segments.ParsedDigest(text) {
				t.Errorf("segment %d has another digest: %+v", seq, k)
			}
		}
		if k := c.segments[3].Kind.(*segments.StepExecuted); k.SourceLine != "payload withheld: too large" {
			t.Errorf("the run does not show what was withheld: %+v", k)
		}
	})
	// Around the publisher: the client or the stream refuses what is far too large.
	if _, err := r.js.Publish(deadline(t), testKey("c").Subject(events.VerbStep), big); !errors.Is(err, nats.ErrMaxPayload) {
		t.Errorf("2 MiB around the publisher: %v", err)
	}
}

// large adds a member of 2 MiB to an object.
func large(object string) []byte {
	return []byte(`{"results":"` + strings.Repeat("x", 2<<20) + `",` + object[1:])
}

func TestSlightlyTooLargeIsRecorded(t *testing.T) {
	t.Parallel()
	r := newRigOn(t, newBroker(t), func(c *IntakeConfig) {
		c.Streams.MaxEventBytes = 1000
		c.Limits = events.Limits{MaxBytes: 1000}
	})
	r.start()
	eventually(t, "the stream is there", func() bool { _, err := r.js.Stream(deadline(t), DefaultStream); return err == nil })
	subject := testKey("c").Subject(events.VerbStep)
	r.publish(&nats.Msg{Subject: subject, Data: bytes.Repeat([]byte("x"), 1001)})
	_, err := r.js.Publish(deadline(t), subject, bytes.Repeat([]byte("x"), 1001+streamHeadroom))
	if !errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum) {
		t.Errorf("over the stream's limit: %v", err)
	}
	r.applied(1)
	r.stop()
	if got := r.intake.Stats(); got.Rejected[events.TooLarge] != 1 || got.Acked != 1 {
		t.Errorf("stats %+v", got)
	}
}

func TestInvalidEventsAreNotSent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.begin(r.publisherConfig("c"))
	ctx := deadline(t)
	calls := map[string]func() (Sent, error){
		"bad id":       func() (Sent, error) { return p.Intent(ctx, Intent{EventID: "a b"}) },
		"bad preimage": func() (Sent, error) { return p.Commit(ctx, Commit{Comp: []byte(`{"a":`)}) },
		"wrong topo":   func() (Sent, error) { return p.Commit(ctx, Commit{Comp: []byte(testComp), StepTopo: []string{"z"}}) },
		"no plan":      func() (Sent, error) { return p.Commit(ctx, Commit{}) },
		"no parsed":    func() (Sent, error) { return p.Step(ctx, Step{StepID: "s"}) },
		"bad outcome":  func() (Sent, error) { return p.Seal(ctx, Seal{Outcome: "fine"}) },
		"big integer": func() (Sent, error) {
			return p.Seal(ctx, Seal{RunDigest: new(segments.Sum(nil)), ResourceIndex: new(uint64(1 << 60))})
		},
		"bad artifact":  func() (Sent, error) { return p.Seal(ctx, Seal{Artifact: []byte(`{}`)}) },
		"invalid UTF-8": func() (Sent, error) { return p.Attempt(ctx, Attempt{StepID: "\xff"}) },
		"mere reason":   func() (Sent, error) { return p.Attempt(ctx, Attempt{StepID: "s", Reason: "x"}) },
	}
	for name, call := range calls {
		if s, err := call(); err == nil || s != (Sent{}) {
			t.Errorf("%s: sent %+v, %v", name, s, err)
		}
	}
	if _, err := p.Wait(ctx); !errors.Is(err, ErrNothingSent) {
		t.Errorf("Wait: %v", err)
	}
	if s := must(t)(p.Intent(ctx, Intent{Text: "x"})); s.ProducerSeq != 0 || s.StreamSeq != 1 {
		t.Errorf("first event %+v", s)
	}
}

func TestNoStream(t *testing.T) {
	t.Parallel()
	r := newRigOn(t, newBroker(t))
	p := r.begin(r.publisherConfig("c"))
	if _, err := p.Intent(deadline(t), Intent{Text: "x"}); !errors.Is(err, ErrNoStream) {
		t.Fatalf("no stream: %v", err)
	}
	if _, err := EnsureStreams(deadline(t), r.js, StreamConfig{}); err != nil {
		t.Fatal(err)
	}
	// The event has stayed in line, and goes first.
	if s := must(t)(p.Attempt(deadline(t), Attempt{StepID: "s"})); s.ProducerSeq != 1 || s.StreamSeq != 2 {
		t.Errorf("sent %+v", s)
	}
}

func TestAnotherStreamTakesTheEvent(t *testing.T) {
	t.Parallel()
	r := newRigOn(t, newBroker(t))
	if _, err := r.js.CreateStream(deadline(t), jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"evidence.>"}}); err != nil {
		t.Fatal(err)
	}
	p := r.begin(r.publisherConfig("c"))
	if _, err := p.Intent(deadline(t), Intent{Text: "x"}); !errors.Is(err, ErrWrongStream) {
		t.Fatalf("other stream: %v", err)
	}
	info, err := r.js.Stream(deadline(t), "OTHER")
	if err != nil || info.CachedInfo().State.Msgs != 0 {
		t.Errorf("the other stream took it: %v", err)
	}
}

func TestFullStreamSaysSo(t *testing.T) {
	t.Parallel()
	r := newRigOn(t, newBroker(t))
	cfg := StreamConfig{}.withDefaults().stream(DefaultStream, events.SubjectRoot)
	cfg.MaxMsgs = 1
	if _, err := r.js.CreateStream(deadline(t), cfg); err != nil {
		t.Fatal(err)
	}
	p := r.begin(r.publisherConfig("c"))
	must(t)(p.Intent(deadline(t), Intent{Text: "x"}))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second) // the broker's answer comes before it, also on a busy machine
	defer cancel()
	var refused *RefusedError
	if _, err := p.Attempt(ctx, Attempt{StepID: "s"}); !errors.As(err, &refused) {
		t.Fatalf("full stream: %v", err)
	}
	if err := p.Close(); !errors.Is(err, ErrUnsent) {
		t.Errorf("Close: %v", err)
	}
}

func TestTenantsPermissions(t *testing.T) {
	t.Parallel()
	b := newBroker(t, func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "daemon", Password: "d"},
			{Username: "acme", Password: "a", Permissions: &server.Permissions{
				Publish: &server.SubjectPermission{Allow: []string{
					"evidence.acme.>", "$JS.API.CONSUMER.CREATE.EVIDENCE.*.evidence.acme.>",
					"$JS.API.CONSUMER.MSG.NEXT.EVIDENCE.*", "$JS.API.CONSUMER.DELETE.EVIDENCE.*",
				}},
				Subscribe: &server.SubjectPermission{Allow: []string{"evidence-receipts.acme.>", "_INBOX_acme.>"}},
			}},
		}
	})
	admin, err := jetstream.New(b.connect(nats.UserInfo("daemon", "d")))
	if err != nil {
		t.Fatal(err)
	}
	store := newMemory()
	r := &rig{t: t, broker: b, js: admin, store: store, cfg: IntakeConfig{JS: admin, Appender: store, Ledger: store.ledger()}}
	if _, err := EnsureStreams(deadline(t), admin, StreamConfig{}); err != nil {
		t.Fatal(err)
	}
	r.start()
	cfg := r.publisherConfig("c")
	cfg.Conn = b.connect(nats.UserInfo("acme", "a"), nats.CustomInboxPrefix("_INBOX_acme"))
	p := r.begin(cfg)
	must(t)(p.Intent(deadline(t), Intent{Text: "x"}))
	if _, err := p.Wait(deadline(t)); err != nil {
		t.Fatal(err)
	}
	again, err := Resume(deadline(t), cfg)
	if err != nil {
		t.Fatalf("resume with a tenant's permissions: %v", err)
	}
	must(t)(again.Attempt(deadline(t), Attempt{StepID: "s"}))
	_ = again.Close()

	cfg.Scope.TenantID = "other"   // not this user's
	cfg.PublishTimeout = time.Hour // the refusal comes at once, not with the deadline
	foreign, err := Begin(deadline(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = foreign.Close() }()
	if _, err := foreign.Intent(deadline(t), Intent{Text: "x"}); !errors.Is(err, ErrDenied) {
		t.Errorf("another tenant's subject: %v", err)
	}
	relay, err := NewRelay(cfg.Conn, "")
	if err != nil {
		t.Fatal(err)
	}
	key := foreign.key
	if _, _, err := relay.Publish(deadline(t), key.Subject(events.VerbIntent), nil, nil); !errors.Is(err, ErrDenied) {
		t.Errorf("relay to another tenant's subject: %v", err)
	}
	key.Tenant = "acme"
	if _, _, err := relay.Publish(deadline(t), key.Subject(events.VerbIntent), nil, []byte("{}")); err != nil {
		t.Errorf("relay after a refusal: %v", err)
	}
	if _, err := Receipts(deadline(t), cfg.Conn, "evidence-receipts.other.>", func(*Receipt) {}); !errors.Is(err, ErrNotReadable) {
		t.Errorf("another tenant's receipts: %v", err)
	}

	deaf := cfg
	deaf.Scope.TenantID, deaf.Chain = "acme", "deaf"
	deaf.Conn = b.connect(nats.UserInfo("acme", "a")) // no inbox prefix
	if p, err = Begin(deadline(t), deaf); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	if _, err := p.Intent(deadline(t), Intent{Text: "x"}); !errors.Is(err, ErrNoReplies) {
		t.Errorf("without an inbox prefix: %v", err)
	}
	if relay, err = NewRelay(deaf.Conn, ""); err != nil {
		t.Fatal(err)
	}
	if _, _, err := relay.Publish(deadline(t), key.Subject(events.VerbIntent), nil, []byte("{}")); !errors.Is(err, ErrNoReplies) {
		t.Errorf("relay without an inbox prefix: %v", err)
	}
}

func TestOldBrokersDoNotCompareTheLastMessage(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{"2.9.10": false, "2.10.29": false, "2.11.0": true, "2.15.3": true, "3.0.0": true, "": false, "x": false} {
		if comparesLast(version) != want {
			t.Errorf("%q: %v", version, !want)
		}
	}
}

func TestPublisherConfigIsChecked(t *testing.T) {
	t.Parallel()
	r := newRigOn(t, newBroker(t))
	for name, change := range map[string]func(*PublisherConfig){
		"no connection": func(c *PublisherConfig) { c.Conn = nil },
		"bad chain":     func(c *PublisherConfig) { c.Chain = "a.b" },
		"no chain":      func(c *PublisherConfig) { c.Chain = "" },
		"bad tenant":    func(c *PublisherConfig) { c.Scope.TenantID = "_" },
		"bad prompt":    func(c *PublisherConfig) { c.Scope.PromptHash = "AB" },
		"short key":     func(c *PublisherConfig) { c.SigningKey = make([]byte, 32) },
	} {
		cfg := r.publisherConfig("c")
		change(&cfg)
		if p, err := Begin(deadline(t), cfg); err == nil || p != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCloseEndsWaiting(t *testing.T) {
	t.Parallel()
	r := newRig(t) // without intake: no receipt will come
	p := r.begin(r.publisherConfig("c"))
	must(t)(p.Intent(deadline(t), Intent{Text: "x"}))
	ended := make(chan error, 2)
	go func() { _, err := p.Wait(context.Background()); ended <- err }()
	go func() { _, err := p.WaitSealed(context.Background()); ended <- err }()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-ended; !errors.Is(err, ErrClosed) {
			t.Errorf("waiting ended with %v", err)
		}
	}
	if err := p.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if _, err := p.Intent(deadline(t), Intent{Text: "x"}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
