package events

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaind/chaind/segments"
	"github.com/google/go-cmp/cmp"
)

type expectation struct {
	MaxEventBytes int              `json:"max_event_bytes"`
	MaxDepth      int              `json:"max_depth"`
	Events        int              `json:"events"`
	Totals        map[string]int   `json:"totals"`
	Unattributed  []expectedReject `json:"unattributed"`
	Chains        []expectedChain  `json:"chains"`
}

type expectedReject struct {
	Line     int     `json:"line"`
	EventID  *string `json:"event_id"`
	Class    Class   `json:"class"`
	Sum      string  `json:"payload_sha256"`
	Existing string  `json:"existing_sha256"`
	AfterEnd bool    `json:"after_end"`
}

type expectedChain struct {
	Tenant            string           `json:"tenant"`
	PromptHash        string           `json:"prompt_hash"`
	Session           string           `json:"session"`
	Chain             string           `json:"chain"`
	Outcome           Outcome          `json:"outcome"`
	Reason            *string          `json:"reason"`
	Conformity        Conformity       `json:"conformity"`
	Codes             []string         `json:"conformity_codes"`
	Segments          uint64           `json:"segments"`
	Head              *string          `json:"head"`
	Attempts          []expectedTally  `json:"attempts"`
	RunIDs            []string         `json:"run_ids"`
	Rejected          []expectedReject `json:"rejected"`
	Duplicates        uint64           `json:"duplicates"`
	Late              []expectedReject `json:"late"`
	Coverage          Coverage         `json:"coverage"`
	CoverageWhy       []string         `json:"coverage_why"`
	ProducerHead      *Agreement       `json:"producer_head"`
	ProducerSignature *Agreement       `json:"producer_signature"`
}

type expectedTally struct {
	StepID string `json:"step_id"`
	Begun  uint64 `json:"begun"`
	Ended  uint64 `json:"ended"`
	Failed uint64 `json:"failed"`
}

func readExpectation(t testing.TB, name string) expectation {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("../testdata/events", name+".expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want expectation
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	return want
}

func TestVectors(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"small", "large"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := readExpectation(t, name)
			got := replay(t, name, Limits{MaxBytes: want.MaxEventBytes, MaxDepth: want.MaxDepth})
			if diff := cmp.Diff(want.Totals, got.Totals); diff != "" {
				t.Errorf("totals (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want.Unattributed, got.Unattributed); diff != "" {
				t.Errorf("unattributed (-want +got):\n%s", diff)
			}
			if len(got.Chains) != len(want.Chains) || got.Events != want.Events {
				t.Errorf("%d chains of %d events, want %d of %d", len(got.Chains), got.Events, len(want.Chains), want.Events)
			}
			compareChains(t, want.Chains, got.Chains)
		})
	}
}

func compareChains(t *testing.T, want, got []expectedChain) {
	t.Helper()
	byKey := map[Key]expectedChain{}
	for _, c := range got {
		byKey[c.key()] = c
	}
	for _, c := range want {
		if diff := cmp.Diff(c, byKey[c.key()]); diff != "" {
			t.Errorf("chain %s (-want +got):\n%s", c.Chain, diff)
		}
	}
}

func (c expectedChain) key() Key {
	return Key{c.Tenant, c.PromptHash, c.Session, c.Chain}
}

// replay runs a vector file through decoder and state machine.
func replay(t *testing.T, name string, lim Limits) expectation {
	t.Helper()
	store := newMemory(lim)
	got := expectation{Totals: map[string]int{}, Unattributed: []expectedReject{}}
	notes := map[Key]*expectedChain{}
	for n, l := range readLines(t, name) {
		got.Events++
		e, effect := store.deliver(l.message(n))
		if !e.Attributed {
			got.Totals["rejected "+string(e.Fault.Class)]++
			got.Unattributed = append(got.Unattributed, noteOf(n, e, e.Fault.Class))
			continue
		}
		if notes[e.Key] == nil {
			notes[e.Key] = &expectedChain{Rejected: []expectedReject{}, Late: []expectedReject{}}
		}
		note(notes[e.Key], got.Totals, n, e, effect)
	}
	for key, s := range store.states {
		got.Chains = append(got.Chains, summary(key, s, notes[key]))
	}
	return got
}

// TestAccumulated pins the encoded states of all vector chains in one digest;
// -update writes it anew.
func TestAccumulated(t *testing.T) {
	t.Parallel()
	var states [][]byte
	for _, name := range []string{"small", "large"} {
		store := newMemory(Limits{MaxBytes: 65536})
		for n, l := range readLines(t, name) {
			store.deliver(l.message(n))
		}
		for _, s := range store.states {
			b, _ := s.AppendBinary(nil)
			roundTrip(t, s)
			states = append(states, b)
		}
	}
	slices.SortFunc(states, bytes.Compare)
	got := segments.Sum(bytes.Join(states, nil)).String()
	const golden = "testdata/states-v2.sha256"
	if *update {
		if err := os.WriteFile(golden, []byte(got+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != strings.TrimSpace(string(want)) {
		t.Errorf("the states of the vectors add up to %s, want %s", got, want)
	}
}

func note(c *expectedChain, totals map[string]int, n int, e *Event, effect Effect) {
	switch effect.Verdict {
	case Rejected:
		totals["rejected "+string(effect.Fault.Class)]++
		r := noteOf(n, e, effect.Fault.Class)
		r.AfterEnd = effect.AfterEnd
		if effect.Existing != nil {
			r.Existing = effect.Existing.String()
		}
		c.Rejected = append(c.Rejected, r)
	case Late:
		totals["late"]++
		c.Late = append(c.Late, noteOf(n, e, ""))
	default:
		totals[string(effect.Verdict)]++
	}
}

func noteOf(n int, e *Event, class Class) expectedReject {
	r := expectedReject{Line: n, Class: class, Sum: e.Sum.String()}
	if e.ID != "" {
		r.EventID = &e.ID
	}
	return r
}

func summary(key Key, s *State, c *expectedChain) expectedChain {
	c.Tenant, c.PromptHash, c.Session, c.Chain = key.TenantToken(), key.PromptHash, key.Session, key.Chain
	c.Outcome = s.Outcome
	if s.Reason != "" {
		c.Reason = &s.Reason
	}
	c.Conformity, c.Codes = s.Conformity()
	c.Segments, c.Duplicates = s.Segments, s.Duplicates
	if s.Head != nil {
		c.Head = pointer(s.Head.String())
	}
	c.Attempts = []expectedTally{}
	for _, tally := range s.Steps {
		c.Attempts = append(c.Attempts, expectedTally(tally))
	}
	c.RunIDs = append([]string{}, s.RunIDs...)
	c.Coverage, c.CoverageWhy = s.Coverage()
	c.ProducerHead, c.ProducerSignature = given(s.ProducerHead), given(s.ProducerSignature)
	return *c
}

func given(a Agreement) *Agreement {
	if a == "" {
		return nil
	}
	return &a
}
