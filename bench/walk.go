package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	runs "github.com/chaind/chaind/engine/run"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/verifier"
)

// longChain is a conforming chain of n segments, but for its end: an intent, a
// plan, and steps.
func longChain(n int) []segments.Segment {
	var chain segments.Builder
	list := make([]segments.Segment, 0, n)
	add := func(k segments.Kind) {
		ms := uint64(firstMS + len(list))
		list = append(list, chain.Append(k, &ms))
	}
	const width = 1000 // steps of the plan; more of them are executed
	topo := make([]string, min(width, n))
	for i := range topo {
		topo[i] = "step" + strconv.Itoa(i)
	}
	plan := segments.Sum([]byte("plan"))
	add(&segments.IntentBound{IntentLen: 3})
	add(&segments.CompCommitted{PlanCommitIDHex: plan.String(), CompSemanticSHA256: plan, StepTopo: topo})
	for i := len(list); i < n; i++ {
		id := topo[i%len(topo)]
		add(&segments.StepExecuted{StepID: id, StepIndex: uint32(i), RequestFingerprints: []string{strings.Repeat("ab", 32), strings.Repeat("cd", 32)},
			SourceLine: id + " = issues.list(state: open)", ParsedExprDigest: segments.Sum([]byte(id))})
	}
	return list
}

// walkOver checks each link of a chain in memory.
func walkOver(list []segments.Segment) error {
	var walk segments.Walk
	for i := range list {
		if err := walk.Step(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

func openWalk(_ context.Context, l *lab) (*contest, error) {
	list := longChain(l.walk)
	preimages := make([][]byte, len(list))
	for i := range list {
		preimages[i] = segments.AppendPreimage(nil, list[i].Seq, list[i].Prev, list[i].Kind)
	}
	return &contest{
		limit: func(int) (sample, error) {
			return timed(len(list), func() error {
				for _, p := range preimages {
					sha256.Sum256(p)
				}
				return nil
			})
		},
		ours:  func(int) (sample, error) { return timed(len(list), func() error { return walkOver(list) }) },
		close: func() error { return nil },
	}, nil
}

// openWalkTwo verifies an evidence file, as chaind verify does, on one core and
// on two.
func openWalkTwo(ctx context.Context, l *lab) (*contest, error) {
	file := filepath.Join(l.dir, "long.evidence.json")
	if err := writeEvidence(file, l.walk); err != nil {
		return nil, err
	}
	on := func(cores int) func(int) (sample, error) {
		return func(int) (sample, error) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
			return timed(l.walk, func() error { return verifyFile(ctx, file, l.walk) })
		}
	}
	return &contest{limit: on(1), ours: on(2), close: func() error { return nil }}, nil
}

func verifyFile(ctx context.Context, name string, n int) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	// As below: the chain holds, and is no conforming run.
	r := verifier.File(ctx, f, verifier.Options{})
	if r.Segments != uint64(n) || r.ComputedHead == nil || *r.ComputedHead != *r.DeclaredHead {
		return errors.New("the file does not verify: " + r.Summary)
	}
	return nil
}

// openVerifyMemory runs chaind verify over an evidence file and takes its peak.
func openVerifyMemory(ctx context.Context, l *lab) (*contest, error) {
	program, file := filepath.Join(l.dir, "chaind"), filepath.Join(l.dir, "long.evidence.json")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/chaind/chaind/cmd/chaind").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build chaind: %w: %s", err, out)
	}
	if err := writeEvidence(file, l.walk); err != nil {
		return nil, err
	}
	return &contest{
		limit: func(int) (sample, error) { return sample{values: []float64{32}}, nil },
		ours: func(int) (sample, error) {
			// A plan of 1,000 steps that are run again and again is no
			// conforming run: it is read to its end and judged (exit 2).
			code, mib, err := peakOf(ctx, program, "verify", file)
			if err == nil && code != 0 && code != 2 {
				err = fmt.Errorf("chaind verify ended with %d", code)
			}
			return sample{values: []float64{mib}}, err
		},
		close: func() error { return nil },
	}, nil
}

func writeEvidence(name string, n int) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	list := longChain(n)
	out := segments.NewBundleWriter(w, benchScope())
	for i := range list {
		if err := out.Write(&list[i]); err != nil {
			return err
		}
	}
	head := list[n-1].Digest()
	return errors.Join(out.Close(&head, segments.Anchors{}, nil), w.Flush(), f.Close())
}

// runBundle writes a run of n segments as a trust bundle.
func runBundle(n int) ([]byte, error) {
	list := longChain(n)
	topo := list[1].Kind.(*segments.CompCommitted)
	topo.StepTopo = nil
	for i := 2; i < n; i++ {
		step := list[i].Kind.(*segments.StepExecuted)
		step.StepID = "step" + strconv.Itoa(i)
		topo.StepTopo = append(topo.StepTopo, step.StepID)
	}
	var chain segments.Builder
	given := make([]runs.Segment, n)
	for i := range list {
		seq := uint64(i)
		given[i] = runs.Segment{Segment: chain.Append(list[i].Kind, list[i].EmittedAtMS),
			Event: &runs.Event{ID: eventID(i), ProducerSeq: &seq, Position: runs.Position{Epoch: 1, StreamSeq: seq + 1}}}
	}
	last := given[n-1].Event
	c := &runs.Chain{
		Facts: runs.Facts{Name: "bench", Scope: *benchScope(), Outcome: runs.Succeeded, Conformity: runs.Conforming, Count: uint64(n), Head: chain.Head,
			End: last, Declared: &runs.Declared{Count: uint64(n), At: last.Position},
			Intake: &runs.Intake{Stream: "EVIDENCE", CreatedNS: 1, First: runs.Position{Epoch: 1, StreamSeq: 1}, Last: last.Position}},
		Segments: func(yield func(runs.Segment, error) bool) {
			for _, s := range given {
				if !yield(s, nil) {
					return
				}
			}
		},
	}
	var out bytes.Buffer
	_, _, err := runs.Write(&out, c, runs.QuestionRun, runs.DefaultKeep, nil)
	return out.Bytes(), err
}

func verifyOnce(ctx context.Context, text []byte) error {
	r := verifier.TrustBundle(ctx, io.Reader(bytes.NewReader(text)), verifier.Options{})
	if r.ExitCode != verifier.ExitPass && r.ExitCode != verifier.ExitDegraded {
		return errors.New("the bundle does not verify: " + r.Summary)
	}
	return nil
}

const bundleSegments = 20_000

func openVerify(ctx context.Context, _ *lab) (*contest, error) {
	text, err := runBundle(bundleSegments)
	if err != nil {
		return nil, err
	}
	return &contest{
		limit: func(int) (sample, error) {
			return timed(len(text), func() error { sha256.Sum256(text); return nil })
		},
		ours:  func(int) (sample, error) { return timed(len(text), func() error { return verifyOnce(ctx, text) }) },
		close: func() error { return nil },
	}, nil
}

// openVerifyLinear holds a bundle against one of a tenth of the segments, by
// the byte.
func openVerifyLinear(ctx context.Context, _ *lab) (*contest, error) {
	small, err := runBundle(bundleSegments / 10)
	if err != nil {
		return nil, err
	}
	large, err := runBundle(bundleSegments)
	if err != nil {
		return nil, err
	}
	return &contest{
		limit: func(int) (sample, error) {
			return timed(10*len(small), func() error {
				for range 10 {
					if err := verifyOnce(ctx, small); err != nil {
						return err
					}
				}
				return nil
			})
		},
		ours:  func(int) (sample, error) { return timed(len(large), func() error { return verifyOnce(ctx, large) }) },
		close: func() error { return nil },
	}, nil
}
