package emitter

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/chaind/chaind/events"
)

// A stream that nobody answers for may be electing a leader: the relay waits for
// it, also where its user may not ask what streams there are. A broker that says
// that there is none is believed at once, and so is silence about a subject that
// is no event's.
func TestRelayWaitsForALeader(t *testing.T) {
	t.Parallel()
	b := newBroker(t, func(o *server.Options) {
		o.Users = []*server.User{{Username: "all", Password: "p"},
			{Username: "few", Password: "p", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Allow: []string{"evidence.>", "elsewhere.>"}}}}}
	})
	relayOf := func(user string) *Relay {
		r, err := NewRelay(b.connect(nats.UserInfo(user, "p")), "")
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	subject := events.Key{PromptHash: strings.Repeat("ab", 32), Session: strings.Repeat("0c", 16), Chain: "c"}.Subject(events.VerbSeal)
	start := time.Now()
	if _, _, err := relayOf("all").Publish(deadline(t), subject, nil, []byte("{}")); !errors.Is(err, ErrNoStream) {
		t.Errorf("no stream: %v", err)
	}
	if _, _, err := relayOf("few").Publish(deadline(t), "elsewhere.x", nil, []byte("{}")); !errors.Is(err, ErrNoStream) {
		t.Errorf("no event's subject: %v", err)
	}
	if took := time.Since(start); took >= DefaultPublishTimeout {
		t.Errorf("that took %s", took)
	}

	sent := make(chan error, 1)
	before := b.received(t)
	go func() {
		_, _, err := relayOf("few").Publish(deadline(t), subject, nil, []byte("{}"))
		sent <- err
	}()
	// The client library itself tries three times.
	inTime(t, "more than the client library tries", func() bool { return b.received(t) > before+3 || len(sent) > 0 })
	if _, err := EnsureStreams(deadline(t), b.js(nats.UserInfo("all", "p")), StreamConfig{}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-sent:
		if err != nil {
			t.Errorf("a stream that came: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the relay does not return")
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := relayOf("few").Publish(ctx, subject, nil, nil); err == nil {
		t.Error("published after the end of its context")
	}
}

// received counts the messages that clients have sent.
func (b *broker) received(t *testing.T) int64 {
	v, err := b.srv.Varz(nil)
	if err != nil {
		t.Fatal(err)
	}
	return v.InMsgs
}
