package store

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
	"github.com/google/go-cmp/cmp"
)

var testStream = events.Stream{Name: "EVIDENCE", CreatedNS: 1780000000000000000}

func testConfig(t testing.TB) Config {
	return Config{Dir: filepath.Join(t.TempDir(), "store"), Now: func() time.Time { return time.UnixMilli(1790000000000) }}
}

// openStore opens a store that is checked when the test ends.
func openStore(t testing.TB, cfg Config) *Store {
	t.Helper()
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.view(func(*view) error { return nil }); err == nil {
			mustCheck(t, s)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func mustCheck(t testing.TB, s *Store) *CheckReport {
	t.Helper()
	r, err := s.Check(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		t.Errorf("check: %s %s %x of chain %q: %s", f.Class, f.Bucket, f.Key, f.Chain.Chain, f.Detail)
	}
	return r
}

// vector is one of the event vectors.
type vector struct {
	Messages []events.Message
	Expected expected
}

type expected struct {
	MaxEventBytes int             `json:"max_event_bytes"`
	Totals        map[string]int  `json:"totals"`
	Chains        []expectedChain `json:"chains"`
	Unattributed  []struct {
		Line  int    `json:"line"`
		Class string `json:"class"`
	} `json:"unattributed"`
}

type expectedChain struct {
	Tenant     string  `json:"tenant"`
	PromptHash string  `json:"prompt_hash"`
	Session    string  `json:"session"`
	Chain      string  `json:"chain"`
	Outcome    string  `json:"outcome"`
	Reason     *string `json:"reason"`
	Conformity string  `json:"conformity"`
	Segments   uint64  `json:"segments"`
	Head       *string `json:"head"`
	Attempts   []struct {
		StepID string `json:"step_id"`
		Begun  uint64 `json:"begun"`
		Ended  uint64 `json:"ended"`
		Failed uint64 `json:"failed"`
	} `json:"attempts"`
	RunIDs   []string `json:"run_ids"`
	Rejected []struct {
		Line     int     `json:"line"`
		Class    string  `json:"class"`
		Sum      string  `json:"payload_sha256"`
		Existing *string `json:"existing_sha256"`
		AfterEnd bool    `json:"after_end"`
	} `json:"rejected"`
	Duplicates uint64 `json:"duplicates"`
	Late       []struct {
		Line    int    `json:"line"`
		EventID string `json:"event_id"`
		Sum     string `json:"payload_sha256"`
	} `json:"late"`
	Coverage string `json:"coverage"`
}

func (c *expectedChain) key() events.Key {
	tenant := c.Tenant
	if tenant == "_" {
		tenant = ""
	}
	return events.Key{Tenant: tenant, PromptHash: c.PromptHash, Session: c.Session, Chain: c.Chain}
}

func loadVector(t testing.TB, name string) *vector {
	t.Helper()
	v := new(vector)
	f, err := os.Open(filepath.Join("..", "testdata", "events", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var line struct{ Subject, Payload string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		seq := uint64(len(v.Messages) + 1)
		v.Messages = append(v.Messages, events.Message{Subject: line.Subject, Payload: []byte(line.Payload),
			StreamSeq: seq, BrokerMS: 1780000000000 + seq})
	}
	b, err := os.ReadFile(filepath.Join("..", "testdata", "events", name+".expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v.Expected); err != nil {
		t.Fatal(err)
	}
	if len(v.Messages) == 0 || len(v.Expected.Chains) == 0 {
		t.Fatal("the vector is empty")
	}
	return v
}

// batch decodes messages [from, to) anew.
func (v *vector) batch(from, to int) *events.Batch {
	b := &events.Batch{Stream: testStream}
	for _, m := range v.Messages[from:min(to, len(v.Messages))] {
		b.Events = append(b.Events, events.Decode(m, events.Limits{MaxBytes: v.Expected.MaxEventBytes}))
	}
	return b
}

func mustAppend(t testing.TB, s *Store, b *events.Batch) []events.Effect {
	t.Helper()
	effects, err := s.Append(context.Background(), b)
	if err != nil {
		t.Fatal(err)
	}
	return effects
}

// verify compares everything that the vector states with what the store says.
func (v *vector) verify(t testing.TB, s *Store) {
	t.Helper()
	for i := range v.Expected.Chains {
		v.verifyChain(t, s, &v.Expected.Chains[i])
	}
	var listed []ChainSummary
	for after := ""; ; {
		page, next, err := s.Chains(ChainQuery{After: after, Limit: 7})
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, page...)
		if after = next; next == "" {
			break
		}
	}
	if len(listed) != len(v.Expected.Chains) {
		t.Errorf("%d chains listed, want %d", len(listed), len(v.Expected.Chains))
	}
	if stray := v.strays(t, s); stray != len(v.Expected.Unattributed) {
		t.Errorf("%d rejections without a chain, want %d", stray, len(v.Expected.Unattributed))
	}
}

func (v *vector) strays(t testing.TB, s *Store) (n int) {
	t.Helper()
	for after := uint64(0); ; {
		page, next, err := s.Rejected(RejectedQuery{After: after, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page {
			if !r.Attributed {
				n++
			}
		}
		if after = next; next == 0 {
			return n
		}
	}
}

func (v *vector) verifyChain(t testing.TB, s *Store, want *expectedChain) {
	t.Helper()
	got, err := s.Chain(want.key())
	if err != nil {
		t.Error(err)
		return
	}
	conformity, _ := got.State.Conformity()
	coverage, _ := got.Coverage()
	reason := ""
	if want.Reason != nil {
		reason = *want.Reason
	}
	type facts struct {
		Outcome, Reason, Conformity, Coverage string
		Segments, Duplicates                  uint64
		Head                                  string
		RunIDs                                []string
		Attempts                              [][4]any
	}
	g := facts{string(got.State.Outcome), got.State.Reason, string(conformity), string(coverage),
		got.State.Segments, got.State.Duplicates, "", append([]string{}, got.State.RunIDs...), nil}
	w := facts{want.Outcome, reason, want.Conformity, want.Coverage, want.Segments, want.Duplicates, "",
		append([]string{}, want.RunIDs...), nil}
	if got.State.Head != nil {
		g.Head = got.State.Head.String()
	}
	if want.Head != nil {
		w.Head = *want.Head
	}
	for _, a := range got.State.Steps {
		g.Attempts = append(g.Attempts, [4]any{a.StepID, a.Begun, a.Ended, a.Failed})
	}
	for _, a := range want.Attempts {
		w.Attempts = append(w.Attempts, [4]any{a.StepID, a.Begun, a.Ended, a.Failed})
	}
	if diff := cmp.Diff(w, g); diff != "" {
		t.Errorf("chain %s (-want +got):\n%s", want.Chain, diff)
	}
	verifySegments(t, s, got)
	v.verifyRejected(t, s, want)
	v.verifyLate(t, s, want)
}

func verifySegments(t testing.TB, s *Store, c *ChainRecord) {
	t.Helper()
	var walk segments.Walk
	for {
		page, err := s.Segments(c.Key, walk.Count, 3)
		if err != nil {
			t.Fatal(err)
		}
		for i := range page {
			if err := walk.Step(&page[i].Segment); err != nil {
				t.Fatal(err)
			}
		}
		if len(page) == 0 {
			break
		}
	}
	if walk.Count != c.State.Segments || !cmp.Equal(walk.Head, c.State.Head) {
		t.Errorf("chain %s: walked to %d %v, state says %d %v", c.Key.Chain, walk.Count, walk.Head, c.State.Segments, c.State.Head)
	}
}

func (v *vector) verifyRejected(t testing.TB, s *Store, want *expectedChain) {
	t.Helper()
	key := want.key()
	var got, exp [][4]any
	for after := uint64(0); ; {
		page, next, err := s.Rejected(RejectedQuery{Key: &key, After: after, Limit: 2})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page {
			existing := ""
			if r.Existing != nil {
				existing = r.Existing.String()
			}
			got = append(got, [4]any{int(r.StreamSeq) - 1, string(r.Class), r.Sum.String() + existing, r.AfterEnd})
		}
		if after = next; next == 0 {
			break
		}
	}
	for _, r := range want.Rejected {
		existing := ""
		if r.Existing != nil {
			existing = *r.Existing
		}
		exp = append(exp, [4]any{r.Line, r.Class, r.Sum + existing, r.AfterEnd})
	}
	if diff := cmp.Diff(exp, got); diff != "" {
		t.Errorf("rejected of chain %s (-want +got):\n%s", want.Chain, diff)
	}
}

func (v *vector) verifyLate(t testing.TB, s *Store, want *expectedChain) {
	t.Helper()
	late, err := s.Addenda(want.key(), 0, MaxPage)
	if err != nil {
		t.Fatal(err)
	}
	var got, exp [][3]any
	for _, l := range late {
		got = append(got, [3]any{int(l.StreamSeq) - 1, l.EventID, l.Sum.String()})
	}
	for _, l := range want.Late {
		exp = append(exp, [3]any{l.Line, l.EventID, l.Sum})
	}
	if diff := cmp.Diff(exp, got); diff != "" {
		t.Errorf("late events of chain %s (-want +got):\n%s", want.Chain, diff)
	}
}

func TestVectorsInAnyBatchSize(t *testing.T) {
	for _, name := range []string{"small", "large"} {
		v := loadVector(t, name)
		for _, size := range []int{1, 7, 64, 5000} {
			if size == 1 && (name == "large" || testing.Short()) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := openStore(t, testConfig(t))
				totals := map[string]int{}
				for i := 0; i < len(v.Messages); i += size {
					for _, e := range mustAppend(t, s, v.batch(i, i+size)) {
						what := string(e.Verdict)
						if e.Fault != nil {
							what += " " + string(e.Fault.Class)
						}
						totals[what]++
					}
				}
				if diff := cmp.Diff(v.Expected.Totals, totals); diff != "" {
					t.Errorf("effects (-want +got):\n%s", diff)
				}
				v.verify(t, s)
			})
		}
	}
}
