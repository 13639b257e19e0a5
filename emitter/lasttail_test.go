package emitter

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/chaind/chaind/events"
)

// takenBack is a broker that loses the last event of chain "c", a step that it
// acknowledged. It gives the publisher, which lives on, and what was acknowledged.
func takenBack(t *testing.T, daemonHadIt bool) (*rig, *Publisher, Sent) {
	t.Helper()
	b := newBroker(t)
	r := newRigOn(t, b)
	r.start()
	ctx, ok := deadline(t), must(t)
	p := r.begin(r.publisherConfig("c"))
	ok(p.Intent(ctx, Intent{Text: "x"}))
	ok(p.Step(ctx, Step{StepID: "a", Parsed: []byte("1")}))
	r.applied(2)
	if !daemonHadIt {
		r.stop()
	}
	b.stop()
	copied := filepath.Join(t.TempDir(), "js")
	if err := os.CopyFS(copied, os.DirFS(b.opts.StoreDir)); err != nil {
		t.Fatal(err)
	}
	b.start()
	var lost Sent
	eventually(t, "published", func() (done bool) {
		var err error
		lost, err = p.Step(ctx, Step{StepID: "lost", Parsed: []byte("2")})
		return err == nil
	})
	if daemonHadIt {
		r.applied(3)
		r.stop()
	}
	b.stop()
	b.opts.StoreDir = copied
	b.start()
	return r, p, lost
}

// life resumes chain "c", publishes a step and, as told, the end.
func (r *rig) life(last *Sent, step string, end bool) (first Sent) {
	r.t.Helper()
	ctx, cfg := deadline(r.t), r.publisherConfig("c")
	cfg.LastSent = last
	var p *Publisher
	eventually(r.t, "resumed", func() bool {
		var err error
		p, err = Resume(ctx, cfg)
		return err == nil
	})
	defer func() { _ = p.Close() }()
	first, err := p.Step(ctx, Step{StepID: step, Parsed: []byte(step)})
	if err == nil && end {
		_, err = p.Seal(ctx, Seal{})
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return first
}

// covered is what the daemon says of chain "c" once it has ended.
func (r *rig) covered() (coverage events.Coverage, head events.Agreement) {
	r.t.Helper()
	r.start()
	eventually(r.t, "the end", func() (ended bool) {
		r.store.look(testKey("c"), func(c *memoryChain) { ended = c != nil && c.state.Outcome != events.Open })
		return ended
	})
	r.stop()
	r.store.look(testKey("c"), func(c *memoryChain) {
		coverage, _ = c.state.Coverage()
		head = c.state.ProducerHead
	})
	return coverage, head
}

// The broker loses the end of a chain, and the producer is started again. What it
// remembers makes the difference, unless the daemon had taken what was lost.
func TestResumeBehindALostTail(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		daemonHadIt, remembers bool
		number                 uint64 // of the first event after the restart
		want                   events.Coverage
	}{
		"remembered":                        {false, true, 3, events.Incomplete},
		"remembered, and the daemon has it": {true, true, 3, events.Complete},
		"forgotten, and the daemon has it":  {true, false, 2, events.Incomplete},
		"forgotten by all":                  {false, false, 2, events.Complete}, // no evidence tells; see docs/guarantees.md
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _, lost := takenBack(t, c.daemonHadIt)
			var last *Sent
			if c.remembers {
				last = &lost
			}
			if s := r.life(last, "b", true); s.ProducerSeq != c.number {
				t.Errorf("numbered %d, want %d", s.ProducerSeq, c.number)
			}
			if coverage, head := r.covered(); coverage != c.want || c.remembers && head != "" {
				t.Errorf("%s, head %q, want %s", coverage, head, c.want)
			}
		})
	}
}

// A life of the producer that forgot gave the lost number to another event; the
// next one remembers what was lost.
func TestResumeBehindANumberGivenTwice(t *testing.T) {
	t.Parallel()
	r, _, lost := takenBack(t, false)
	if again := r.life(nil, "b", false); again.ProducerSeq != lost.ProducerSeq {
		t.Fatalf("numbered %d", again.ProducerSeq)
	}
	r.life(&lost, "c", true)
	if coverage, _ := r.covered(); coverage != events.Incomplete {
		t.Error(coverage)
	}
}

// Nothing is missing: what is remembered changes nothing, also when it is not the
// last, and goes on behind what was trimmed.
func TestResumeWithNothingLost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start()
	ctx, ok := deadline(t), must(t)
	p := r.begin(r.publisherConfig("c"))
	first := ok(p.Intent(ctx, Intent{Text: "x"}))
	ok(p.Step(ctx, Step{StepID: "a", Parsed: []byte("1")}))
	last := r.life(&first, "b", false)
	if last.ProducerSeq != 2 {
		t.Errorf("numbered %d", last.ProducerSeq)
	}
	r.applied(3)
	r.purge()
	if s := r.life(&last, "c", true); s.ProducerSeq != 3 {
		t.Errorf("behind the trimmed stream: numbered %d", s.ProducerSeq)
	}
	if coverage, _ := r.covered(); coverage != events.Complete {
		t.Error(coverage)
	}
}

// A producer that lives on notices by itself, and is told not to begin from what
// the stream holds alone.
func TestTakenBackUnderThePublisher(t *testing.T) {
	t.Parallel()
	r, p, lost := takenBack(t, false)
	ctx := deadline(t)
	var err error
	eventually(t, "an answer", func() bool {
		_, err = p.Step(ctx, Step{StepID: "b", Parsed: []byte("3")})
		return err == nil || !errors.Is(err, ErrTimeout) && !errors.Is(err, ErrNoStream)
	})
	if !errors.Is(err, ErrTakenBack) {
		t.Fatalf("it goes on: %v", err)
	}
	if _, err := p.Seal(ctx, Seal{}); !errors.Is(err, ErrTakenBack) {
		t.Errorf("it goes on: %v", err)
	}
	r.life(&lost, "b", true)
	if coverage, _ := r.covered(); coverage != events.Incomplete {
		t.Error(coverage)
	}
}

func TestLastSentIsChecked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cfg := r.publisherConfig("c")
	cfg.LastSent = &Sent{EventID: "e", ProducerSeq: 1}
	if _, err := Resume(deadline(t), cfg); err == nil {
		t.Error("an event without digest is taken")
	}
}
