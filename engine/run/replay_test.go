package run_test

import (
	"bytes"
	"encoding/json"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/naive"
	"github.com/chaind/chaind/engine/run"
	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// history is what a store keeps of one chain, built event by event with the
// state machine of package events.
type history struct {
	state     *events.State
	ids       map[string]events.Known
	segments  []run.Segment
	attempts  []run.Attempt
	preimages []run.Preimage
	rejected  []run.Rejected
	end       *run.Event
	declared  *run.Position
	fixed     *events.State // as it was when the last seal had been applied
}

// histories takes messages as a store does, in one epoch of one stream.
type histories struct {
	lim   events.Limits
	byKey map[events.Key]*history
	keys  []events.Key // in order of appearance
}

func newHistories(lim events.Limits) *histories {
	return &histories{lim: lim, byKey: map[events.Key]*history{}}
}

func (h *histories) deliver(m events.Message) {
	e := events.Decode(m, h.lim)
	if !e.Attributed {
		return
	}
	c := h.byKey[e.Key]
	if c == nil {
		c = &history{state: events.NewState(e.Key), ids: map[string]events.Known{}}
		h.byKey[e.Key] = c
		h.keys = append(h.keys, e.Key)
	}
	c.apply(e)
}

func (c *history) apply(e *events.Event) {
	known := c.ids[e.ID]
	effect := c.state.Apply(e, known)
	if e.ID != "" && effect.Verdict != events.Duplicate {
		if effect.Verdict == events.Rejected {
			known.Rejected = true
		} else {
			known.Sum = pointer(e.Sum)
		}
		c.ids[e.ID] = known
	}
	if c.fixed == nil {
		c.record(e, effect)
	}
}

func (c *history) record(e *events.Event, effect events.Effect) {
	origin := run.Event{ID: e.ID, ProducerSeq: e.ProducerSeq, Position: run.Position{Epoch: 1, StreamSeq: e.StreamSeq}}
	if effect.Segment != nil {
		c.segments = append(c.segments, run.Segment{Segment: *effect.Segment, Event: &origin})
		c.preimages = append(c.preimages, run.Preimage{Seq: effect.Segment.Seq, Text: e.Preimage.Text,
			Plan: e.Preimage.Comp, Parsed: e.Preimage.Parsed, Artifact: e.Preimage.Artifact})
	}
	switch effect.Verdict {
	case events.Rejected:
		c.rejected = append(c.rejected, run.Rejected{Event: origin, Class: string(effect.Fault.Class), Detail: effect.Fault.Detail, Sum: e.Sum, Existing: effect.Existing})
		return
	case events.Attempted:
		c.attempts = append(c.attempts, run.Attempt{Event: origin, Phase: string(e.Phase), StepID: e.StepID, StepIndex: e.StepIndex, Reason: e.Reason, AtMS: e.AtMS})
		return
	case events.Duplicate, events.Late:
		return
	}
	if e.EventCount != nil {
		c.declared = &origin.Position
	}
	if effect.Verdict == events.Finished {
		b, _ := c.state.AppendBinary(nil)
		c.fixed, _ = events.DecodeState(b)
		c.end = &origin
	}
}

// chain is what a sealer fills in; an open chain is taken as it is now.
func (c *history) chain() *run.Chain {
	s := c.fixed
	if s == nil {
		s = c.state
	}
	conformity, _ := s.Conformity()
	out := &run.Chain{
		Facts: run.Facts{
			Name: s.Key.Chain, Scope: s.BoundScope(), Unscoped: s.Scope == nil,
			Outcome: run.Outcome(s.Outcome), Reason: s.Reason, Conformity: run.Conformity(conformity),
			Count: s.Segments, Head: s.Head, End: c.end,
			Intake: &run.Intake{
				Stream: "EVIDENCE", CreatedNS: 1_780_000_000_000_000_000, Duplicates: s.Duplicates,
				First: run.Position{Epoch: 1, StreamSeq: s.FirstStreamSeq}, Last: run.Position{Epoch: 1, StreamSeq: s.LastStreamSeq},
			},
		},
		Segments: seq(c.segments), Attempts: seq(c.attempts), Preimages: seq(c.preimages), Rejected: seq(c.rejected),
	}
	if s.Facts.Declared != nil {
		out.Declared = &run.Declared{Count: *s.Facts.Declared, At: *c.declared}
	}
	if s.GivenHead != nil {
		out.Producer = &run.Producer{Head: *s.GivenHead, Segments: s.GivenSegments, Signature: s.GivenSignature}
	}
	return out
}

// seq yields copies of the items.
func seq[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, item := range list {
			if !yield(item, nil) {
				return
			}
		}
	}
}

func pointer[T any](v T) *T { return &v }

// vectorChains replays a vector file of package events.
func vectorChains(tb testing.TB, name string) *histories {
	tb.Helper()
	raw, err := os.ReadFile(filepath.Join("../../testdata/events", name+".jsonl"))
	if err != nil {
		tb.Fatal(err)
	}
	h := newHistories(events.Limits{MaxBytes: 65536})
	n := 0
	for text := range bytes.Lines(raw) {
		var line struct{ Subject, Payload string }
		if err := json.Unmarshal(text, &line); err != nil {
			tb.Fatal(err)
		}
		h.deliver(events.Message{Subject: line.Subject, Payload: []byte(line.Payload), StreamSeq: uint64(n + 1), BrokerMS: 1_780_000_000_000 + uint64(n)})
		n++
	}
	return h
}

func known() engine.Registry { return run.Domains() }

// write seals a chain, and holds the envelope against the naive reading.
func write(tb testing.TB, c *run.Chain, question string, keep run.Keep) string {
	tb.Helper()
	var out bytes.Buffer
	if _, _, err := run.Write(&out, c, question, keep, nil); err != nil {
		tb.Fatal(err)
	}
	return out.String()
}

// writeVersion seals a chain under an engine version, with the default question.
func writeVersion(tb testing.TB, version string, c *run.Chain) string {
	tb.Helper()
	var out bytes.Buffer
	if _, _, err := run.WriteVersion(&out, version, c, run.QuestionRun, run.DefaultKeep, nil); err != nil {
		tb.Fatal(err)
	}
	return out.String()
}

func judge(tb testing.TB, text string) *engine.Judgement {
	tb.Helper()
	b, err := bundle.Parse(text)
	if err != nil {
		tb.Fatal(err)
	}
	j, err := engine.Judge(b, known())
	if err != nil {
		tb.Fatal(err)
	}
	return j
}

func summarize(tb testing.TB, text string) *run.Summary {
	tb.Helper()
	b, err := bundle.Parse(text)
	if err != nil {
		tb.Fatal(err)
	}
	s, err := run.Summarize(b)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// edited alters a bundle and seals it again, as a forger would.
func edited(text string, edit func(doc map[string]any)) string {
	doc := naive.MustParse(text)
	edit(doc)
	naive.Seal(doc)
	return naive.File(doc)
}

// failing lists the labels of the claims that do not re-derive.
func failing(j *engine.Judgement) []string {
	out := []string{}
	for _, c := range j.Claims {
		if !c.Rederived {
			label, _, _ := strings.Cut(c.Text, ":")
			out = append(out, label)
		}
	}
	return out
}

func digestOf(texts []string) string {
	slices.Sort(texts)
	return segments.Sum([]byte(strings.Join(texts, ""))).String()
}
