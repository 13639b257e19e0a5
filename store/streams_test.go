package store

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
	"github.com/google/go-cmp/cmp"
)

var (
	testPrompt  = strings.Repeat("a1", 32)
	testSession = strings.Repeat("b2", 16)
)

func testKey(chain string) events.Key {
	return events.Key{Tenant: "acme", PromptHash: testPrompt, Session: testSession, Chain: chain}
}

// step is a step event of a chain, well-formed, with the id given.
func step(chain, id string, seq uint64) *events.Event {
	return decoded(testKey(chain).Subject(events.VerbStep), stepPayload(id), seq)
}

func stepPayload(id string) string {
	return fmt.Sprintf(`{"v":1,"event_id":%q,"scope":{"schema_version":1,"tenant_id":"acme","prompt_hash":%q,`+
		`"execute_session_id":%q,"catalog_cgs_hash":"c3","domain_revision":1,"entry_id":"e"},"at_ms":1780000000000,`+
		`"kind":{"kind":"step_executed","step_id":%q,"step_index":0,"request_fingerprints":[],"source_line":"x = f()",`+
		`"parsed_expr_digest":%q}}`, id, testPrompt, testSession, "s-"+id, segments.Sum([]byte(id)).String())
}

func seal(chain, id string, seq uint64) *events.Event {
	return decoded(testKey(chain).Subject(events.VerbSeal), fmt.Sprintf(`{"v":1,"event_id":%q,"outcome":"failed","reason":"r"}`, id), seq)
}

func decoded(subject, payload string, seq uint64) *events.Event {
	return events.Decode(events.Message{Subject: subject, Payload: []byte(payload), StreamSeq: seq, BrokerMS: 1780000000000 + seq}, events.DefaultLimits)
}

func give(t testing.TB, s *Store, stream events.Stream, evs ...*events.Event) []events.Verdict {
	t.Helper()
	var got []events.Verdict
	for _, e := range mustAppend(t, s, &events.Batch{Stream: stream, Events: evs}) {
		if e.Fault != nil && e.Fault.Class != events.Conflict {
			t.Fatalf("fault: %+v", *e.Fault)
		}
		got = append(got, e.Verdict)
	}
	return got
}

func wantVerdicts(t testing.TB, got []events.Verdict, want ...events.Verdict) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

func state(t testing.TB, s *Store, chain string) *events.State {
	t.Helper()
	c, err := s.Chain(testKey(chain))
	if err != nil {
		t.Fatal(err)
	}
	return c.State
}

// Cases N04 and N20: one event under several sequences is one segment and a
// count; case N16: the same sequences delivered again change nothing at all.
func TestRepeatsAndRedeliveries(t *testing.T) {
	t.Parallel()
	s := openStore(t, testConfig(t))
	wantVerdicts(t, give(t, s, testStream, step("c", "a", 1), step("c", "a", 2), step("c", "b", 3), step("c", "a", 4)),
		events.Appended, events.Duplicate, events.Appended, events.Duplicate)
	before := state(t, s, "c")
	if before.Segments != 2 || before.Duplicates != 2 {
		t.Fatalf("%d segments, %d duplicates", before.Segments, before.Duplicates)
	}
	conflict := decoded(testKey("c").Subject(events.VerbStep), strings.Replace(stepPayload("a"), "x = f()", "y", 1), 5)
	wantVerdicts(t, give(t, s, testStream, conflict), events.Rejected)
	before = state(t, s, "c")
	for range 2 {
		wantVerdicts(t, give(t, s, testStream, step("c", "a", 1), step("c", "a", 2), step("c", "b", 3), step("c", "a", 4), conflict),
			events.Duplicate, events.Duplicate, events.Duplicate, events.Duplicate, events.Rejected)
		if diff := cmp.Diff(before, state(t, s, "c"), cmp.AllowUnexported(events.State{}), ignoreMemory); diff != "" {
			t.Errorf("a redelivery changed the chain (-before +after):\n%s", diff)
		}
		s = reopen(t, s)
	}
	if page, _, err := s.Rejected(RejectedQuery{}); err != nil || len(page) != 1 {
		t.Errorf("%d rejections, %v", len(page), err)
	}
	if w, _ := s.Watermark(testStream); w != (Watermark{Epoch: 1, Applied: 5}) {
		t.Errorf("watermark %v", w)
	}
	mustCheck(t, s)
	s.Close()
}

var ignoreMemory = cmp.FilterPath(func(p cmp.Path) bool {
	name := p.Last().String()
	return name == ".index" || name == ".tracked" || name == ".underWay"
}, cmp.Ignore())

// Case N12: the broker lost its last messages, and gives their sequences to new
// ones. They are taken, in an epoch of their own.
func TestBrokerRolledBack(t *testing.T) {
	t.Parallel()
	s := openStore(t, testConfig(t))
	var first []*events.Event
	for i := range uint64(10) {
		first = append(first, step("c", fmt.Sprint("old", i), i+1))
	}
	give(t, s, testStream, first...)
	// Redelivered 7, then new messages under 8, 9, 10, among them one that is
	// known by its bytes.
	wantVerdicts(t, give(t, s, testStream, first[6], step("c", "new8", 8), step("c", "old8", 9), step("c", "new10", 10), step("c", "new11", 11)),
		events.Duplicate, events.Appended, events.Duplicate, events.Appended, events.Appended)
	if st := state(t, s, "c"); st.Segments != 13 {
		t.Errorf("%d segments, want 13", st.Segments)
	}
	epochs, err := s.Epochs()
	if err != nil || len(epochs) != 2 {
		t.Fatalf("epochs %v, %v", epochs, err)
	}
	if e := epochs[0]; e.Applied != 10 || e.Why != WhyFirstSeen {
		t.Errorf("first epoch %+v", e)
	}
	if e := epochs[1]; e.Base != 7 || e.Applied != 11 || e.Why != WhyRolledBack {
		t.Errorf("second epoch %+v", e)
	}
	if lost, _ := s.LostRanges(0, 0); len(lost) != 0 {
		t.Errorf("lost %v", lost)
	}
	recs, err := s.Segments(testKey("c"), 10, 3)
	if err != nil || len(recs) != 3 || recs[0].Epoch != 2 || recs[0].StreamSeq != 8 || recs[0].EventID != "new8" {
		t.Errorf("segments from 10: %+v, %v", recs, err)
	}
}

// What was rejected before the broker went back, and comes again after, is
// known; so are events at or below the base of the new epoch.
func TestRedeliveryFromAnEarlierEpoch(t *testing.T) {
	t.Parallel()
	s := openStore(t, testConfig(t))
	bad := func(seq uint64) *events.Event { return decoded(testKey("c").Subject(events.VerbStep), "{}", seq) }
	stray := func(seq uint64) *events.Event { return decoded("evidence.nowhere", "{}", seq) }
	batch := func(evs ...*events.Event) {
		t.Helper()
		mustAppend(t, s, &events.Batch{Stream: testStream, Events: evs})
	}
	batch(step("c", "a", 1), bad(2), stray(3), step("c", "b", 4), step("c", "c", 5))
	if _, err := s.BeginEpoch(context.Background(), testStream, 4, WhyRolledBack); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		batch(step("c", "a", 1), bad(2), stray(3), step("c", "b", 4), step("c", "new", 5))
		s = reopen(t, s)
	}
	epochs, _ := s.Epochs()
	page, _, err := s.Rejected(RejectedQuery{})
	if err != nil || len(epochs) != 2 || len(page) != 2 {
		t.Errorf("%d epochs, %d rejections, %v", len(epochs), len(page), err)
	}
	if st := state(t, s, "c"); st.Segments != 4 || st.Duplicates != 0 || st.Rejected != 1 {
		t.Errorf("%d segments, %d duplicates, %d rejected", st.Segments, st.Duplicates, st.Rejected)
	}
	mustCheck(t, s)
	s.Close()
}

// The daemon sees it first: it begins the epoch before the messages come.
func TestBeginEpoch(t *testing.T) {
	t.Parallel()
	s := openStore(t, testConfig(t))
	ctx := context.Background()
	give(t, s, testStream, step("c", "a", 1), step("c", "b", 2), step("c", "c", 3))
	if w, err := s.BeginEpoch(ctx, testStream, 3, WhyRolledBack); err != nil || w != (Watermark{1, 3}) {
		t.Fatalf("nothing lost: %v, %v", w, err)
	}
	if w, err := s.BeginEpoch(ctx, testStream, 1, WhyRolledBack); err != nil || w != (Watermark{2, 1}) {
		t.Fatalf("rolled back: %v, %v", w, err)
	}
	wantVerdicts(t, give(t, s, testStream, step("c", "new", 2), step("c", "b", 3)), events.Appended, events.Duplicate)
	again := events.Stream{Name: testStream.Name, CreatedNS: testStream.CreatedNS + 1}
	if w, _ := s.Watermark(again); w != (Watermark{}) {
		t.Errorf("watermark of a stream not seen yet: %v", w)
	}
	wantVerdicts(t, give(t, s, again, step("c", "z", 1)), events.Appended)
	epochs, _ := s.Epochs()
	if len(epochs) != 3 || epochs[2].Why != WhyRecreated || epochs[2].Stream != again {
		t.Errorf("epochs %+v", epochs)
	}
	if w, _ := s.Watermark(testStream); w != (Watermark{}) {
		t.Errorf("watermark of the stream that was replaced: %v", w)
	}
}

// Gaps are lost ranges, recorded with the batch, and chains that were open
// across them, or began just behind them without a beginning, are incomplete.
func TestLostRanges(t *testing.T) {
	t.Parallel()
	s := openStore(t, testConfig(t))
	ctx := context.Background()
	give(t, s, testStream, step("before", "a", 8), seal("before", "z", 9), step("across", "a", 10))
	give(t, s, testStream, step("after", "a", 14), step("across", "b", 15), step("after", "b", 17), seal("across", "z", 18))
	if err := s.RecordLost(ctx, testStream, 17, 25, "purged"); err != nil {
		t.Fatal(err)
	}
	if err := s.RecordLost(ctx, testStream, 19, 25, "purged"); err != nil {
		t.Fatal(err)
	}
	if err := s.RecordLost(ctx, testStream, 28, 29, "deleted"); err != nil { // ahead: 26 and 27 are still to come
		t.Fatal(err)
	}
	give(t, s, testStream, step("after", "c", 26), step("after", "d", 27), step("after", "e", 31))
	numbered := strings.Replace(stepPayload("n"), `{"v":1,`, `{"v":1,"producer_seq":0,`, 1)
	give(t, s, testStream, decoded(testKey("numbered").Subject(events.VerbStep), numbered, 32))
	lost, err := s.LostRanges(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range lost {
		got = append(got, fmt.Sprintf("%d-%d %s", l.From, l.To, l.Why))
	}
	want := []string{"1-7 gap", "11-13 gap", "16-16 gap", "19-25 purged", "28-29 deleted", "30-30 gap"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lost (-want +got):\n%s", diff)
	}
	// Each chain has one more than it was open across, the one before its first
	// event, but for the one whose producer numbers its events from 0.
	for chain, n := range map[string]int{"before": 1, "across": 3, "after": 5, "numbered": 0} {
		c, err := s.Chain(testKey(chain))
		if err != nil {
			t.Fatal(err)
		}
		coverage, why := c.Coverage()
		if len(c.Lost) != n || (n > 0) != (coverage == events.Incomplete && why[len(why)-1] == WhyLost) {
			t.Errorf("%s: %d lost ranges, %s %v", chain, len(c.Lost), coverage, why)
		}
	}
	// One loss in two records is one.
	if err := s.RecordLost(ctx, testStream, 33, 34, "trimmed"); err != nil {
		t.Fatal(err)
	}
	if err := s.RecordLost(ctx, testStream, 35, 39, "trimmed"); err != nil {
		t.Fatal(err)
	}
	give(t, s, testStream, step("behind", "a", 40))
	if c, err := s.Chain(testKey("behind")); err != nil || len(c.Lost) != 2 || c.Lost[0].From != 33 {
		t.Errorf("behind a loss in two records: %+v, %v", c.Lost, err)
	}
	if st, _ := s.Stats(); st.LostRanges != 8 || st.LostEvents != 7+3+1+7+2+1+7 {
		t.Errorf("stats %+v", st)
	}
	// A message given up too early is taken, in the same epoch.
	wantVerdicts(t, give(t, s, testStream, step("after", "early", 16)), events.Appended)
	if w, _ := s.Watermark(testStream); w != (Watermark{1, 40}) {
		t.Errorf("watermark %v", w)
	}
	for _, bad := range [][2]uint64{{0, 3}, {5, 4}, {3, 1<<64 - 1}} {
		if err := s.RecordLost(ctx, testStream, bad[0], bad[1], "x"); err == nil {
			t.Errorf("range %v was taken", bad)
		}
	}
}

// Case C10: the first seal stands, the second is an addendum; an event after
// the end too. What the seal job rests on does not change any more.
func TestSealJobs(t *testing.T) {
	t.Parallel()
	s := openStore(t, testConfig(t))
	ctx := context.Background()
	wantVerdicts(t, give(t, s, testStream, step("c", "a", 1), step("d", "a", 2), seal("c", "z", 3), seal("c", "y", 4), step("c", "a", 5), step("c", "q", 6)),
		events.Appended, events.Appended, events.Finished, events.Late, events.Duplicate, events.Late)
	<-s.SealJobsAdded()
	jobs, err := s.SealJobs(0, 10)
	if err != nil || len(jobs) != 1 {
		t.Fatalf("jobs %v, %v", jobs, err)
	}
	j := &jobs[0]
	if j.Key != testKey("c") || j.Fixed.StreamSeq != 3 || j.Fixed.State.Duplicates != 0 || j.Fixed.State.Late != 0 || j.Fixed.State.Outcome != events.Failed {
		t.Errorf("job %+v, state %+v", j, j.Fixed.State)
	}
	if more, err := s.SealJobs(j.ID, 10); err != nil || len(more) != 0 {
		t.Errorf("jobs after the last: %v, %v", more, err)
	}
	for range 2 {
		if err := s.FailSeal(ctx, j, "no space"); err != nil {
			t.Fatal(err)
		}
	}
	if st, _ := s.Stats(); st.PendingSeals != 1 || st.FailingSeals != 1 || st.LastSealError != "no space" {
		t.Errorf("stats %+v", st)
	}
	s = reopen(t, s)
	<-s.SealJobsAdded() // told again after a restart
	if jobs, _ = s.SealJobs(0, 10); len(jobs) != 1 || jobs[0].Attempts != 2 || jobs[0].LastError != "no space" {
		t.Errorf("jobs %+v", jobs)
	}
	result := SealResult{Class: "unplanned", Head: j.Fixed.State.Head, Path: "p", Bytes: 7, SHA256: segments.Sum(nil), Signed: true, BundlePath: "b"}
	if err := s.FinishSeal(ctx, &SealJob{ID: j.ID, Key: testKey("d")}, result); err == nil {
		t.Error("a job was finished for another chain")
	}
	for range 2 { // again after a lost answer
		if err := s.FinishSeal(ctx, j, result); err != nil {
			t.Fatal(err)
		}
	}
	other := result
	other.Path = "other"
	if err := s.FinishSeal(ctx, j, other); err == nil {
		t.Error("a job was finished twice, with different results")
	}
	if err := s.FailSeal(ctx, j, "x"); err == nil {
		t.Error("a finished job failed")
	}
	c, err := s.Chain(testKey("c"))
	if err != nil || c.Seal == nil || !c.Seal.same(result) || c.Seal.SealedMS == 0 {
		t.Errorf("chain %+v, %v", c, err)
	}
	if st, _ := s.Stats(); st.PendingSeals != 0 || st.FailingSeals != 0 || st.LastSealError != "" {
		t.Errorf("stats %+v", st)
	}
	mustCheck(t, s)
	s.Close()
}

// A job is not given out between its commit and the moment when memory has it:
// its chain would be read as it was before.
func TestNoSealJobAheadOfMemory(t *testing.T) {
	t.Parallel()
	s := openStore(t, testConfig(t))
	give(t, s, testStream, step("c", "a", 1))
	var early []SealJob
	var failed error
	s.testingOnly.afterCommit = func() error {
		early, failed = s.SealJobs(0, 0)
		return nil
	}
	give(t, s, testStream, seal("c", "end", 2))
	s.testingOnly = hooks{}
	if len(early) != 0 || failed != nil {
		t.Errorf("between commit and memory: %v, %v", early, failed)
	}
	if jobs := must(s.SealJobs(0, 0)); len(jobs) != 1 {
		t.Errorf("jobs %v", jobs)
	}
}

// The outbox of rejections survives restarts and is worked off in order.
func TestRejectionOutbox(t *testing.T) {
	t.Parallel()
	v := loadVector(t, "small")
	s := openStore(t, testConfig(t))
	mustAppend(t, s, v.batch(0, 303))
	<-s.RejectionsAdded()
	var got int
	for {
		page, err := s.PendingRejections(40)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, r := range page {
			got++
			m := v.Messages[r.StreamSeq-1]
			if r.ID != uint64(got) || r.Subject != m.Subject || string(r.Payload) != string(m.Payload) {
				t.Fatalf("rejection %d is not as delivered", r.ID)
			}
		}
		if err := s.RejectionsPublished(context.Background(), page[len(page)-1].ID); err != nil {
			t.Fatal(err)
		}
		if got == 80 {
			s = reopen(t, s)
		}
	}
	want := 0
	for what, n := range v.Expected.Totals {
		if strings.HasPrefix(what, "rejected") {
			want += n
		}
	}
	if got != want {
		t.Errorf("%d rejections published, want %d", got, want)
	}
	s.Close()
}
