package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
	"github.com/google/go-cmp/cmp"
)

// batchOf is n new steps of a chain, with sequences from first on.
func batchOf(chain string, first uint64, n int) *events.Batch {
	b := &events.Batch{Stream: testStream}
	for i := range uint64(n) {
		b.Events = append(b.Events, step(chain, fmt.Sprintf("%s-%d", chain, first+i), first+i))
	}
	return b
}

// pages collects all chains of a query, a few at a time.
func pages(t testing.TB, s *Store, q ChainQuery) []ChainSummary {
	t.Helper()
	var out []ChainSummary
	for q.Limit = 3; ; {
		page, next, err := s.Chains(q)
		if err != nil {
			t.Fatal(err)
		}
		if out = append(out, page...); next == "" {
			return out
		}
		q.After = next
	}
}

func TestChainsFilterAndPage(t *testing.T) {
	t.Parallel()
	v := loadVector(t, "large")
	s := openStore(t, testConfig(t))
	for i := 0; i < len(v.Messages); i += 500 {
		mustAppend(t, s, v.batch(i, i+500))
	}
	all, next, err := s.Chains(ChainQuery{Limit: MaxPage})
	if err != nil || next != "" || len(all) != len(v.Expected.Chains) {
		t.Fatalf("%d chains, next %q, %v", len(all), next, err)
	}
	one := all[len(all)/2].Key
	for name, c := range map[string]struct {
		q     ChainQuery
		match func(ChainSummary) bool
	}{
		"tenant":       {ChainQuery{Tenant: &one.Tenant}, func(c ChainSummary) bool { return c.Key.Tenant == one.Tenant }},
		"empty tenant": {ChainQuery{Tenant: new(string)}, func(c ChainSummary) bool { return c.Key.Tenant == "" }},
		"outcome":      {ChainQuery{Outcome: events.Failed}, func(c ChainSummary) bool { return c.Outcome == events.Failed }},
		"conformity":   {ChainQuery{Conformity: events.Unplanned}, func(c ChainSummary) bool { return c.Conformity == events.Unplanned }},
		"session":      {ChainQuery{Session: one.Session}, func(c ChainSummary) bool { return c.Key.Session == one.Session }},
		"whole key": {ChainQuery{Tenant: &one.Tenant, PromptHash: one.PromptHash, Session: one.Session, Chain: one.Chain},
			func(c ChainSummary) bool { return c.Key == one }},
	} {
		want := slices.DeleteFunc(slices.Clone(all), func(s ChainSummary) bool { return !c.match(s) })
		got := pages(t, s, c.q)
		if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 || len(want) == len(all) {
			t.Errorf("%s: %d of %d chains (-want +got):\n%s", name, len(want), len(all), diff)
		}
	}
	for _, bad := range []string{"!", "AAAA=", "YQ"} {
		if _, _, err := s.Chains(ChainQuery{Tenant: &one.Tenant, After: bad}); !errors.Is(err, ErrCursor) {
			t.Errorf("cursor %q: %v", bad, err)
		}
	}
}

func TestRunsListEveryChain(t *testing.T) {
	t.Parallel()
	v := loadVector(t, "large")
	s := openStore(t, testConfig(t))
	mustAppend(t, s, v.batch(0, len(v.Messages)))
	want := map[string][]events.Key{}
	for i := range v.Expected.Chains {
		c := &v.Expected.Chains[i]
		for _, id := range c.RunIDs {
			want[id] = append(want[id], c.key())
		}
	}
	total := 0
	for id, keys := range want {
		page, next, err := s.Runs(RunQuery{RunID: id})
		if err != nil || next != "" || len(page) != len(keys) {
			t.Fatalf("run %s: %d chains, want %d; next %q, %v", id, len(page), len(keys), next, err)
		}
		total += len(keys)
		for _, r := range page {
			recs, err := s.Segments(r.Key, r.Seq, 1)
			if err != nil || len(recs) != 1 || !slices.Contains(keys, r.Key) {
				t.Fatalf("run %+v: %v", r, err)
			}
			if seal, ok := recs[0].Segment.Kind.(*segments.RunSealed); !ok || seal.RunID != id {
				t.Errorf("run %+v leads to segment %+v", r, recs[0])
			}
		}
	}
	got := 0
	for q := (RunQuery{Limit: 2}); ; {
		page, next, err := s.Runs(q)
		if err != nil {
			t.Fatal(err)
		}
		if got += len(page); next == "" {
			break
		}
		q.After = next
	}
	if got != total || total == 0 {
		t.Errorf("%d runs listed, want %d", got, total)
	}
	for _, outcome := range []events.Outcome{events.Open, events.Succeeded, events.Failed, events.Cancelled, events.Abandoned} {
		n := 0
		for i := range v.Expected.Chains {
			if c := &v.Expected.Chains[i]; c.Outcome == string(outcome) {
				n += len(c.RunIDs)
			}
		}
		got := 0
		for q := (RunQuery{Outcome: outcome, Limit: 3}); ; {
			page, next, err := s.Runs(q)
			if err != nil || len(page) > 3 {
				t.Fatalf("%s: %d runs, %v", outcome, len(page), err)
			}
			if got += len(page); next == "" {
				break
			}
			q.After = next
		}
		if got != n {
			t.Errorf("%s: %d runs, want %d", outcome, got, n)
		}
	}
	if page, _, err := s.Runs(RunQuery{RunID: "pr-of-no-run"}); err != nil || len(page) != 0 {
		t.Errorf("unknown run: %v, %v", page, err)
	}
}

func TestRejectedFilters(t *testing.T) {
	t.Parallel()
	v := loadVector(t, "small")
	s := openStore(t, testConfig(t))
	mustAppend(t, s, v.batch(0, 303))
	all, next, err := s.Rejected(RejectedQuery{Limit: MaxPage})
	if err != nil || next != 0 {
		t.Fatal(next, err)
	}
	half := all[len(all)/2].ID
	counts := map[events.Key]int{{}: 0}
	var key events.Key // the chain with the most rejections
	for _, r := range all {
		if counts[r.Key]++; r.Attributed && counts[r.Key] > counts[key] {
			key = r.Key
		}
	}
	tenant := "acme"
	for name, c := range map[string]struct {
		q     RejectedQuery
		match func(events.Rejection) bool
	}{
		"class":  {RejectedQuery{Class: events.Conflict}, func(r events.Rejection) bool { return r.Class == events.Conflict }},
		"tenant": {RejectedQuery{Tenant: &tenant}, func(r events.Rejection) bool { return r.Attributed && r.Key.Tenant == "acme" }},
		"up to":  {RejectedQuery{UpTo: half}, func(r events.Rejection) bool { return r.ID <= half }},
		"after":  {RejectedQuery{After: half}, func(r events.Rejection) bool { return r.ID > half }},
		"chain up to": {RejectedQuery{Key: &key, UpTo: half},
			func(r events.Rejection) bool { return r.Attributed && r.Key == key && r.ID <= half }},
		"chain after": {RejectedQuery{Key: &key, After: half},
			func(r events.Rejection) bool { return r.Attributed && r.Key == key && r.ID > half }},
	} {
		want := slices.DeleteFunc(slices.Clone(all), func(r events.Rejection) bool { return !c.match(r) })
		var got []events.Rejection
		for q := c.q; ; {
			q.Limit = 2
			page, next, err := s.Rejected(q)
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, page...); next == 0 {
				break
			}
			q.After = next
		}
		if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// What is kept of preimages is what the configuration says, as it came.
func TestPreimagesKept(t *testing.T) {
	t.Parallel()
	v := loadVector(t, "small")
	for _, keep := range []bool{false, true} {
		cfg := testConfig(t)
		cfg.KeepIntent, cfg.KeepParsed = keep, keep
		s := openStore(t, cfg)
		tight(s)
		for i := 0; i < 303; i += 30 {
			mustAppend(t, s, v.batch(i, i+30))
		}
		texts, plans := 0, 0
		for i := range v.Expected.Chains {
			recs, err := s.Preimages(v.Expected.Chains[i].key(), 0, MaxPage)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range recs {
				sent := events.Decode(v.Messages[r.StreamSeq-1], events.Limits{MaxBytes: v.Expected.MaxEventBytes}).Preimage
				if !keep {
					sent.Text, sent.Parsed = nil, nil
				}
				if diff := cmp.Diff(sent, r.Preimage); diff != "" {
					t.Errorf("preimage of sequence %d (-sent +kept):\n%s", r.StreamSeq, diff)
				}
				if r.Preimage.Text != nil || r.Preimage.Parsed != nil {
					texts++
				}
				if r.Preimage.Comp != nil || r.Preimage.Artifact != nil {
					plans++
				}
			}
		}
		if plans == 0 || (texts > 0) != keep {
			t.Errorf("keep %v: %d texts, %d plans and artifacts", keep, texts, plans)
		}
	}
}

func TestUnknownChain(t *testing.T) {
	t.Parallel()
	s := openStore(t, testConfig(t))
	key := testKey("none")
	_, err := s.Chain(key)
	_, err2 := s.Segments(key, 0, 1)
	_, _, err3 := s.Rejected(RejectedQuery{Key: &key})
	for _, err := range []error{err, err2, err3} {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("unknown chain: %v", err)
		}
	}
	if r := mustCheck(t, s); r.Chains != 0 || r.Records != 0 {
		t.Errorf("an empty store counts as %+v", r)
	}
}

// Case B15: what a query returned stays as it was, whatever is written later.
func TestB15ResultsAreCopies(t *testing.T) {
	t.Parallel()
	s := openStore(t, testConfig(t))
	give(t, s, testStream, step("c", "a", 1), step("c", "b", 2))
	recs, err := s.Segments(testKey("c"), 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	chain, err := s.Chain(testKey("c"))
	if err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprintf("%+v %+v %+v", recs, recs[0].Segment.Kind, chain.State)
	for i := uint64(3); i < 3000; i += 100 {
		mustAppend(t, s, batchOf("c", i, 100))
	}
	if after := fmt.Sprintf("%+v %+v %+v", recs, recs[0].Segment.Kind, chain.State); after != before {
		t.Errorf("results changed from\n%s to\n%s", before, after)
	}
	again, err := s.Segments(testKey("c"), 0, 2)
	if diff := cmp.Diff(recs, again); err != nil || diff != "" {
		t.Errorf("read again: %v (-before +after):\n%s", err, diff)
	}
}

// Writers of many streams, readers, a check and a backup at once.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.CachedChains = 5
	s := openStore(t, cfg)
	tight(s)
	ctx, cancel := context.WithCancel(context.Background())
	var readers, writers sync.WaitGroup
	read := func(fn func() error) {
		readers.Go(func() {
			for ctx.Err() == nil {
				if err := fn(); err != nil && !errors.Is(err, ErrNotFound) {
					t.Error(err)
					return
				}
			}
		})
	}
	read(func() error { _, _, err := s.Chains(ChainQuery{}); return err })
	read(func() error { _, err := s.Chain(testKey("w3")); return err })
	read(func() error { return walkAll(s, testKey("w1")) })
	read(func() error { _, _, err := s.Rejected(RejectedQuery{}); return err })
	read(func() error { _, err := s.Stats(); return err })
	read(func() error {
		r, err := s.Check(context.Background(), nil)
		if err == nil && len(r.Findings) > 0 {
			err = fmt.Errorf("findings while writing: %+v", r.Findings)
		}
		return err
	})
	const perWriter = 150
	for w := range 8 {
		writers.Go(func() {
			name := fmt.Sprintf("w%d", w)
			stream := events.Stream{Name: name, CreatedNS: 1}
			for i := uint64(1); i <= perWriter; i += 3 {
				b := batchOf(name, i, 3)
				b.Stream = stream
				if _, err := s.Append(context.Background(), b); err != nil {
					t.Error(err)
					return
				}
			}
			b := &events.Batch{Stream: stream, Events: []*events.Event{seal(name, "end", perWriter+1)}}
			if _, err := s.Append(context.Background(), b); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	cancel()
	readers.Wait()
	for w := range 8 {
		name := fmt.Sprintf("w%d", w)
		if st := state(t, s, name); st.Segments != perWriter || st.Outcome != events.Failed {
			t.Errorf("%s: %d segments, %s", name, st.Segments, st.Outcome)
		}
		if mark, _ := s.Watermark(events.Stream{Name: name, CreatedNS: 1}); mark.Applied != perWriter+1 {
			t.Errorf("%s: watermark %v", name, mark)
		}
	}
}

func walkAll(s *Store, key events.Key) error {
	var walk segments.Walk
	for {
		page, err := s.Segments(key, walk.Count, MaxPage)
		if err != nil || len(page) == 0 {
			return err
		}
		for i := range page {
			if err := walk.Step(&page[i].Segment); err != nil {
				return err
			}
		}
	}
}

// States evicted from memory, and memory itself, stay within their bound.
func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.CachedChains = 10
	s := openStore(t, cfg)
	s.flush = flushLimits{tail: 64, slack: 8, pending: 16}
	most := 0
	s.testingOnly.published = func(_, states int) { most = max(most, states) }
	seq := uint64(1)
	for round := range 6 {
		for c := range 100 {
			give(t, s, testStream, step(fmt.Sprint("c", c), fmt.Sprint(round), seq))
			seq++
		}
	}
	if most > cfg.CachedChains+1 || len(s.chains) > 10+64+8 || len(s.dirty) > 64+8 {
		t.Errorf("%d states, %d chains, %d marks in memory", most, len(s.chains), len(s.dirty))
	}
	ids := 0
	for key, c := range s.chains {
		ids += len(c.ids.pending)
		if c.touched || c.flushed || len(c.view.pending) != len(c.next.pending) {
			t.Errorf("chain %s was left as in the middle of a transaction", key.Chain)
		}
	}
	if ids > 64+8 {
		t.Errorf("%d ids in memory", ids)
	}
	if s.n.arrivals-s.n.tail > 64+8 {
		t.Errorf("the tail is %d entries long", s.n.arrivals-s.n.tail)
	}
	if st := state(t, s, "c42"); st.Segments != 6 {
		t.Errorf("%d segments", st.Segments)
	}
}

// A reader that looked at memory before a flush, and at the database after it,
// sees every entry once.
func TestReaderAcrossAFlush(t *testing.T) {
	t.Parallel()
	s := openStore(t, testConfig(t))
	mustAppend(t, s, batchOf("c", 1, 20))
	before, ok := s.peek(testKey("c"))
	if !ok || len(before.pending) != 20 {
		t.Fatalf("%d entries are pending", len(before.pending))
	}
	give(t, s, testStream, step("c", "last", 21), seal("c", "z", 22)) // flushes all of it
	err := s.view(func(v *view) error {
		st, _, _, err := v.replay(&before)
		if err != nil || st.Segments != 21 || st.Outcome != events.Failed {
			t.Errorf("state %+v, %v", st, err)
		}
		arrivals, err := v.arrivals(&before, listSegments, 0, MaxPage)
		if len(arrivals) != 21 || !slices.IsSorted(arrivals) || len(slices.Compact(arrivals)) != 21 {
			t.Errorf("arrivals %v", arrivals)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Preimages and rejected payloads of a MiB make pages end early, and none is lost.
func TestPagesAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	s := openStore(t, testConfig(t))
	var evs []*events.Event
	for i := range uint64(30) {
		subject := testKey("big").Subject(events.VerbStep)
		evs = append(evs, decoded(subject, fmt.Sprintf(`{"v":1,"event_id":"%d","pad":%q}`, i, strings.Repeat("x", 1<<20-100)), i+1))
	}
	for _, e := range mustAppend(t, s, &events.Batch{Stream: testStream, Events: evs}) {
		if e.Verdict != events.Rejected {
			t.Fatal(e.Verdict)
		}
	}
	key := testKey("big")
	for _, q := range []RejectedQuery{{}, {Key: &key}} {
		got, rounds := 0, 0
		for {
			page, next, err := s.Rejected(q)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) > 10 {
				t.Errorf("%d MiB in one page", len(page))
			}
			got, rounds = got+len(page), rounds+1
			if q.After = next; next == 0 {
				break
			}
		}
		if got != 30 || rounds < 3 {
			t.Errorf("%d rejections in %d pages", got, rounds)
		}
	}
}
