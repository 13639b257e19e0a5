package emitter

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/events"
)

// directRig has a stream of events that allows direct access.
func directRig(t *testing.T) (*rig, jetstream.Stream) {
	t.Helper()
	r := newRigOn(t, newBroker(t))
	cfg := StreamConfig{}.withDefaults().stream(DefaultStream, events.SubjectRoot)
	cfg.AllowDirect = true
	stream, err := r.js.CreateStream(deadline(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r, stream
}

// TestLateReplicaLosesNothing: of a stream that allows direct access a replica
// that is late answers, too, and has no message where the leader has one. A
// delivery that got lost on the way is read from the leader alone.
func TestLateReplicaLosesNothing(t *testing.T) {
	t.Parallel()
	r, _ := directRig(t)
	dropped := false
	_, conn := newProxy(r, func(d *delivery) fate {
		switch {
		case strings.Contains(string(d.header), "Nats-Stream: "): // the answer to a direct read
			d.header, d.payload = []byte("NATS/1.0 404 Message Not Found\r\n\r\n"), nil
		case !dropped && streamSeq(d) == 3:
			dropped = true
			return lose
		}
		return pass
	})
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	r.cfg.JS = js
	for n := 1; n <= 5; n++ {
		r.publish(stepEvent("c", n))
	}
	r.start()
	r.applied(5)
	r.stop()
	r.inOrder("c", 1, 2, 3, 4, 5)
	r.lostExactly()
	if !dropped {
		t.Error("no delivery got lost")
	}
	if got := r.settings(); len(got) != 1 || got[0] != "0 [allow_direct one_replica]" {
		t.Errorf("settings on record: %v", got)
	}
}

// streamSeq is the sequence in the stream of what a consumer delivers; 0: it is
// something else.
func streamSeq(d *delivery) uint64 {
	words := strings.Split(d.reply(), ".")
	if len(words) < 9 || words[0] != "$JS" || words[1] != "ACK" {
		return 0
	}
	seq, _ := strconv.ParseUint(words[len(words)-4], 10, 64)
	return seq
}

// TestMessagesAreReadFromTheLeader: beside a mirror that lacks messages, and
// answers direct reads as well as the stream does, no message is missed, none is
// taken for another, and a history that parted is noticed.
func TestMessagesAreReadFromTheLeader(t *testing.T) {
	t.Parallel()
	r, stream := directRig(t)
	if _, err := r.js.CreateStream(deadline(t), jetstream.StreamConfig{Name: "COPY", MirrorDirect: true,
		Mirror: &jetstream.StreamSource{Name: DefaultStream, FilterSubject: testKey("other").Subject("*")}}); err != nil {
		t.Fatal(err)
	}
	r.publish(stepEvent("other", 1), stepEvent("c", 1), stepEvent("c", 2))
	eventually(t, "the mirror answers", func() bool {
		_, err := stream.GetMsg(deadline(t), 2)
		return errors.Is(err, jetstream.ErrMsgNotFound)
	})
	s := testSession(IntakeConfig{JS: r.js})
	s.stream, s.id = stream, identity(stream.CachedInfo())
	want := stepEvent("c", 2)
	for range 64 {
		m, ok, err := s.message(deadline(t), 3, true)
		if err != nil || !ok || m.StreamSeq != 3 || m.Subject != want.Subject || string(m.Payload) != string(want.Data) || m.BrokerMS == 0 {
			t.Fatalf("%+v, %v, %v", m, ok, err)
		}
		if m, ok, err := s.message(deadline(t), 2, false); err != nil || !ok || m.StreamSeq != 2 {
			t.Fatalf("%+v, %v, %v", m, ok, err)
		}
	}
	if err := stream.DeleteMsg(deadline(t), 2); err != nil {
		t.Fatal(err)
	}
	if m, ok, err := s.message(deadline(t), 2, true); ok || err != nil {
		t.Errorf("a message that was deleted: %+v, %v", m, err)
	}
	if m, ok, err := s.message(deadline(t), 2, false); !ok || err != nil || m.StreamSeq != 3 {
		t.Errorf("the message behind one that was deleted: %+v, %v, %v", m, ok, err)
	}
	if m, ok, err := s.message(deadline(t), 4, false); ok || err != nil {
		t.Errorf("behind the last: %+v, %v", m, err)
	}
	s.id.Name = "NONE"
	if _, ok, err := s.message(deadline(t), 1, true); ok || err == nil {
		t.Error("of a stream that is not there it says something")
	}
}

// TestNothingIsLostByALeaderThatIsBehind: who does not have what was delivered
// says nothing about what lies before it.
func TestNothingIsLostByALeaderThatIsBehind(t *testing.T) {
	t.Parallel()
	r, stream := directRig(t)
	r.publish(stepEvent("c", 1))
	s := testSession(IntakeConfig{JS: r.js})
	s.stream, s.id, s.next = stream, identity(stream.CachedInfo()), 2
	if err := s.fill(deadline(t), 4); !errors.Is(err, errChanged) || !s.hand.empty() {
		t.Errorf("%v; something is recorded: %v", err, !s.hand.empty())
	}
	for n := 2; n <= 4; n++ {
		r.publish(stepEvent("c", n))
	}
	if err := stream.DeleteMsg(deadline(t), 2); err != nil {
		t.Fatal(err)
	}
	if err := s.fill(deadline(t), 4); err != nil || s.next != 4 {
		t.Errorf("next is %d: %v", s.next, err)
	}
	b := s.hand.take(&batch{})
	if want := []lostRange{{2, 2, LostDeleted}}; !slices.Equal(b.lost, want) || len(b.events) != 1 || b.events[0].StreamSeq != 3 {
		t.Errorf("lost %v, %d events", b.lost, len(b.events))
	}
}
