package run_test

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/run"
	"github.com/chaind/chaind/segments"
)

// A run that was cancelled before its second step is sealed, read by somebody
// else, and re-derived.
func Example() {
	scope := segments.Scope{SchemaVersion: 1, PromptHash: strings.Repeat("ab", 32), ExecuteSessionID: strings.Repeat("5e", 16), EntryID: "issues"}
	var chain segments.Builder
	plan := segments.Sum([]byte("the plan"))
	var list []run.Segment
	for i, kind := range []segments.Kind{
		&segments.CompCommitted{PlanCommitIDHex: plan.String(), CompSemanticSHA256: plan, StepTopo: []string{"list", "close"}},
		&segments.StepExecuted{StepID: "list", RequestFingerprints: []string{"a", "b"}},
	} {
		number := uint64(i)
		event := &run.Event{ID: fmt.Sprint("e", i), ProducerSeq: &number, Position: run.Position{Epoch: 1, StreamSeq: number + 1}}
		list = append(list, run.Segment{Segment: chain.Append(kind, nil), Event: event})
	}
	number := uint64(2)
	end := &run.Event{ID: "e2", ProducerSeq: &number, Position: run.Position{Epoch: 1, StreamSeq: 3}}
	c := &run.Chain{
		Facts: run.Facts{
			Name: "01JRUN", Scope: scope, Outcome: run.Cancelled, Reason: "not needed", Count: 2, Head: chain.Head, End: end,
			Intake: &run.Intake{Stream: "EVIDENCE", First: list[0].Event.Position, Last: end.Position},
		},
		Segments: func(yield func(run.Segment, error) bool) { _ = yield(list[0], nil) && yield(list[1], nil) },
	}
	var file bytes.Buffer
	if _, _, err := run.Write(&file, c, run.QuestionSteps, run.DefaultKeep, nil); err != nil {
		fmt.Println(err)
		return
	}

	b, err := bundle.Read(&file)
	if err != nil {
		fmt.Println(err)
		return
	}
	j, err := engine.Judge(b, engine.Registry{run.Domain()})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(j.Taxonomy, j.Verdict())
	for _, claim := range j.Claims {
		fmt.Println(claim.Rederived, claim.Text)
	}
	// Output:
	// RE-DERIVED PASS
	// true Outcome: cancelled, as the daemon recorded. Reason given: "not needed". The event that ended it sealed no run.
	// true Steps: 1 step executed of 2 planned, in the committed order. Not executed: "close" (no attempt recorded).
	// true Attempts: none was recorded.
}
