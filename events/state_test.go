package events

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chaind/chaind/segments"
	"pgregory.net/rapid"
)

func roundTrip(t testing.TB, s *State) *State {
	t.Helper()
	b, _ := s.AppendBinary(nil)
	again, err := DecodeState(b)
	if err != nil {
		t.Fatal(err)
	}
	if c, _ := again.AppendBinary(nil); !bytes.Equal(b, c) {
		t.Fatalf("written anew it differs:\n%x\n%x", b, c)
	}
	return again
}

// TestEveryFieldIsEncoded sets each exported field of a state, at any depth, and
// looks for a change in the bytes.
func TestEveryFieldIsEncoded(t *testing.T) {
	t.Parallel()
	base := fullState()
	was, _ := base.AppendBinary(nil)
	n := 0
	var visit func(v reflect.Value, path string)
	visit = func(v reflect.Value, path string) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				if f := v.Type().Field(i); f.IsExported() {
					visit(v.Field(i), path+"."+f.Name)
				}
			}
			return
		case reflect.Pointer:
			visit(v.Elem(), path)
			return
		case reflect.Slice:
			visit(v.Index(0), path+"[0]")
			return
		case reflect.Array:
			v = v.Index(0)
		}
		if path == ".UntoldSteps.StepID" {
			return
		}
		old := reflect.ValueOf(v.Interface())
		change(v)
		if now, _ := base.AppendBinary(nil); bytes.Equal(now, was) {
			t.Errorf("%s is not encoded", path)
		}
		v.Set(old)
		n++
	}
	visit(reflect.ValueOf(base).Elem(), "")
	if n < 50 {
		t.Errorf("only %d fields were visited", n)
	}
	roundTrip(t, base)
}

func change(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "!")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	default:
		v.SetUint(v.Uint() + 1)
	}
}

func fullState() *State {
	digest := segments.Digest{1, 2, 3}
	return &State{
		Key: testKey,
		Scope: &segments.Scope{SchemaVersion: 1, TenantID: "acme", LogicalSessionID: pointer("l"), PromptHash: "p",
			ExecuteSessionID: "s", CatalogCGSHash: "c", DomainRevision: 3, EntryID: "e"},
		Outcome: Failed, Reason: "why", Segments: 9, Head: &digest,
		Steps: []StepTally{{"a", 1, 2, 3}, {"b", 0, 1, 0}}, UntoldSteps: StepTally{Begun: 4, Ended: 5, Failed: 6},
		RunIDs: []string{"pr1"}, UntoldRuns: 2,
		Anchors: segments.Anchors{PlanCommitRef: pointer("pc1"), TraceID: pointer("t"), PlanCallIndex: pointer(uint64(7))},
		Seals:   1, Duplicates: 2, Late: 3, Rejected: 4,
		Order: Order{Rank: 2, Planned: true, Intended: true, First: Plan{Rest: []string{"c", "d"}}, Last: Plan{Rest: []string{"e"}}, Executed: []uint32{0, 1}},
		Facts: Facts{IDs: 12, Numbers: SeqSet{Runs: []Interval{{0, 3}, {5, 9}}}, Declared: pointer(uint64(13)), Miscount: true,
			DeclaredSegments: 7, Unnumbered: true, End: Closing{Counted: true, Headed: true}},

		ProducerHead: HeadAgrees, ProducerSignature: SignatureInvalid, GivenHead: pointer(segments.Digest{4}),
		GivenSignature: &segments.Signature{PublicKeyHex: "00", SignatureHex: "11"}, GivenSegments: 8,
		FirstStreamSeq: 1, LastStreamSeq: 400, EndStreamSeq: 399, LastAtMS: 1_780_000_000_000,
		LastEventID: "e9", LastSeq: pointer(uint64(9)),
	}
}

// TestGoldenState pins the layout; -update writes it anew, which a change of
// layout must not do without a new version.
func TestGoldenState(t *testing.T) {
	t.Parallel()
	const name = "testdata/state-v2.hex"
	b, _ := fullState().AppendBinary(nil)
	if *update {
		if err := os.WriteFile(name, []byte(hex.EncodeToString(b)+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(b); got != strings.TrimSpace(string(want)) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestEarlierState: a state of version 1 is read, and of what it does not tell
// no more is taken for granted than the rest of it shows.
func TestEarlierState(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/state-v1.hex")
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || b[0] != 1 {
		t.Fatal(err, b[0])
	}
	got, err := DecodeState(b)
	if err != nil {
		t.Fatal(err)
	}
	want := fullState()
	want.Order.Intended, want.Facts.DeclaredSegments, want.Facts.Unnumbered, want.Facts.End = false, 0, true, Closing{Counted: true} // of the only seal
	x, _ := got.AppendBinary(nil)
	if y, _ := want.AppendBinary(nil); !bytes.Equal(x, y) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for n := range b {
		if _, err := DecodeState(b[:n]); !errors.Is(err, ErrBadState) {
			t.Fatalf("prefix of %d bytes: %v", n, err)
		}
	}
}

// TestInferred: what a state of version 1 says of its coverage is what it said
// then, unless nothing that it holds shows that the end is covered.
func TestInferred(t *testing.T) {
	t.Parallel()
	head := &segments.Digest{1}
	numbers := func(to uint64) SeqSet { return SeqSet{Runs: []Interval{{0, to}}} }
	for name, c := range map[string]struct {
		state State
		want  Coverage
	}{
		"all numbered":           {State{Facts: Facts{IDs: 3, Numbers: numbers(2)}}, Complete},
		"fewer numbers than ids": {State{Facts: Facts{IDs: 3, Numbers: numbers(1)}}, Unspecified},
		"the count of all":       {State{Facts: Facts{IDs: 3, Declared: pointer(uint64(3))}}, Complete},
		"a count midway":         {State{Facts: Facts{IDs: 3, Declared: pointer(uint64(2))}}, Unspecified},
		"another count":          {State{Facts: Facts{IDs: 3, Declared: pointer(uint64(3)), Miscount: true}}, Incomplete},
		// An end that repeats the id of a rejected event is no new id, and so hides that the count came midway.
		"a count, and a rejection":    {State{Seals: 2, Rejected: 1, Facts: Facts{IDs: 3, Declared: pointer(uint64(3))}}, Unspecified},
		"a count at the only seal":    {State{Seals: 1, Rejected: 1, Facts: Facts{IDs: 3, Declared: pointer(uint64(3))}}, Complete},
		"a rejected one, numbered":    {State{Segments: 1, Seals: 1, Rejected: 1, Facts: Facts{IDs: 3, Numbers: numbers(2)}}, Complete},
		"a rejected one took an id":   {State{Segments: 2, Seals: 1, Rejected: 1, Facts: Facts{IDs: 3, Numbers: numbers(2)}}, Unspecified},
		"a head, and numbers midway":  {State{Segments: 4, Seals: 1, GivenHead: head, GivenSegments: 4, ProducerHead: HeadAgrees, Facts: Facts{IDs: 4, Numbers: numbers(2)}}, Unspecified},
		"a head, and attempts behind": {State{Segments: 4, Seals: 1, GivenHead: head, GivenSegments: 4, ProducerHead: HeadAgrees, Steps: []StepTally{{Begun: 1}}}, Unspecified},
		"a head at the only seal": {State{Segments: 4, Seals: 1, Order: Order{Rank: rankSeal},
			GivenHead: head, GivenSegments: 4, ProducerHead: HeadAgrees}, Complete},
		"a head at one of two seals": {State{Segments: 4, Seals: 2, Order: Order{Rank: rankSeal},
			GivenHead: head, GivenSegments: 4, ProducerHead: HeadAgrees}, Unspecified},
		"a head midway": {State{Segments: 4, Seals: 2, Order: Order{Rank: rankSeal},
			GivenHead: head, GivenSegments: 3, ProducerHead: HeadAgrees}, Unspecified},
		"nothing": {State{Facts: Facts{IDs: 3}}, Unspecified},
	} {
		s := c.state
		s.Outcome = Succeeded
		s.infer()
		if got, why := s.Coverage(); got != c.want {
			t.Errorf("%s: %s %v, want %s", name, got, why, c.want)
		}
	}
}

// TestInferredCount: version 1 may know of a count that was wrong at its seal and
// is right by accident in the end. It is not one that came with the end.
func TestInferredCount(t *testing.T) {
	t.Parallel()
	s := State{Outcome: Succeeded, Facts: Facts{IDs: 3, Declared: pointer(uint64(3)), Miscount: true}}
	s.infer()
	if s.Facts.End.Counted {
		t.Error("a count that differed at its seal is taken for one that came with the end")
	}
}

// TestInferredUnnumbered: rejected events that repeat an id with numbers of their
// own may make as many numbers as ids, though other events have none.
func TestInferredUnnumbered(t *testing.T) {
	t.Parallel()
	s := said(t, [][2]string{{"intent", `,"producer_seq":0`}, {"step", ""}, {"bare", ""}}...)
	for n := uint64(1); n < 3; n++ { // the intent's id twice again, with other bytes
		s.Facts.Numbers.Add(n)
		s.Rejected++
	}
	told, _ := s.Coverage()
	s.infer()
	if inferred, why := s.Coverage(); inferred == Complete || told == Complete {
		t.Errorf("%s, and as version 1 knows it %s %v", told, inferred, why)
	}
}

// Damaged states are refused or read as something else, never with a panic,
// and a refused one leaves the receiver alone.
func TestDamagedState(t *testing.T) {
	t.Parallel()
	b, _ := fullState().AppendBinary(nil)
	s := NewState(testKey)
	for n := range b {
		if err := s.UnmarshalBinary(b[:n]); !errors.Is(err, ErrBadState) {
			t.Fatalf("prefix of %d bytes: %v", n, err)
		}
	}
	if err := s.UnmarshalBinary(append(b[:len(b):len(b)], 0)); !errors.Is(err, ErrBadState) {
		t.Errorf("one byte more: %v", err)
	}
	if s.Key != testKey || s.Outcome != Open || s.Rejected != 0 {
		t.Error("a refused state changed the receiver")
	}
	for i := range b {
		for bit := range 8 {
			damaged := bytes.Clone(b)
			damaged[i] ^= 1 << bit
			if got, err := DecodeState(damaged); err == nil {
				if c, _ := got.AppendBinary(nil); !bytes.Equal(c, damaged) {
					t.Fatalf("bit %d of byte %d is lost", bit, i)
				}
			}
		}
	}
}

// history draws events of one chain, of every kind and fault that matters to
// the state.
func history(t *rapid.T) []Message {
	steps := []string{"a", "b", "c", "d"}
	n := rapid.IntRange(1, 40).Draw(t, "events")
	list := make([]Message, 0, n)
	for i := range n {
		id := fmt.Sprintf("e%d", rapid.IntRange(0, n+n/2).Draw(t, "id"))
		number := rapid.SampledFrom([]string{"", fmt.Sprintf(`,"producer_seq":%d`, i), `,"producer_seq":9`}).Draw(t, "number")
		scope := rapid.SampledFrom([]string{"", "", `,"scope":` + testScope, `,"scope":` + strings.Replace(testScope, "cafe", "beef", 1)}).Draw(t, "scope")
		step := rapid.SampledFrom(steps).Draw(t, "step")
		zero := strings.Repeat("0", 64)
		head := fmt.Sprintf(`{"v":1,"event_id":"%s"%s%s`, id, number, scope)
		var m Message
		switch rapid.IntRange(0, 9).Draw(t, "what") {
		case 0:
			m = message(VerbIntent, head+`,"kind":{"kind":"intent_bound","intent_len":2},"preimage":{"text":"hi"}}`)
		case 1, 2:
			topo := strings.Join(rapid.Permutation(steps).Draw(t, "topo"), `","`)
			m = message(VerbCommit, head+`,"kind":{"kind":"comp_committed","plan_commit_id_hex":"`+zero+`","comp_semantic_sha256":"`+zero+`","step_topo":["`+topo+`"]}}`)
		case 3, 4, 5:
			m = message(VerbStep, head+`,"kind":{"kind":"step_executed","step_id":"`+step+`","step_index":0,"request_fingerprints":[],"source_line":"","parsed_expr_digest":"`+zero+`"}}`)
		case 6:
			m = message(VerbStep, head+`,"phase":"begin","kind":{"kind":"step_executed","step_id":"`+step+`","step_index":0}}`)
		case 7:
			m = message(VerbSeal, head+`,"more":true,"kind":{"kind":"run_sealed","run_id":"pr`+zero+`","run_bundle_digest":"`+zero+`"}}`)
		case 8:
			m = message(VerbSeal, head+`,"outcome":"cancelled","event_count":7}`)
		case 9:
			m = message(VerbStep, head+`,"what":1}`)
		}
		m.StreamSeq = uint64(i + 1)
		list = append(list, m)
	}
	return list
}

// TestBatchesDoNotCount applies a history event by event, and again with the
// state written and read at random places and duplicates delivered in
// between: head, counts and verdicts are the same.
func TestBatchesDoNotCount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		plain, broken := newMemory(DefaultLimits), newMemory(DefaultLimits)
		var repeats uint64
		for _, m := range history(t) {
			e, want := plain.deliver(m)
			_, got := broken.deliver(m)
			if got.Verdict != want.Verdict {
				t.Fatalf("%s: %s, want %s", m.Payload, got.Verdict, want.Verdict)
			}
			s := broken.states[e.Key]
			if rapid.Bool().Draw(t, "again") && got.Verdict != Rejected {
				if _, effect := broken.deliver(m); effect.Verdict != Duplicate {
					t.Fatalf("the repeat is %s", effect.Verdict)
				}
				repeats++
			}
			if rapid.Bool().Draw(t, "batch ends") {
				b, _ := s.AppendBinary(nil)
				again, err := DecodeState(b)
				if err != nil {
					t.Fatal(err)
				}
				broken.states[e.Key] = again
			}
		}
		a, b := plain.states[testKey], broken.states[testKey]
		b.Duplicates -= repeats
		x, _ := a.AppendBinary(nil)
		y, _ := b.AppendBinary(nil)
		if !bytes.Equal(x, y) {
			t.Fatalf("the states differ:\n%+v\n%+v", a, b)
		}
	})
}

// TestOrderAgrees holds the compact order of a state against the one that
// strict verification uses on the whole chain.
func TestOrderAgrees(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		store, whole := newMemory(DefaultLimits), &segments.Order{}
		for _, m := range history(t) {
			if _, effect := store.deliver(m); effect.Segment != nil {
				whole.Add(effect.Segment)
			}
		}
		s := store.states[testKey]
		if got, want := s.Order.Codes(), codesOf(whole); !slices.Equal(got, want) {
			t.Fatalf("codes %v, want %v", got, want)
		}
	})
}

func codesOf(o *segments.Order) []string {
	codes := []string{}
	if o.KindOrder != nil {
		codes = append(codes, CodeKindOrder)
	}
	if o.Comps == 0 && o.Intents+o.Steps+o.Seals > 0 {
		codes = append(codes, CodeCompMissing)
	}
	if o.Comps > 0 && (o.First.Broken != nil || o.AgainstLast().Broken != nil) {
		codes = append(codes, CodeTopoMismatch)
	}
	return codes
}

// TestHeadIsTheChain walks the segments of drawn histories as a verifier does.
func TestHeadIsTheChain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		store, walk := newMemory(DefaultLimits), &segments.Walk{}
		for _, m := range history(t) {
			_, effect := store.deliver(m)
			if effect.Segment == nil {
				continue
			}
			if err := walk.Step(effect.Segment); err != nil {
				t.Fatal(err)
			}
			if *walk.Head != *effect.Head || effect.Segment.Seq != walk.Count-1 {
				t.Fatalf("segment %d: head %v, want %v", effect.Segment.Seq, effect.Head, walk.Head)
			}
		}
		if s := store.states[testKey]; s.Segments != walk.Count {
			t.Fatalf("%d segments, want %d", s.Segments, walk.Count)
		}
	})
}

func TestSeqSet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var set SeqSet
		has := map[uint64]bool{}
		for _, n := range rapid.SliceOf(rapid.Uint64Range(0, 30)).Draw(t, "numbers") {
			set.Add(n)
			has[n] = true
			members, last := 0, -2
			for _, run := range set.Runs {
				if run.From > run.To || int(run.From) <= last+1 {
					t.Fatalf("runs touch or overlap: %v", set.Runs)
				}
				last = int(run.To)
				members += int(run.To - run.From + 1)
			}
			if members != len(has) {
				t.Fatalf("%v after %d numbers", set.Runs, len(has))
			}
		}
		hole := false
		for n := range uint64(len(has)) {
			hole = hole || !has[n]
		}
		if set.Hole() != hole || set.Empty() != (len(has) == 0) {
			t.Fatalf("hole %v of %v", set.Hole(), set.Runs)
		}
	})
}

// TestStateIsBounded sends a chain more step ids, run ids and gaps than are
// kept: the sums still hold.
func TestStateIsBounded(t *testing.T) {
	t.Parallel()
	s := NewState(testKey)
	const n = MaxTrackedSteps + 500
	long := strings.Repeat("x", 30)
	for i := range uint64(n) {
		e := &Event{Key: testKey, Attributed: true, Verb: VerbStep, ID: fmt.Sprint(i), Phase: PhaseEnd, ProducerSeq: pointer(2 * i),
			Kind: &segments.StepExecuted{StepID: fmt.Sprint(long, i)}}
		if effect := s.Apply(e, Known{}); effect.Verdict != Appended {
			t.Fatal(effect.Fault)
		}
		seal := &Event{Key: testKey, Attributed: true, Verb: VerbSeal, ID: fmt.Sprint("s", i), More: true,
			Kind: &segments.RunSealed{RunID: fmt.Sprint("pr", long, i)}}
		s.Apply(seal, Known{})
	}
	var ended uint64
	for _, tally := range s.Steps {
		ended += tally.Ended
	}
	if len(s.Steps) > MaxTrackedSteps || ended+s.UntoldSteps.Ended != n {
		t.Errorf("%d tallies, %d + %d ended, want %d", len(s.Steps), ended, s.UntoldSteps.Ended, n)
	}
	if uint64(len(s.RunIDs))+s.UntoldRuns != n {
		t.Errorf("%d + %d run ids, want %d", len(s.RunIDs), s.UntoldRuns, n)
	}
	if len(s.Facts.Numbers.Runs) > MaxSeqIntervals || !s.Facts.Numbers.Hole() {
		t.Errorf("%d intervals", len(s.Facts.Numbers.Runs))
	}
	b, _ := s.AppendBinary(nil)
	if limit := 2*(MaxTrackedBytes+8*MaxTrackedSteps) + 16*MaxSeqIntervals + 4*MaxTrackedOrder; len(b) > limit {
		t.Errorf("the state takes %d bytes, limit %d", len(b), limit)
	}
	roundTrip(t, s)
}

// C20: not attempted, failed, and begun with no end are told apart.
func TestC20OpenIntents(t *testing.T) {
	t.Parallel()
	store := newMemory(DefaultLimits)
	for _, m := range honest(t)[:3] {
		store.deliver(m)
	}
	s := store.states[testKey]
	if got, want := s.Steps, []StepTally{{StepID: "a", Begun: 1}}; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	store.deliver(honest(t)[3])
	if got, want := s.Steps, []StepTally{{StepID: "a", Begun: 1, Failed: 1}}; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// N22: what comes before the thing it belongs to is appended, and the verdict
// says so.
func TestOutOfOrder(t *testing.T) {
	t.Parallel()
	store, events := newMemory(DefaultLimits), honest(t)
	for _, i := range []int{4, 1, 0} { // step, its commit, their intent
		if _, effect := store.deliver(events[i]); effect.Verdict != Appended {
			t.Fatalf("event %d: %+v", i, effect.Fault)
		}
	}
	if c, codes := store.states[testKey].Conformity(); c != Nonconforming || !slices.Equal(codes, []string{CodeKindOrder}) {
		t.Errorf("%s %v", c, codes)
	}
}

// A chain without a scope takes what the subject says, and does not conform.
func TestUnscopedChain(t *testing.T) {
	t.Parallel()
	store := newMemory(DefaultLimits)
	for _, i := range []int{1, 4, 6} {
		store.deliver(honest(t)[i])
	}
	s := store.states[testKey]
	if c, codes := s.Conformity(); c != Nonconforming || !slices.Equal(codes, []string{CodeScopeMissing}) {
		t.Errorf("%s %v", c, codes)
	}
	scope := s.BoundScope()
	if scope.TenantID != "acme" || scope.PromptHash != testKey.PromptHash || scope.SchemaVersion != 1 {
		t.Errorf("%+v", scope)
	}
	if _, effect := store.deliver(message(VerbIntent, `{"v":1,"event_id":"x","kind":{"kind":"intent_bound","intent_len":1},"preimage":{"text":"x"}}`)); effect.Fault == nil || effect.Fault.Class != DigestMismatch {
		t.Errorf("an intent that nothing can be computed from: %+v", effect.Fault)
	}
}
