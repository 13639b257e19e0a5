package daemon

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/store"
	"github.com/chaind/chaind/verifier"
)

// vectors is the folder of golden event streams, see the README there.
const vectors = "../../testdata/events"

type expectation struct {
	MaxEventBytes int              `json:"max_event_bytes"`
	Totals        map[string]int   `json:"totals"`
	Unattributed  []expectedReject `json:"unattributed"`
	Chains        []expectedChain  `json:"chains"`
}

type expectedReject struct {
	Line     int     `json:"line"`
	EventID  *string `json:"event_id"`
	Class    string  `json:"class"`
	Sum      string  `json:"payload_sha256"`
	Existing string  `json:"existing_sha256"`
	AfterEnd bool    `json:"after_end"`
}

type expectedChain struct {
	Tenant            string           `json:"tenant"`
	PromptHash        string           `json:"prompt_hash"`
	Session           string           `json:"session"`
	Chain             string           `json:"chain"`
	Outcome           string           `json:"outcome"`
	Reason            *string          `json:"reason"`
	Conformity        string           `json:"conformity"`
	Segments          uint64           `json:"segments"`
	Head              *string          `json:"head"`
	Attempts          []expectedTally  `json:"attempts"`
	RunIDs            []string         `json:"run_ids"`
	Rejected          []expectedReject `json:"rejected"`
	Duplicates        uint64           `json:"duplicates"`
	Late              []expectedReject `json:"late"`
	Coverage          string           `json:"coverage"`
	CoverageWhy       []string         `json:"coverage_why"`
	ProducerHead      *string          `json:"producer_head"`
	ProducerSignature *string          `json:"producer_signature"`
	Sidecar           *string          `json:"sidecar"`
	SidecarSum        *string          `json:"unsigned_sidecar_sha256"`
	VerifyExit        *int             `json:"verify_strict_exit"`
}

type expectedTally struct {
	StepID string `json:"step_id"`
	Begun  uint64 `json:"begun"`
	Ended  uint64 `json:"ended"`
	Failed uint64 `json:"failed"`
}

// event is one line of a golden stream.
type event struct {
	Subject string            `json:"subject"`
	Headers map[string]string `json:"headers"`
	Payload string            `json:"payload"`
}

func readExpectation(t testing.TB, name string) expectation {
	t.Helper()
	var want expectation
	raw, err := os.ReadFile(filepath.Join(vectors, name+".expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	return want
}

func readEvents(t testing.TB, name string) []event {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(vectors, name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var list []event
	scanner := bufio.NewScanner(bytes.NewReader(raw))
	scanner.Buffer(nil, len(raw))
	for scanner.Scan() {
		var e event
		if err := json.Unmarshal(scanner.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	if len(list) == 0 {
		t.Fatalf("%s.jsonl has no lines", name)
	}
	return list
}

// compare holds the files of a stopped daemon against what the golden stream
// must give: every chain, every rejection, every sidecar, and nothing else.
func compare(t *testing.T, dir string, want expectation) {
	t.Helper()
	s, err := store.OpenReadOnly(store.Config{Dir: filepath.Join(dir, "store")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	report, err := s.Check(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Findings) > 0 || report.Chains != uint64(len(want.Chains)) {
		t.Errorf("check: %d chains, want %d; findings %+v", report.Chains, len(want.Chains), report.Findings)
	}
	rejected := allRejected(t, s)
	if diff := cmp.Diff(want.Unattributed, rejected[events.Key{}], sameEmpty); diff != "" {
		t.Errorf("unattributed rejections (-want +got):\n%s", diff)
	}
	var sidecars []string
	bundles := map[string]bool{}
	for _, c := range want.Chains {
		if c.Tenant == "_" {
			c.Tenant = "" // the golden values spell tenants as subjects do
		}
		key := events.Key{Tenant: c.Tenant, PromptHash: c.PromptHash, Session: c.Session, Chain: c.Chain}
		got := describe(t, s, dir, key, rejected[key])
		if c.SidecarSum == nil {
			got.SidecarSum = nil // a segment takes its time from the broker
		}
		if diff := cmp.Diff(c, got, sameEmpty); diff != "" {
			t.Errorf("chain %s (-want +got):\n%s", c.Chain, diff)
		}
		compareBundle(t, s, dir, key, bundles)
		if c.Sidecar != nil {
			sidecars = append(sidecars, *c.Sidecar)
		}
	}
	slices.Sort(sidecars)
	if diff := cmp.Diff(slices.Compact(sidecars), evidenceFiles(t, dir)); diff != "" {
		t.Errorf("evidence files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(bundles, bundleFiles(t, dir)); diff != "" || len(bundles) == 0 {
		t.Errorf("trust bundles (-recorded +got):\n%s", diff)
	}
}

// sameEmpty takes no list for an empty one.
var sameEmpty = cmp.Options{
	cmp.Transformer("empty", func(list []expectedReject) []expectedReject {
		if list == nil {
			return []expectedReject{}
		}
		return slices.Clip(list)
	}),
}

// allRejected reads every rejection, by chain; those of no chain are under the
// zero key.
func allRejected(t *testing.T, s *store.Store) map[events.Key][]expectedReject {
	t.Helper()
	all := map[events.Key][]expectedReject{}
	for after := uint64(0); ; {
		page, next, err := s.Rejected(store.RejectedQuery{After: after})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page {
			note := expectedReject{Line: int(r.StreamSeq) - 1, EventID: optional(r.EventID), Class: string(r.Class), Sum: r.Sum.String(), AfterEnd: r.AfterEnd}
			if r.Existing != nil {
				note.Existing = r.Existing.String()
			}
			all[r.Key] = append(all[r.Key], note)
		}
		if next == 0 {
			return all
		}
		after = next
	}
}

// describe puts what the store and the files say about a chain into the form of
// the golden values.
func describe(t *testing.T, s *store.Store, dir string, key events.Key, rejected []expectedReject) expectedChain {
	t.Helper()
	record, err := s.Chain(key)
	if err != nil {
		t.Errorf("chain %s: %v", key.Chain, err)
		return expectedChain{}
	}
	state := record.State
	conformity, _ := state.Conformity()
	coverage, why := state.Coverage()
	c := expectedChain{
		Tenant: key.Tenant, PromptHash: key.PromptHash, Session: key.Session, Chain: key.Chain,
		Outcome: string(state.Outcome), Conformity: string(conformity), Segments: state.Segments, Head: hexText(state.Head),
		Attempts: []expectedTally{}, RunIDs: append([]string{}, state.RunIDs...), Rejected: rejected, Duplicates: state.Duplicates,
		Late: lateEvents(t, s, key), Coverage: string(coverage), CoverageWhy: append([]string{}, why...),
		Reason: optional(state.Reason), ProducerHead: optional(string(state.ProducerHead)), ProducerSignature: optional(string(state.ProducerSignature)),
	}
	for _, step := range state.Steps {
		c.Attempts = append(c.Attempts, expectedTally{step.StepID, step.Begun, step.Ended, step.Failed})
	}
	if record.Seal != nil && record.Seal.Path != "" {
		text, err := os.ReadFile(filepath.Join(dir, "artifacts", record.Seal.Path))
		if err != nil {
			t.Error(err)
		}
		sum := segments.Sum(text)
		c.Sidecar, c.SidecarSum = &record.Seal.Path, hexText(&sum)
		c.VerifyExit = new(verifier.Evidence(t.Context(), bytes.NewReader(text), verifier.Options{}).ExitCode)
	}
	return c
}

func lateEvents(t *testing.T, s *store.Store, key events.Key) []expectedReject {
	t.Helper()
	late := []expectedReject{}
	for {
		page, err := s.Addenda(key, uint64(len(late)), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range page {
			late = append(late, expectedReject{Line: int(a.StreamSeq) - 1, EventID: optional(a.EventID), Sum: a.Sum.String()})
		}
		if len(page) == 0 {
			return late
		}
	}
}

func hexText(d *segments.Digest) *string {
	if d == nil {
		return nil
	}
	return new(d.String())
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// evidenceFiles lists the evidence bundles below dir, sorted.
func evidenceFiles(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	for name := range tree(t, filepath.Join(dir, "artifacts")) {
		if ok, _ := filepath.Match("*.evidence.json", filepath.Base(name)); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// tree reads all files below a directory, but for the daemon's own bookkeeping.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	root := os.DirFS(dir)
	err := walkFiles(root, func(name string, content []byte) { files[name] = string(content) })
	if err != nil {
		t.Fatal(err)
	}
	return files
}
