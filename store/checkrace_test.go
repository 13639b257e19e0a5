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

// Nor is one whose chain is flushed while the check looks again, in whichever of its
// transactions.
func TestCheckWhileAChainIsFlushed(t *testing.T) {
	t.Parallel()
	for transaction := 1; transaction <= 3; transaction++ {
		s := openStore(t, testConfig(t))
		for i := range uint64(5) { // so that the file need not grow below the reader
			mustAppend(t, s, batchOf("other", i*100+1, 100))
		}
		s.flush.pending = 2
		give(t, s, testStream, step("c", "a", 2001), step("c", "b", 2002)) // flushed
		give(t, s, testStream, runSealed("c", "d", 2003))
		c := &checker{s: s, ctx: t.Context(), place: Checkpoint{n: s.n}}
		err := s.view(func(v *view) error {
			return v.each(tableRuns, nil, func(k, _ []byte) (bool, error) {
				c.place.unsettled = append(c.place.unsettled, slices.Clone(k))
				return true, nil
			})
		})
		if err != nil || len(c.place.unsettled) != 1 {
			t.Fatal(err, c.place.unsettled)
		}
		begun := 0
		s.viewing = func() {
			if begun++; begun == transaction {
				give(t, s, testStream, seal("c", "z", 2004))
			}
		}
		if err := c.settleRuns(); err != nil || len(c.place.report.Findings) != 0 {
			t.Errorf("transaction %d: %+v, %v", transaction, c.place.report.Findings, err)
		}
		s.viewing = nil
	}
}
