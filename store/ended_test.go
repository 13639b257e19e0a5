package store

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
	"github.com/google/go-cmp/cmp"
)

// endedKeys collects what a query selects.
func endedKeys(t *testing.T, s *Store, q EndedQuery) (keys []events.Key) {
	t.Helper()
	if err := s.Ended(q, func(c *EndedChain) bool { keys = append(keys, c.Key); return true }); err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestEndedSelects holds the look-up against the list of all chains.
func TestEndedSelects(t *testing.T) {
	t.Parallel()
	v := loadVector(t, "large")
	s := openStore(t, testConfig(t))
	for i := 0; i < len(v.Messages); i += 500 {
		mustAppend(t, s, v.batch(i, i+500))
	}
	all := pages(t, s, ChainQuery{})
	questions, answers := 0, 0
	for _, asked := range all {
		if asked.Head == nil {
			continue
		}
		for _, runID := range append([]string{""}, asked.RunIDs...) {
			for _, head := range []segments.Digest{*asked.Head, {}} {
				var want []events.Key
				for _, c := range all {
					there := c.Key.Tenant == asked.Key.Tenant && c.Key.PromptHash == asked.Key.PromptHash && c.Key.Session == asked.Key.Session
					if there && c.Outcome != events.Open && c.Head != nil && (*c.Head == head || runID != "" && slices.Contains(c.RunIDs, runID)) {
						want = append(want, c.Key)
					}
				}
				got := endedKeys(t, s, EndedQuery{asked.Key.Tenant, asked.Key.PromptHash, asked.Key.Session, head, runID})
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("head %s, run %q (-want +got):\n%s", head, runID, diff)
				}
				questions++
				answers += len(got)
			}
		}
	}
	if answers == 0 || answers >= questions*2 {
		t.Errorf("%d questions gave %d chains", questions, answers)
	}
}

// TestEndedSaysWhatIsOnRecord follows one chain to its seal, beside one whose
// seal cannot be read.
func TestEndedSaysWhatIsOnRecord(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	s := openStore(t, cfg)
	give(t, s, testStream, step("c", "a", 1), step("d", "a", 2), step("open", "a", 3))
	chain, err := s.Chain(testKey("c"))
	if err != nil {
		t.Fatal(err)
	}
	q := EndedQuery{"acme", testPrompt, testSession, *chain.State.Head, ""}
	if got := endedKeys(t, s, q); len(got) != 0 {
		t.Errorf("open chains: %v", got)
	}
	give(t, s, testStream, seal("c", "z", 4), seal("d", "z", 5))
	jobs, err := s.SealJobs(0, 0)
	if err != nil || len(jobs) != 2 {
		t.Fatalf("%d jobs, %v", len(jobs), err)
	}
	if err := s.FinishSeal(t.Context(), &jobs[0], SealResult{Class: "unplanned", Head: chain.State.Head, Path: "p"}); err != nil {
		t.Fatal(err)
	}
	var got []string
	note := func(c *EndedChain) bool {
		got = append(got, fmt.Sprint(c.Key.Chain, " ", c.Head == q.Head, " ", c.Conformity, " ", c.Seal != nil && c.Seal.Path == "p"))
		return true
	}
	if err := s.Ended(q, note); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"c true  true", "d true unplanned false"}, got); diff != "" {
		t.Errorf("ended (-want +got):\n%s", diff)
	}
	first := 0
	if err := s.Ended(q, func(*EndedChain) bool { first++; return false }); err != nil || first != 1 {
		t.Errorf("visited %d after a stop, %v", first, err)
	}

	s.Close()
	edit(t, cfg, tableSeals, key64(1), flip)
	if s, err = Open(cfg); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got = nil
	if err := s.Ended(q, note); !errors.Is(err, ErrCorrupt) || len(got) != 1 {
		t.Errorf("a damaged seal: %v, %v", got, err)
	}
	if err := s.Ended(q, func(*EndedChain) bool { return false }); err != nil {
		t.Errorf("stopped behind the damage: %v", err)
	}
}
