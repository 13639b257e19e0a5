package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/chaind/chaind/events"
	"go.etcd.io/bbolt"
)

// edit changes a value of a stopped store, its pages staying in order, and
// returns what was there.
func edit(t *testing.T, cfg Config, table *table, key []byte, change func([]byte) []byte) (before []byte) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(cfg.Dir, DatabaseFile), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(table.name))
		before = append([]byte(nil), b.Get(key)...)
		if len(before) == 0 {
			return fmt.Errorf("no value under %x", key)
		}
		return b.Put(key, change(append([]byte(nil), before...)))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return before
}

func flip(b []byte) []byte { b[len(b)/2] ^= 4; return b }

// offer appends events and returns verdicts and classes.
func offer(t *testing.T, s *Store, evs ...*events.Event) (got []string) {
	t.Helper()
	for _, e := range mustAppend(t, s, &events.Batch{Stream: testStream, Events: evs}) {
		if word := string(e.Verdict); e.Fault != nil {
			got = append(got, word+" "+string(e.Fault.Class))
		} else {
			got = append(got, word)
		}
	}
	return got
}

// A chain that cannot be read does not stop the stream: its events are rejected,
// durably and with their bytes, also when they come again; other chains go on; and
// once the value is as it was, the same events are taken.
func TestDamagedChainStopsNoOther(t *testing.T) {
	t.Parallel()
	for name, where := range map[string]struct {
		table *table
		key   []byte
	}{
		"its record":  {tableChains, key64(1)},
		"its name":    {tableNames, nameKey(testKey("c"))},
		"an event id": {tableIDs, blockKey(nil, 1, "a")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t)
			cfg.CachedChains = 1
			s := openStore(t, cfg)
			s.flush = flushLimits{tail: 4, slack: 1, pending: 1}
			give(t, s, testStream, step("c", "a", 1), step("c", "b", 2), step("d", "a", 3))
			for i := uint64(4); i < 20; i++ { // so that c is not in the part of the journal that opening reads
				give(t, s, testStream, step("d", fmt.Sprint("d", i), i))
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			before := edit(t, cfg, where.table, where.key, flip)
			var err error
			if s, err = Open(cfg); err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprint([]string{"appended", "rejected chain_damaged", "appended", "appended"})
			batch := []*events.Event{step("d", "x", 20), step("c", "b", 21), step("d", "y", 22), step("e", "a", 23)}
			if got := offer(t, s, batch...); fmt.Sprint(got) != want {
				t.Fatalf("%q", got)
			}
			if got := offer(t, s, batch[1]); fmt.Sprint(got) != "[rejected chain_damaged]" {
				t.Errorf("redelivered: %q", got)
			}
			// One from before the damage comes again, as after a lost acknowledgement.
			if got := offer(t, s, step("c", "b", 2), step("c", "b", 2)); fmt.Sprint(got) != "[rejected chain_damaged rejected chain_damaged]" {
				t.Errorf("an applied one redelivered: %q", got)
			}
			list := must2(s.Rejected(RejectedQuery{}))
			if len(list) != 2 || list[0].Key != testKey("c") || list[0].StreamSeq != 21 || string(list[0].Payload) != string(batch[1].Payload) || list[1].StreamSeq != 2 {
				t.Errorf("rejections %+v", list)
			}
			if st := must(s.Stats()); st.DamagedChains != 1 || st.LastDamage == "" || st.PendingRejections != 2 || st.LastWriteError != "" {
				t.Errorf("%+v", st)
			}
			if w := must(s.Watermark(testStream)); w.Applied != 23 || len(must(s.Epochs())) != 1 {
				t.Errorf("%+v, %+v", w, must(s.Epochs()))
			}
			if r := must(s.Check(t.Context(), nil)); len(r.Findings) == 0 {
				t.Error("the check finds nothing")
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			edit(t, cfg, where.table, where.key, func([]byte) []byte { return before })
			s = openStore(t, cfg) // and checked at the end
			if got := offer(t, s, step("c", "b", 24), step("c", "n", 25)); fmt.Sprint(got) != "[duplicate appended]" {
				t.Errorf("after the repair: %q", got)
			}
			if st := must(s.Stats()); st.DamagedChains != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

func must2[T, U any](v T, _ U, err error) T { return must(v, err) }

// A damaged chain with entries that its stored state does not have yet stops
// neither the start nor the flush that is due, and nothing grows for it.
func TestDamagedChainWithPendingEntries(t *testing.T) {
	t.Parallel()
	for _, running := range []bool{false, true} {
		cfg := testConfig(t)
		cfg.CachedChains = 1
		s := openStore(t, cfg)
		s.flush = flushLimits{tail: 10, slack: 2, pending: 100}
		give(t, s, testStream, step("c", "a", 1), step("d", "a", 2))
		var err error
		if running {
			err = s.db.Update(func(tx *bbolt.Tx) error {
				b := tx.Bucket([]byte(tableChains.name))
				return b.Put(key64(1), flip(append([]byte(nil), b.Get(key64(1))...)))
			})
		} else {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			edit(t, cfg, tableChains, key64(1), flip)
			s, err = Open(cfg)
		}
		if err != nil {
			t.Fatal(err)
		}
		s.flush = flushLimits{tail: 10, slack: 2, pending: 100}
		for i := uint64(3); i < 60; i++ {
			wantVerdicts(t, give(t, s, testStream, step("d", fmt.Sprint("d", i), i)), events.Appended)
		}
		if s.n.tail+12 < s.n.arrivals {
			t.Errorf("running %v: the tail stays at %d of %d", running, s.n.tail, s.n.arrivals)
		}
		if st := must(s.Stats()); st.DamagedChains != 1 {
			t.Errorf("running %v: %+v", running, st)
		}
		if got := offer(t, s, step("c", "b", 60)); fmt.Sprint(got) != "[rejected chain_damaged]" {
			t.Errorf("running %v: %q", running, got)
		}
		s = reopen(t, s)
		if st := state(t, s, "d"); st.Segments != 58 {
			t.Errorf("running %v: %d segments", running, st.Segments)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A seal job or an end that cannot be read hides no job behind it, and is
// neither dropped nor forgotten.
func TestDamagedSealJobHidesNoOther(t *testing.T) {
	t.Parallel()
	for _, table := range []*table{tableJobs, tableFixed} {
		cfg := testConfig(t)
		s := openStore(t, cfg)
		give(t, s, testStream, step("c", "a", 1), seal("c", "z", 2), step("d", "a", 3), seal("d", "z", 4), step("e", "a", 5), seal("e", "z", 6))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		before := edit(t, cfg, table, key64(2), flip)
		s, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		jobs, err := s.SealJobs(0, 10)
		if err != nil || len(jobs) != 2 || jobs[0].Key.Chain != "c" || jobs[1].Key.Chain != "e" {
			t.Errorf("%s: %+v, %v", table.name, jobs, err)
		}
		if st := must(s.Stats()); st.DamagedChains != 1 || st.PendingSeals != 3 {
			t.Errorf("%s: %+v", table.name, st)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		edit(t, cfg, table, key64(2), func([]byte) []byte { return before })
		if jobs := must(openStore(t, cfg).SealJobs(0, 10)); len(jobs) != 3 {
			t.Errorf("%s: after the repair %+v", table.name, jobs)
		}
	}
}

// A journal entry of an evicted chain is damaged while the chain's record can be
// read: were its entries set aside, the chain would go on from an older state than
// was acknowledged. The flush that is due waits for the repair instead.
func TestDamagedEntryDoesNotBringBackAnOlderState(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.CachedChains = 1
	s := openStore(t, cfg)
	s.flush = flushLimits{tail: 10, slack: 2, pending: 100}
	give(t, s, testStream, step("c", "a", 1), step("c", "b", 2), step("d", "a", 3))
	damage := func() {
		if err := s.db.Update(func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte(tableJournal.name))
			return b.Put(key64(2), flip(append([]byte(nil), b.Get(key64(2))...)))
		}); err != nil {
			t.Fatal(err)
		}
	}
	damage()
	refused := uint64(0)
	for i := uint64(4); i < 60 && refused == 0; i++ {
		if _, err := s.Append(t.Context(), &events.Batch{Stream: testStream, Events: []*events.Event{step("d", fmt.Sprint("d", i), i)}}); err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			refused = i
		}
	}
	if refused == 0 {
		t.Fatal("the entries of a chain were forgotten, whose record can still be read")
	}
	damage() // the repair: a bit that is flipped twice
	for i := refused; i < 60; i++ {
		wantVerdicts(t, give(t, s, testStream, step("d", fmt.Sprint("d", i), i)), events.Appended)
	}
	wantVerdicts(t, give(t, s, testStream, step("c", "c", 60)), events.Appended)
	if st := state(t, s, "c"); st.Segments != 3 {
		t.Errorf("%d segments of 3", st.Segments)
	}
}
