package run_test

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"runtime"
	"strings"
	"testing"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/run"
	"github.com/chaind/chaind/segments"
)

var errBroken = errors.New("the store is gone")

func breaking[T any](list ...T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, item := range list {
			if !yield(item, nil) {
				return
			}
		}
		var none T
		yield(none, errBroken)
	}
}

// TestUnpackable: what the graph has no form for is refused, and so is what
// could not be read to its end.
func TestUnpackable(t *testing.T) {
	t.Parallel()
	history := func() *history { return honest(t).history() }()
	for name, c := range map[string]struct {
		spoil func(*run.Chain)
		want  error
	}{
		"segments that end":        {func(c *run.Chain) { c.Segments = breaking(history.segments[:2]...) }, errBroken},
		"attempts that end":        {func(c *run.Chain) { c.Attempts = breaking(history.attempts[:1]...) }, errBroken},
		"preimages that end":       {func(c *run.Chain) { c.Preimages = breaking[run.Preimage]() }, errBroken},
		"rejected events that end": {func(c *run.Chain) { c.Rejected = breaking[run.Rejected]() }, errBroken},
		"segment left out":         {func(c *run.Chain) { c.Segments = seq(without(history.segments, 2)) }, run.ErrUnpackable},
		"unsafe segment": {func(c *run.Chain) {
			s := history.segments[0]
			s.Kind = &segments.RunSealed{RunID: "\xff"}
			c.Segments, c.Preimages = seq([]run.Segment{s}), nil
		}, run.ErrUnpackable},
		"unknown outcome":          {func(c *run.Chain) { c.Outcome = "fine" }, run.ErrUnpackable},
		"no outcome":               {func(c *run.Chain) { c.Outcome = "" }, run.ErrUnpackable},
		"unknown conformity":       {func(c *run.Chain) { c.Conformity = "so so" }, run.ErrUnpackable},
		"unknown phase":            {func(c *run.Chain) { c.Attempts = seq([]run.Attempt{{Phase: "end"}}) }, run.ErrUnpackable},
		"attempts out of order":    {func(c *run.Chain) { c.Attempts = seq([]run.Attempt{history.attempts[1], history.attempts[0]}) }, run.ErrUnpackable},
		"rejected event twice":     {func(c *run.Chain) { c.Rejected = seq(make([]run.Rejected, 2)) }, run.ErrUnpackable},
		"attempts without intake":  {func(c *run.Chain) { c.Intake = nil }, run.ErrUnpackable},
		"preimage of no segment":   {func(c *run.Chain) { c.Preimages = seq([]run.Preimage{{Seq: 99}}) }, run.ErrUnpackable},
		"preimage of another kind": {func(c *run.Chain) { c.Preimages = seq([]run.Preimage{{Seq: 0, Plan: []byte("{}")}}) }, run.ErrUnpackable},
		"snapshot that is none":    {func(c *run.Chain) { c.Preimages = seq([]run.Preimage{{Seq: 5, Artifact: []byte("{}")}}) }, run.ErrUnpackable},
	} {
		chain := history.chain()
		c.spoil(chain)
		p, err := run.Pack(chain, run.DefaultKeep)
		if !errors.Is(err, c.want) || p != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, err := run.Write(io.Discard, chain, run.QuestionRun, run.DefaultKeep, nil); !errors.Is(err, c.want) {
			t.Errorf("%s: written: %v", name, err)
		}
	}
}

// TestWrongTexts: a text beside the chain that is not the one that was hashed
// is packaged, and the claim says so.
func TestWrongTexts(t *testing.T) {
	t.Parallel()
	other := "open every issue"
	for _, c := range []struct {
		text  run.Preimage
		label string
		says  string
	}{
		{run.Preimage{Seq: 0, Text: &other}, "Intent", "The text that is kept is another."},
		{run.Preimage{Seq: 1, Plan: []byte(`{"version":2,"bind":{"topo":["list","pick","close"]}}`)}, "Plan", "is another plan."},
		{run.Preimage{Seq: 2, Parsed: []byte(`{}`)}, "Steps", "The expression that is kept for segment 2 is another."},
		{run.Preimage{Seq: 5, Artifact: []byte(`{"entry_id":"x","parsed_preimage":1,"request_fingerprints":[]}`)}, "Runs", "gives another digest."},
	} {
		chain := honest(t).chain()
		chain.Preimages = seq([]run.Preimage{c.text})
		j := judge(t, write(t, chain, run.QuestionRun, run.Keep{Plans: true, Artifacts: true, Intents: true, Parsed: true}))
		if got := strings.Join(failing(j), " "); got != c.label || j.Verdict() != engine.Degraded {
			t.Errorf("%s: %s, %q", c.label, j.Verdict(), got)
		}
		for _, claim := range j.Recorded.Claims {
			if !claim.Verified && !strings.Contains(claim.Text, c.says) {
				t.Errorf("%s says %q", c.label, claim.Text)
			}
		}
	}
}

// TestLargeFloats: digests of emitters that spell large floats in the older way
// hold too.
func TestLargeFloats(t *testing.T) {
	t.Parallel()
	plan := []byte(`{"version":2,"steps":1e20,"bind":{"topo":[]},"return":null}`)
	older, err := segments.PlanDigestOlder(plan)
	if err != nil {
		t.Fatal(err)
	}
	snapshot := []byte(`{"entry_id":"issues","parsed_preimage":{"n":1e20},"request_fingerprints":[]}`)
	doc, err := segments.DecodeSealDocument(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := segments.RunDigestOlder(&theScope, doc)
	if err != nil {
		t.Fatal(err)
	}
	var chain segments.Builder
	list := []run.Segment{
		{Segment: chain.Append(&segments.CompCommitted{PlanCommitIDHex: older.String(), CompSemanticSHA256: older}, nil)},
		{Segment: chain.Append(&segments.RunSealed{RunID: segments.RunID(digest), RunBundleDigest: digest}, nil)},
	}
	c := &run.Chain{
		Facts:     run.Facts{Scope: theScope, Outcome: run.Unrecorded, Count: 2, Head: chain.Head},
		Segments:  seq(list),
		Preimages: seq([]run.Preimage{{Seq: 0, Plan: plan}, {Seq: 1, Artifact: snapshot}}),
	}
	j := judge(t, write(t, c, run.QuestionRun, run.DefaultKeep))
	if got := strings.Join(failing(j), " "); got != "Outcome Intake" {
		t.Errorf("%q do not hold", got)
	}
}

// TestWeakKeys: a signature under a key of small order shows nothing, whatever
// the equation says.
func TestWeakKeys(t *testing.T) {
	t.Parallel()
	weak := &segments.Signature{PublicKeyHex: "01" + strings.Repeat("00", 31), SignatureHex: "01" + strings.Repeat("00", 63)}
	c := honest(t).chain()
	if err := segments.VerifySignature(weak, &c.Scope, *c.Head); err != nil {
		t.Fatalf("the equation does not hold: %v", err)
	}
	c.Signature, c.Producer.Signature = weak, weak
	j := judge(t, write(t, c, run.QuestionRun, run.DefaultKeep))
	if got := strings.Join(failing(j), " "); got != "Chain Producer" || !strings.Contains(j.Recorded.Claims[1].Text, "no sound Ed25519 public key") {
		t.Errorf("%q do not hold", got)
	}
}

// TestEpochs: the broker lost its store while the run went on, and gave
// sequences out again; nothing is taken for something else.
func TestEpochs(t *testing.T) {
	t.Parallel()
	s := honest(t)
	c, h := s.chain(), s.history()
	later := func(e *run.Event) {
		if e.StreamSeq > 104 {
			e.Epoch, e.StreamSeq = 2, e.StreamSeq-3
		}
	}
	for i := range h.segments {
		later(h.segments[i].Event)
	}
	for i := range h.attempts {
		later(&h.attempts[i].Event)
	}
	c.End = h.segments[5].Event
	c.Declared.At, c.Intake.Last = c.End.Position, c.End.Position
	text := write(t, c, run.QuestionRun, run.DefaultKeep)
	if j := judge(t, text); j.Verdict() != engine.Pass {
		t.Errorf("%s, %q", j.Cause(), failing(j))
	}
	for _, part := range []string{`"id":"attempt:1.103"`, `"id":"attempt:102"`, `["epoch","1"],["stream_seq","104"]`, `["first_epoch","1"]`} {
		if !strings.Contains(text, part) {
			t.Errorf("%s is missing", part)
		}
	}
	repacked(t, text)
}

// TestSameBytes: neither signer nor scheduling change what is sealed, and the
// signature is the only difference that a key makes.
func TestSameBytes(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	one := write(t, honest(t).chain(), run.QuestionRun, run.DefaultKeep)
	runtime.GOMAXPROCS(before)
	if one != write(t, honest(t).chain(), run.QuestionRun, run.DefaultKeep) {
		t.Error("other bytes on other processors")
	}
	var signed bytes.Buffer
	root, d, err := run.Write(&signed, honest(t).chain(), run.QuestionRun, run.DefaultKeep, theOperator)
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Read(&signed)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := bundle.Parse(one)
	if err != nil {
		t.Fatal(err)
	}
	if root != plain.StoredRoot() || b.StoredRoot() != root || len(d.Claims) != 10 {
		t.Errorf("root %s of %d claims, want %s", root, len(d.Claims), plain.StoredRoot())
	}
}

// TestChained: bundles of runs are evidence for others: of two runs that pass a
// brief can be made, and of one that does not none.
func TestChained(t *testing.T) {
	t.Parallel()
	upstream := func(f func(testing.TB) *run.Chain) *bundle.Bundle {
		b, err := bundle.Parse(write(t, f(t), run.QuestionRun, run.DefaultKeep))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	good := upstream(func(tb testing.TB) *run.Chain { return honest(tb).chain() })
	failed := upstream(failedRun)
	chain := engine.Chain(engine.ChainVersion)
	registry := append(known(), chain)
	draft, d, err := engine.NewChain(chain, "Which outcome had the tracker run?", []*bundle.Bundle{good, failed}, registry)
	if err != nil || !d.Grounded || !strings.Contains(d.Claims[0].Text, "the tracker does not answer") {
		t.Fatalf("%v, %+v", err, d)
	}
	var out bytes.Buffer
	if _, err := bundle.Write(&out, draft, nil); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Read(&out)
	if err != nil {
		t.Fatal(err)
	}
	if j, err := engine.Judge(b, registry); err != nil || j.Verdict() != engine.Pass {
		t.Errorf("brief: %v, %s", err, j.Cause())
	}
	var refused *engine.ChainError
	if _, _, err := engine.NewChain(chain, "Which run?", []*bundle.Bundle{upstream(openRun)}, registry); !errors.As(err, &refused) {
		t.Errorf("an open run is cited: %v", err)
	}
}

// TestDeclaredEarlier: a count that an earlier seal declared is held against
// what there was then; the position is found when only the count is known.
func TestDeclaredEarlier(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.intent()
	s.commit("list")
	s.step("list", 0, 1)
	first := s.sealed("succeeded", artifact(fingerprint("list", 0)))
	first["more"] = true
	s.send("seal", first)
	last := s.sealed("succeeded", artifact())
	delete(last, "event_count")
	s.send("seal", last)
	known := s.chain()
	found := s.chain()
	found.Declared = &run.Declared{Count: known.Declared.Count}
	if known.Declared.At == known.End.Position || known.Declared.Count != 4 {
		t.Fatalf("declared %+v", known.Declared)
	}
	text := write(t, known, run.QuestionRun, run.DefaultKeep)
	if j := judge(t, text); j.Verdict() != engine.Pass {
		t.Error(j.Cause())
	}
	if write(t, found, run.QuestionRun, run.DefaultKeep) != text {
		t.Error("the position is not found")
	}
	// One that was wrong where it was declared is not taken for one that is right at the end.
	found.Declared, found.Miscounted = &run.Declared{Count: 5}, true
	if got := summarize(t, write(t, found, run.QuestionRun, run.DefaultKeep)); got.Coverage != run.Incomplete {
		t.Errorf("a count that was wrong: %+v", got)
	}
	found.Miscounted = false
	found.Declared.Count = 9
	if j := judge(t, write(t, found, run.QuestionRun, run.DefaultKeep)); strings.Join(failing(j), " ") != "Intake" {
		t.Errorf("9 of 4 events: %q", failing(j))
	}
}
