package store

import (
	"slices"
	"testing"

	"github.com/chaind/chaind/events"
)

// A run that is in the file, while its chain in memory is not told of yet, is no
// finding: the check looks again when the commit is over. One that leads nowhere is.
func TestCheckBetweenCommitAndPublish(t *testing.T) {
	t.Parallel()
	v := loadVector(t, "small")
	s := openStore(t, testConfig(t))
	checked := make(chan []Finding, 1)
	held := 0
	for i := range v.Messages {
		b := v.batch(i, i+1)
		if len(b.Events) != 1 || b.Events[0].Verb != events.VerbSeal {
			mustAppend(t, s, b)
			continue
		}
		s.testingOnly.afterCommit = func() error {
			// The check is between its beginning and the look at the runs.
			n := s.n
			c := &checker{s: s, ctx: t.Context(), kept: new(Checkpoint), place: Checkpoint{n: n}}
			if err := c.sweep(tableRuns, "indexes", 0, c.run); err != nil {
				t.Error(err)
			}
			held += len(c.place.unsettled)
			go func() {
				if err := c.settleRuns(); err != nil {
					t.Error(err)
				}
				checked <- c.place.report.Findings
			}()
			return nil
		}
		mustAppend(t, s, b)
		s.testingOnly = hooks{}
		if findings := <-checked; len(findings) != 0 {
			t.Errorf("message %d: %+v", i, findings)
		}
	}
	if held == 0 {
		t.Error("no run was met between commit and publishing")
	}
	c := &checker{s: s, ctx: t.Context(), kept: new(Checkpoint), place: Checkpoint{n: s.n}}
	c.place.unsettled = append(c.place.unsettled, runKey("pr", 1))
	if err := c.settleRuns(); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(c.place.report.Findings, func(f Finding) bool { return f.Bucket == tableRuns.name }) {
		t.Errorf("a run that leads nowhere: %+v", c.place.report.Findings)
	}
}
