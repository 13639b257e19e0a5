package emitter

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/events"
)

func isAck(d *delivery) bool {
	return bytes.HasPrefix(d.payload, []byte(`{"stream":"`+DefaultStream+`"`)) && bytes.Contains(d.payload, []byte(`"seq":`))
}

func isRefusal(d *delivery) bool { return bytes.HasPrefix(d.payload, []byte(`{"error":`)) }

func isConsumer(d *delivery) bool {
	return bytes.Contains(d.payload, []byte(`consumer_create_response`))
}

// impatient is a publisher behind a proxy that does not wait long for an answer.
func (r *rig) impatient(chain string, conn *nats.Conn) PublisherConfig {
	cfg := r.publisherConfig(chain)
	cfg.Conn, cfg.PublishTimeout = conn, 200*time.Millisecond
	return cfg
}

// holds tells how many messages the stream holds.
func (r *rig) holds() uint64 {
	r.t.Helper()
	stream, err := r.js.Stream(deadline(r.t), DefaultStream)
	if err != nil {
		r.t.Fatal(err)
	}
	return stream.CachedInfo().State.Msgs
}

// foreign is an event of another writer at the same chain.
func foreign(chain string) *nats.Msg {
	return &nats.Msg{Subject: testKey(chain).Subject(events.VerbSeal), Data: []byte(`{"v":1,"event_id":"foreign","outcome":"abandoned"}`)}
}

func TestLostAcknowledgementOfEveryEvent(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]fate{"acknowledgement lost": lose, "connection cut": cut} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.start()
			lost := map[string]bool{}
			_, conn := newProxy(r, func(d *delivery) fate {
				if !isAck(d) || lost[string(d.payload)] {
					return pass
				}
				lost[string(d.payload)] = true
				return trouble
			})
			p := r.begin(r.impatient("c", conn))
			wholeRun(t, p)
			r.applied(8)
			if n := r.holds(); n != 8 || len(lost) != 8 {
				t.Errorf("the stream holds %d messages, %d acknowledgements were lost", n, len(lost))
			}
			r.stop()
			r.store.look(testKey("c"), func(c *memoryChain) {
				if coverage, why := c.state.Coverage(); coverage != events.Complete || c.state.Duplicates != 0 {
					t.Errorf("coverage %s %v, %d duplicates", coverage, why, c.state.Duplicates)
				}
			})
		})
	}
}

// An acknowledgement gets lost, and before the retry somebody else writes: the
// event is still known to be stored, and it is the next one that is refused.
func TestLostAcknowledgementBeforeAnotherWriter(t *testing.T) {
	t.Parallel()
	for _, before := range []int{0, 2} {
		t.Run(fmt.Sprintf("after %d events", before), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			acks := 0
			_, conn := newProxy(r, func(d *delivery) fate {
				if !isAck(d) {
					return pass
				}
				if acks++; acks != before+1 {
					return pass
				}
				for range 2 {
					if _, err := r.js.PublishMsg(deadline(t), foreign("c")); err != nil {
						t.Error(err)
					}
				}
				return lose
			})
			p := r.begin(r.impatient("c", conn))
			for range before {
				must(t)(p.Attempt(deadline(t), Attempt{StepID: "s"}))
			}
			s := must(t)(p.Intent(deadline(t), Intent{Text: "x"}))
			if s.ProducerSeq != uint64(before) || s.StreamSeq != uint64(before)+1 {
				t.Errorf("sent %+v", s)
			}
			if n := r.holds(); n != uint64(before)+3 {
				t.Errorf("the stream holds %d messages", n)
			}
			if _, err := p.Attempt(deadline(t), Attempt{StepID: "s"}); !errors.Is(err, ErrOtherWriter) {
				t.Errorf("behind another writer: %v", err)
			}
		})
	}
}

// What stands in the event's place is another producer's, however much it
// resembles ours, and though no answer to the first attempt came.
func TestAnotherProducersEventIsNotTakenForOurs(t *testing.T) {
	t.Parallel()
	// The payload that the publisher makes of the intent below.
	rehearsal := newRig(t)
	sent := must(t)(rehearsal.begin(rehearsal.publisherConfig("c")).Intent(deadline(t), Intent{EventID: "one", Text: "x"}))
	stream, err := rehearsal.js.Stream(deadline(t), DefaultStream)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := stream.GetMsg(deadline(t), sent.StreamSeq)
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]*nats.Msg{
		"same event id":            {Subject: ours.Subject, Data: bytes.Replace(ours.Data, []byte(`"one"`), []byte(`"one" `), 1)},
		"same payload, other verb": {Subject: testKey("c").Subject(events.VerbSeal), Data: ours.Data},
		"another event":            foreign("c"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.publish(m)
			refusals := 0
			_, conn := newProxy(r, func(d *delivery) fate {
				if !isRefusal(d) {
					return pass
				}
				if refusals++; refusals > 1 {
					return pass
				}
				return lose
			})
			p := r.begin(r.impatient("c", conn))
			if _, err := p.Intent(deadline(t), Intent{EventID: "one", Text: "x"}); !errors.Is(err, ErrExists) {
				t.Errorf("another's chain: %v", err)
			}
			if n := r.holds(); n != 1 || refusals < 2 {
				t.Errorf("the stream holds %d messages, refused %d times", n, refusals)
			}
		})
	}
}

// While an attempt is on its way through the cluster, its leader refuses the
// next one and cannot say yet what the last message will be.
func TestAttemptStillOnItsWayIsNobodyElses(t *testing.T) {
	t.Parallel()
	r := newRigOn(t, newBroker(t))
	limited := StreamConfig{}.withDefaults().stream(DefaultStream, events.SubjectRoot)
	limited.MaxMsgs = 1
	if _, err := r.js.CreateStream(deadline(t), limited); err != nil {
		t.Fatal(err)
	}
	told := 0
	_, conn := newProxy(r, func(d *delivery) fate {
		if told == 0 && isRefusal(d) { // the stream is full: nothing is stored, as on the way
			told++
			d.payload = fmt.Appendf(nil, `{"error":{"code":400,"err_code":%d,"description":"wrong last sequence"},"stream":"%s","seq":0}`,
				jetstream.JSErrCodeStreamWrongLastSequenceConstant, DefaultStream)
			limited.MaxMsgs = -1
			if _, err := r.js.UpdateStream(deadline(t), limited); err != nil {
				t.Error(err)
			}
		}
		return pass
	})
	p := r.begin(r.impatient("c", conn))
	must(t)(p.Intent(deadline(t), Intent{Text: "x"}))
	if s := must(t)(p.Attempt(deadline(t), Attempt{StepID: "s"})); s.StreamSeq != 2 || told != 1 {
		t.Errorf("sent %+v, told %d times", s, told)
	}
}

// A replica that is late, or a consumer whose server is gone, makes no chain
// look shorter than it is.
func TestResumeReadsWhatTheLeaderHas(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]func(*delivery) (applied bool, _ fate){
		"the replica has nothing yet": func(d *delivery) (bool, fate) {
			d.payload = bytes.Replace(d.payload, []byte(`"num_pending":2`), []byte(`"num_pending":0`), 1)
			return isConsumer(d), pass
		},
		"the replica has the first event": func(d *delivery) (bool, fate) {
			if isConsumer(d) {
				return false, pass
			}
			d.words[3] = strings.TrimSuffix(d.words[3], ".1") + ".0" // messages left
			return true, pass
		},
		"no answer to the consumer": func(d *delivery) (bool, fate) { return true, lose },
		"no message to the consumer": func(d *delivery) (bool, fate) {
			if isConsumer(d) {
				return false, pass
			}
			return true, lose
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			first := r.begin(r.publisherConfig("c"))
			must(t)(first.Intent(deadline(t), Intent{Text: "x"}))
			must(t)(first.Step(deadline(t), Step{StepID: "a", Parsed: []byte("1")}))
			want, _ := first.Head()

			done := false
			_, conn := newProxy(r, func(d *delivery) fate {
				if done || !isConsumer(d) && !strings.HasPrefix(d.reply(), "$JS.ACK.") {
					return pass
				}
				applied, f := late(d)
				done = applied
				return f
			})
			p, err := Resume(deadline(t), r.impatient("c", conn))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = p.Close() }()
			if head, known := p.Head(); !known || head == nil || *head != *want {
				t.Fatalf("head %v, want %v", head, want)
			}
			if !done {
				t.Error("the trouble did not happen")
			}
			if s := must(t)(p.Attempt(deadline(t), Attempt{StepID: "s"})); s.ProducerSeq != 2 || s.StreamSeq != 3 {
				t.Errorf("sent %+v", s)
			}
		})
	}
}

func TestResumeSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	r := newRigOn(t, newBroker(t))
	if _, err := Resume(deadline(t), r.impatient("c", r.js.Conn())); !errors.Is(err, ErrNoStream) {
		t.Errorf("no stream: %v", err)
	}
	if _, err := r.js.CreateStream(deadline(t), jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"evidence.>"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := Resume(deadline(t), r.impatient("c", r.js.Conn())); !errors.Is(err, ErrWrongStream) {
		t.Errorf("another stream: %v", err)
	}
}

func TestRelayTellsWhetherAChainIsThere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	relay, err := NewRelay(r.js.Conn(), "")
	if err != nil {
		t.Fatal(err)
	}
	r.publish(foreign("c"))
	for chain, want := range map[string]bool{"c": true, "d": false} {
		if held, err := relay.Holds(deadline(t), testKey(chain)); err != nil || held != want {
			t.Errorf("chain %s: %v, %v", chain, held, err)
		}
	}
	if n := r.holds(); n != 1 {
		t.Errorf("asking stored %d messages", n-1)
	}
}
