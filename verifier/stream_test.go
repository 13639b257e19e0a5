package verifier

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/chaind/chaind/segments"
)

// endless writes an honest bundle of n segments while it is read: an intent, a
// plan that is committed again and again, its steps, and as many seals.
type endless struct {
	n     uint64
	chain segments.Builder
	buf   []byte
	state int // 0 start, 1 segments, 2 end, 3 done
}

var endlessScope = segments.Scope{SchemaVersion: 1, PromptHash: "p", ExecuteSessionID: "s", CatalogCGSHash: "c", EntryID: "e"}

func (e *endless) kind() segments.Kind {
	plan := segments.Sum([]byte("plan"))
	seq := e.chain.Next
	switch {
	case seq == 0:
		return &segments.IntentBound{IntentDigest: plan}
	case seq < e.n/2:
		return &segments.CompCommitted{PlanCommitIDHex: plan.String(), CompSemanticSHA256: plan, StepTopo: []string{"open", "close"}}
	case seq < e.n/2+2:
		return &segments.StepExecuted{StepID: []string{"open", "close"}[seq-e.n/2], RequestFingerprints: []string{plan.String()}, ParsedExprDigest: plan}
	}
	run := segments.Sum([]byte{byte(seq)})
	return &segments.RunSealed{RunID: segments.RunID(run), RunBundleDigest: run}
}

func (e *endless) Read(p []byte) (int, error) {
	for len(e.buf) == 0 {
		if e.state == 3 {
			return 0, io.EOF
		}
		e.fill()
	}
	n := copy(p, e.buf)
	e.buf = append(e.buf[:0], e.buf[n:]...)
	return n, nil
}

func (e *endless) fill() {
	switch e.state {
	case 0:
		e.buf = append(segments.AppendScope(append(e.buf, `{"scope":`...), &endlessScope), `,"chain":{"segments":[`...)
		e.state = 1
	case 1:
		if e.chain.Next > 0 {
			e.buf = append(e.buf, ',')
		}
		segment := e.chain.Append(e.kind(), nil)
		e.buf = segments.AppendSegment(e.buf, &segment)
		if e.chain.Next == e.n {
			e.state = 2
		}
	case 2:
		e.buf = append(e.chain.Head.AppendHex(append(e.buf, `],"head":"`...)), `"}}`...)
		e.state = 3
	}
}

// TestConstantMemory streams a bundle of a million segments (about 350 MB).
func TestConstantMemory(t *testing.T) {
	n := uint64(1_000_000)
	if testing.Short() {
		n = 50_000
	}
	runtime.GC()
	var peak uint64
	var calls int
	var stats runtime.MemStats
	var last Progress
	r := Evidence(context.Background(), &endless{n: n}, Options{Progress: func(p Progress) {
		if p.Segments <= last.Segments || p.Bytes < last.Bytes {
			t.Errorf("progress went from %+v to %+v", last, p)
		}
		last = p
		calls++
		runtime.ReadMemStats(&stats)
		peak = max(peak, stats.HeapInuse)
	}})
	if r.ExitCode != ExitPass || r.Segments != n {
		t.Fatalf("%s, %d segments: %s", r.Verdict, r.Segments, r.Summary)
	}
	if want := int(n / progressEvery); calls != want {
		t.Errorf("%d calls of Progress, want %d", calls, want)
	}
	if r.SealCount != n-n/2-2 || len(r.Seals) != maxSeals {
		t.Errorf("%d seals, %d listed", r.SealCount, len(r.Seals))
	}
	t.Logf("peak heap %.1f MiB over %d segments, %.0f MB", float64(peak)/(1<<20), n, float64(last.Bytes)/1e6)
	if peak > 32<<20 {
		t.Errorf("peak heap %d MiB, want at most 32", peak>>20)
	}
}

// A chain in which everything is wrong still costs a bounded report.
func TestManyFindingsStayBounded(t *testing.T) {
	t.Parallel()
	b := &segments.Bundle{Envelope: segments.Envelope{Scope: endlessScope}}
	var chain segments.Builder
	for range 2000 {
		chain.Next += 2
		s := chain.Append(&segments.RunSealed{RunID: "\x1b[2J"}, nil)
		s.Prev = nil
		b.Segments = append(b.Segments, s)
	}
	r := verifyBytes(segments.AppendBundle(nil, b), Options{})
	if len(r.Errors) > 6*maxFindings || len(r.Seals) != maxSeals {
		t.Fatalf("%d errors, %d seals listed", len(r.Errors), len(r.Seals))
	}
	for i, f := range r.Errors {
		last := i+1 == len(r.Errors) || r.Errors[i+1].Code != f.Code
		if f.Code == CodeSeqGap && last && f.More != 2000-maxFindings {
			t.Errorf("%d more, want %d", f.More, 2000-maxFindings)
		}
		if !last && f.More != 0 {
			t.Errorf("finding %d: more %d", i, f.More)
		}
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{Strict, Reference} {
		ctx, cancel := context.WithCancel(context.Background())
		r := Evidence(ctx, &endless{n: 1 << 40}, Options{Mode: mode, Progress: func(Progress) { cancel() }})
		if r.ExitCode != ExitNotRun || r.Verdict != NotRun || Codes(r.Errors)[0] != CodeInterrupted {
			t.Errorf("%s: %s, exit code %d, %v", mode, r.Verdict, r.ExitCode, Codes(r.Errors))
		}
		for _, c := range r.Checks {
			if c.Name != "options" && c.Name != "read" && c.Status != StatusSkipped {
				t.Errorf("check %s: %s, want skipped", c.Name, c.Status)
			}
		}
		cancel()
	}
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	v := loadVector(t, "p01-full-run-unsigned")
	broken := io.MultiReader(iotest.OneByteReader(io.LimitReader(&endless{n: 1 << 40}, 5000)), iotest.ErrReader(errors.New("disk \x1b[31mon fire")))
	r := Evidence(context.Background(), broken, v.options(t, Strict))
	if r.ExitCode != ExitEnvelope || Codes(r.Errors)[0] != CodeUnreadable {
		t.Errorf("exit code %d, %v", r.ExitCode, Codes(r.Errors))
	}
	if got := Escape(r.Errors[0].Detail); got != r.Errors[0].Detail {
		t.Errorf("detail is not safe: %q", r.Errors[0].Detail)
	}
}

// strayChain is a bundle of n steps that no plan before them lists, with the
// rest of the chain behind them.
func strayChain(n int, rest ...segments.Kind) []byte {
	b := &segments.Bundle{Envelope: segments.Envelope{Scope: endlessScope}}
	var chain segments.Builder
	for range n {
		b.Segments = append(b.Segments, chain.Append(&segments.StepExecuted{StepID: "a", RequestFingerprints: []string{}}, nil))
	}
	for _, k := range rest {
		b.Segments = append(b.Segments, chain.Append(k, nil))
	}
	b.Head = chain.Head
	return segments.AppendBundle(nil, b)
}

// Beyond the limit a chain is refused though the reference would accept it:
// never the other way round.
func TestStraySteps(t *testing.T) {
	if testing.Short() {
		t.Skip("builds chains of 65,536 steps")
	}
	t.Parallel()
	plan := segments.Sum(nil)
	topo := slices.Repeat([]string{"a"}, maxStrays+10)
	commit := &segments.CompCommitted{PlanCommitIDHex: plan.String(), CompSemanticSHA256: plan, StepTopo: topo}
	for _, test := range []struct {
		name string
		n    int
		rest []segments.Kind
		want Failure
		code []Code
	}{
		{"few, then their plan", 100, []segments.Kind{commit}, "", []Code{CodeKindOrder}},
		{"many, then their plan", maxStrays + 2, []segments.Kind{commit}, StepTopoMismatch, []Code{CodeKindOrder, CodeTopoMismatch}},
		{"many, no plan", maxStrays + 2, nil, MissingCompCommitted, []Code{CodeCompMissing}},
	} {
		text := strayChain(test.n, test.rest...)
		if r := verifyBytes(text, Options{}); !slices.Equal(Codes(r.Errors), test.code) {
			t.Errorf("%s: %v, want %v", test.name, Codes(r.Errors), test.code)
		}
		r := verifyBytes(text, Options{Mode: Reference})
		if got := r.Reference.Serve; (got.Err == nil) != (test.want == "") || got.Err != nil && got.Err.Failure != test.want {
			t.Errorf("%s: %+v, want %s", test.name, got, test.want)
		}
	}
}

// A step that leaves the plan after the order went lean still counts.
func TestStrayStepsAfterLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a chain of 65,536 steps")
	}
	t.Parallel()
	plan := segments.Sum(nil)
	commit := &segments.CompCommitted{PlanCommitIDHex: plan.String(), CompSemanticSHA256: plan, StepTopo: slices.Repeat([]string{"a"}, maxStrays+10)}
	b := &segments.Bundle{Envelope: segments.Envelope{Scope: endlessScope}}
	var chain segments.Builder
	add := func(k segments.Kind) { b.Segments = append(b.Segments, chain.Append(k, nil)) }
	add(commit)
	for range maxStrays + 2 {
		chain.Next += 2 // each step starts a run of numbers of its own
		add(&segments.StepExecuted{StepID: "a", RequestFingerprints: []string{}})
	}
	add(commit)
	add(&segments.StepExecuted{StepID: "not planned", RequestFingerprints: []string{}})
	b.Head = chain.Head
	r := verifyBytes(segments.AppendBundle(nil, b), Options{Mode: Reference})
	if r.ExitCode != ExitSemantic || r.Reference.Serve.Err == nil || r.Reference.Serve.Err.Failure != StepTopoMismatch {
		t.Errorf("exit code %d, %+v", r.ExitCode, r.Reference.Serve)
	}
}
