package run_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/run"
	"github.com/chaind/chaind/segments"
)

// longRun is a conforming run of n segments as a sealer has it: an intent, a
// commit, steps with two requests each, and a run seal.
func longRun(n int) *run.Chain {
	var chain segments.Builder
	list := make([]run.Segment, 0, n)
	add := func(k segments.Kind) {
		i := uint64(len(list))
		e := &run.Event{ID: fmt.Sprintf("01JEVENT%018d", i), ProducerSeq: &i, Position: run.Position{Epoch: 1, StreamSeq: i + 1}}
		list = append(list, run.Segment{Segment: chain.Append(k, pointer(1_780_000_000_000+i)), Event: e})
	}
	topo := make([]string, n-3)
	for i := range topo {
		topo[i] = fmt.Sprintf("step%d", i)
	}
	add(&segments.IntentBound{IntentLen: 3})
	plan := segments.Sum([]byte("plan"))
	add(&segments.CompCommitted{PlanCommitIDHex: plan.String(), CompSemanticSHA256: plan, StepTopo: topo})
	for i, id := range topo {
		add(&segments.StepExecuted{StepID: id, StepIndex: uint32(i), SourceLine: id + " = issues.list(state: open)",
			RequestFingerprints: []string{fingerprint(id, 0), fingerprint(id, 1)}, ParsedExprDigest: segments.Sum([]byte(id))})
	}
	digest := segments.Sum([]byte("run"))
	add(&segments.RunSealed{RunID: segments.RunID(digest), RunBundleDigest: digest})
	last := list[n-1].Event
	return &run.Chain{
		Facts: run.Facts{
			Name: "01JRUN", Scope: theScope, Outcome: run.Succeeded, Conformity: run.Conforming, Count: uint64(n), Head: chain.Head, End: last,
			Declared: &run.Declared{Count: uint64(n), At: last.Position},
			Intake:   &run.Intake{Stream: "EVIDENCE", CreatedNS: 1, First: run.Position{Epoch: 1, StreamSeq: 1}, Last: last.Position},
		},
		Segments: seq(list),
	}
}

var sizes = []int{100, 1_000, 10_000, 100_000}

// BenchmarkSealRun packs, answers and writes a run. limit-ratio is the time of
// SHA-256 over the bytes, divided by that of sealing.
func BenchmarkSealRun(b *testing.B) {
	for _, n := range sizes {
		c := longRun(n)
		var out bytes.Buffer
		if _, _, err := run.Write(&out, c, run.QuestionRun, run.DefaultKeep, theOperator); err != nil {
			b.Fatal(err)
		}
		measured(b, n, out.Bytes(), func() {
			if _, _, err := run.Write(io.Discard, c, run.QuestionRun, run.DefaultKeep, theOperator); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkVerifyBundle reads a run bundle, checks its envelope and re-derives
// it. The goal for limit-ratio is 0.05.
func BenchmarkVerifyBundle(b *testing.B) {
	for _, n := range sizes {
		text := write(b, longRun(n), run.QuestionRun, run.DefaultKeep)
		measured(b, n, []byte(text), func() {
			parsed, err := bundle.Read(strings.NewReader(text))
			if err != nil {
				b.Fatal(err)
			}
			if j, err := engine.Judge(parsed, known()); err != nil || j.Verdict() != engine.Pass {
				b.Fatalf("%v, %s", err, j.Cause())
			}
		})
	}
}

func measured(b *testing.B, n int, text []byte, work func()) {
	b.Run(fmt.Sprintf("segments=%d", n), func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(text)))
		var spent, limit time.Duration
		for b.Loop() {
			start := time.Now()
			work()
			middle := time.Now()
			sha256.Sum256(text)
			spent, limit = spent+middle.Sub(start), limit+time.Since(middle)
		}
		b.ReportMetric(float64(limit)/float64(spent), "limit-ratio")
		b.ReportMetric(float64(n)*float64(b.N)/spent.Seconds(), "segments/s")
		b.ReportMetric(float64(len(text))/float64(n), "bytes/segment")
	})
}
