package store

import (
	"hash/maphash"
	"testing"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The entry of a plain step, and what memory keeps of it, are what the general path
// makes of the same event.
func TestPlainSteps(t *testing.T) {
	t.Parallel()
	plain, others := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s := &Store{idSeed: maphash.MakeSeed(), maxIDSlots: maxIDSlots}
		s.cfg.KeepParsed = rapid.Bool().Draw(t, "keep parsed")
		e, effect, known := drawEvent(t), drawEffect(t), holder{}
		if rarely(t, "known") {
			known = holder{rejected: true, arrival: 1}
		}
		bound := rapid.Bool().Draw(t, "bound")
		step := s.plainStep(e, effect, &known, bound)
		if step == nil {
			others++
			return
		}
		plain++
		fast, slow, ep := newTrial(s, e), newTrial(s, e), &Epoch{Number: 300}
		if err := fast.recordStep(ep, fast.c, e, effect.Segment, step); err != nil {
			t.Fatal(err)
		}
		if err := slow.record(ep, slow.c, e, effect, known, bound); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(slow.gathered, fast.gathered, cmp.AllowUnexported(gathered{})); diff != "" {
			t.Errorf("entry (-general +fast):\n%s", diff)
		}
		if diff := cmp.Diff(slow.c.next, fast.c.next, cmp.AllowUnexported(chainView{}, standing{}, pend{})); diff != "" {
			t.Errorf("chain (-general +fast):\n%s", diff)
		}
		if diff := cmp.Diff(slow.c.ids, fast.c.ids, cmp.AllowUnexported(chainIDs{}, heldID{}, holder{}, hashSet{})); diff != "" {
			t.Errorf("ids (-general +fast):\n%s", diff)
		}
		if slow.n != fast.n {
			t.Errorf("counters %+v, want %+v", fast.n, slow.n)
		}
	})
	if plain == 0 || others == 0 {
		t.Errorf("%d plain steps and %d others were drawn", plain, others)
	}
}

// trial is a writer without a transaction, which one entry does not need, and a chain.
type trial struct {
	*writer
	c *chain
}

func newTrial(s *Store, e *events.Event) trial {
	c := &chain{state: events.NewState(e.Key), next: chainView{no: 700, key: &e.Key, pending: []pend{{3, 1}}}}
	c.next.last = standing{firstArrival: 3, lastArrival: 3, epoch: 299}
	c.state.LastEventID = e.ID
	return trial{&writer{view: newView(nil), s: s, n: counters{arrivals: 1 << 20}}, c}
}

func rarely(t *rapid.T, what string) bool { return rapid.IntRange(0, 15).Draw(t, what) == 0 }

// drawEvent draws mostly what a finished step holds, and of everything else that an
// event can hold something now and then.
func drawEvent(t *rapid.T) *events.Event {
	e := &events.Event{Key: testKey("c"), Attributed: true, Verb: events.VerbStep, Phase: events.PhaseEnd,
		ID: rapid.StringMatching("[a-z]{1,128}").Draw(t, "id"), DigestStated: rapid.Bool().Draw(t, "stated"),
		AtMS: drawNumber(t, "at_ms"), ProducerSeq: drawNumber(t, "producer_seq")}
	e.Sum = segments.Sum([]byte(e.ID))
	e.StreamSeq, e.BrokerMS = rapid.Uint64().Draw(t, "sequence"), rapid.Uint64().Draw(t, "time")
	if rapid.Bool().Draw(t, "scope") {
		e.Scope = &segments.Scope{TenantID: "acme", CatalogCGSHash: "c3"}
	}
	number, digest := uint64(7), e.Sum
	extras := []func(){
		func() { e.Preimage.Parsed = []byte("{}") }, func() { e.Preimage.Comp = []byte("{}") },
		func() { e.Preimage.Text = &e.ID }, func() { e.Preimage.Artifact = []byte("{}") },
		func() { e.Verb = events.VerbCommit }, func() { e.Phase = events.PhaseBegin }, func() { e.Phase = "" },
		func() { e.StepID = "s" }, func() { e.StepIndex = 1 }, func() { e.Reason = "r" }, func() { e.ID = "" },
		func() { e.Anchors = &segments.Anchors{} }, func() { e.Outcome = events.Failed }, func() { e.More = true },
		func() { e.EventCount = &number }, func() { e.ProducerHead = &digest },
		func() { e.ProducerSignature = &segments.Signature{} },
	}
	if i := rapid.IntRange(0, 2*len(extras)).Draw(t, "extra"); i < len(extras) {
		extras[i]()
	}
	return e
}

func drawNumber(t *rapid.T, what string) *uint64 {
	if rapid.Bool().Draw(t, what+" given") {
		n := rapid.Uint64().Draw(t, what)
		return &n
	}
	return nil
}

func drawEffect(t *rapid.T) *events.Effect {
	effect := &events.Effect{Verdict: events.Appended}
	if rarely(t, "verdict") {
		effect.Verdict = rapid.SampledFrom(verdicts).Draw(t, "other verdict")
	}
	if rarely(t, "no segment") {
		return effect
	}
	step := &segments.StepExecuted{StepID: rapid.String().Draw(t, "step"), StepIndex: rapid.Uint32().Draw(t, "index"),
		SourceLine: rapid.String().Draw(t, "source"), ParsedExprDigest: segments.Sum([]byte("x"))}
	if rapid.Bool().Draw(t, "entry given") {
		entry := rapid.String().Draw(t, "entry")
		step.EntryID = &entry
	}
	if rapid.Bool().Draw(t, "fingerprints given") {
		step.RequestFingerprints = rapid.SliceOf(rapid.String()).Draw(t, "fingerprints")
	}
	effect.Segment = &segments.Segment{Seq: rapid.Uint64().Draw(t, "seq"), Kind: step, EmittedAtMS: drawNumber(t, "emitted_at_ms")}
	if rapid.Bool().Draw(t, "prev given") {
		effect.Segment.Prev = &step.ParsedExprDigest
	}
	if rarely(t, "kind") {
		effect.Segment.Kind = &segments.IntentBound{}
	}
	return effect
}
