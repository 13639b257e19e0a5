package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
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
		wantAside(t, s, "c")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		edit(t, cfg, tableChains, key64(1), flip)
		s = openStore(t, cfg)
		if got := offer(t, s, step("c", "a", 61), step("c", "b", 62)); fmt.Sprint(got) != "[duplicate appended]" || state(t, s, "c").Segments != 2 {
			t.Errorf("running %v, after the repair: %q", running, got)
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

func tightTail(s *Store) { s.flush = flushLimits{tail: 10, slack: 2, pending: 100} }

// A value behind a chain's record is damaged, which itself can be read: were the
// record all that counts, the chain would go on from an older state than was
// acknowledged. It is set aside instead, durably: its events are rejected and it is
// named wherever somebody asks for it, the others go on, before and after restarts;
// and when the value has been repaired it goes on where it was.
func TestDamagedEntryDoesNotBringBackAnOlderState(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{"until the flush is due", "when its next event comes", "and a restart before the tail has passed it"} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t)
			cfg.CachedChains = 1
			s := openStore(t, cfg)
			tightTail(s)
			give(t, s, testStream, step("d", "a", 1), step("c", "a", 2), step("c", "b", 3), step("d", "b", 4))
			flipIn(t, s, tableJournal, key64(3))
			next := uint64(5)
			others := func(n uint64) {
				t.Helper()
				for range n {
					wantVerdicts(t, give(t, s, testStream, step("d", fmt.Sprint("d", next), next)), events.Appended)
					next++
				}
			}
			refused := func() {
				t.Helper()
				if got := offer(t, s, step("c", fmt.Sprint("n", next), next), step("c", "a", next+1)); fmt.Sprint(got) != "[rejected chain_damaged rejected chain_damaged]" {
					t.Errorf("events of the damaged chain: %q", got)
				}
				next += 2
			}
			if moment != "until the flush is due" {
				refused()
			}
			if moment == "and a restart before the tail has passed it" {
				s = reopen(t, s)
				if s.n.tail > 3 {
					t.Errorf("the tail is at %d already", s.n.tail)
				}
			}
			others(40)
			for range 2 {
				if s.n.tail+12 < s.n.arrivals {
					t.Errorf("the tail stays at %d of %d", s.n.tail, s.n.arrivals)
				}
				refused()
				wantAside(t, s, "c")
				s = reopen(t, s)
				others(5)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			edit(t, cfg, tableJournal, key64(3), flip) // the repair: a bit that is flipped twice
			s = openStore(t, cfg)                      // and checked at the end
			if st := must(s.Stats()); st.DamagedChains != 0 {
				t.Errorf("after the repair: %+v", st)
			}
			if got := offer(t, s, step("c", "b", next), step("c", "z", next+1)); fmt.Sprint(got) != "[duplicate appended]" {
				t.Errorf("after the repair: %q", got)
			}
			if st := state(t, s, "c"); st.Segments != 3 {
				t.Errorf("%d segments of 3", st.Segments)
			}
		})
	}
}

// flipIn damages a value of a running store, or repairs it.
func flipIn(t *testing.T, s *Store, table *table, key []byte) {
	t.Helper()
	err := s.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(table.name))
		v := append([]byte(nil), b.Get(key)...)
		if len(v) == 0 {
			return fmt.Errorf("no value under %x", key)
		}
		return b.Put(key, flip(v))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// wantAside wants that a chain is named as damaged wherever somebody asks for it,
// and not shown as less than it is.
func wantAside(t *testing.T, s *Store, chain string) {
	t.Helper()
	key := testKey(chain)
	for what, err := range map[string]error{"chain": errOf(s.Chain(key)), "segments": errOf(s.Segments(key, 0, 10)), "attempts": errOf(s.Attempts(key, 0, 10))} {
		if bad, ok := errors.AsType[*CorruptError](err); !ok || bad.Chain != key || !strings.Contains(err.Error(), "set aside") {
			t.Errorf("%s: %v", what, err)
		}
	}
	named := 0
	for _, sum := range must2(s.Chains(ChainQuery{})) {
		if (sum.Key == key) != (sum.Damage != "") {
			t.Errorf("listed as %+v", sum)
		}
		if sum.Damage != "" {
			named++
		}
	}
	if st := must(s.Stats()); named != 1 || st.DamagedChains != 1 || !strings.Contains(st.LastDamage, chain) || st.LastWriteError != "" {
		t.Errorf("%d are listed as damaged, %+v", named, st)
	}
	found := false
	for _, f := range must(s.Check(t.Context(), nil)).Findings {
		found = found || f.Chain == key && strings.Contains(f.Detail, "set aside") ||
			f.Bucket == tableChains.name && string(f.Key) == string(key64(s.aside[key].no)) // the record itself, which does not say whose it is
	}
	if !found {
		t.Error("the check does not name it")
	}
}

func errOf[T any](_ T, err error) error { return err }

// A damaged block of event ids, of a chain that is in memory and whole there: what
// has been acknowledged stays, and nothing is taken twice or after the end.
func TestDamagedIDBlockSetsAside(t *testing.T) {
	t.Parallel()
	for _, ends := range []bool{false, true} {
		cfg := testConfig(t)
		s := openStore(t, cfg)
		s.flush = flushLimits{tail: 1000, slack: 1, pending: 3}
		give(t, s, testStream, step("c", "b1", 1), step("c", "b2", 2), step("c", "b3", 3))
		flipIn(t, s, tableIDs, blockKey(nil, 1, "b1"))
		wantVerdicts(t, give(t, s, testStream, step("d", "a", 4), step("c", "b4", 5), step("c", "b5", 6)), events.Appended, events.Appended, events.Appended)
		last, verdict := step("c", "b6", 7), events.Appended
		if ends {
			last, verdict = seal("c", "z", 7), events.Finished
		}
		wantVerdicts(t, give(t, s, testStream, last), verdict)
		for range 2 {
			w := must(s.Watermark(testStream)).Applied
			if got := offer(t, s, step("c", "a0", w+1), step("c", "b4", w+2), step("d", fmt.Sprint(w), w+3)); fmt.Sprint(got) != "[rejected chain_damaged rejected chain_damaged appended]" {
				t.Errorf("ends %v: %q", ends, got)
			}
			wantAside(t, s, "c")
			if jobs := must(s.SealJobs(0, 10)); len(jobs) != 0 {
				t.Errorf("a seal of what cannot be read: %+v", jobs)
			}
			s = reopen(t, s)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		edit(t, cfg, tableIDs, blockKey(nil, 1, "b1"), flip)
		s = openStore(t, cfg)
		w := must(s.Watermark(testStream)).Applied
		want, segments, jobs := "[duplicate appended]", uint64(7), 0
		if ends {
			want, segments, jobs = "[duplicate late]", 5, 1
		}
		if got := offer(t, s, step("c", "b4", w+1), step("c", "a0", w+2)); fmt.Sprint(got) != want {
			t.Errorf("ends %v, after the repair: %q", ends, got)
		}
		if st := state(t, s, "c"); st.Segments != segments || len(must(s.SealJobs(0, 10))) != jobs {
			t.Errorf("ends %v, after the repair: %d segments, %+v", ends, st.Segments, must(s.SealJobs(0, 10)))
		}
	}
}

// An entry in the part of the journal that opening reads is damaged, and does not
// say whose it is. Where the others tell, that chain is set aside, before and after
// another restart, and taken up when the entry has been repaired; nobody else
// notices. Where they do not, the database is not opened.
func TestDamagedEntryInTheTail(t *testing.T) {
	t.Parallel()
	conflict := decoded(testKey("c").Subject(events.VerbStep), stepPayload("b"), 3)
	conflict.ID = "a"
	for name, c := range map[string]struct {
		events  []*events.Event // after one of d
		damaged uint64          // arrival number
		aside   bool
		refused bool
	}{
		"in the middle of its chain": {[]*events.Event{step("c", "a", 2), step("c", "b", 3), step("c", "x", 4)}, 3, true, false},
		"the first of its chain":     {[]*events.Event{step("c", "a", 2), step("c", "b", 3)}, 2, true, false},
		"of a chain that is stored":  {[]*events.Event{step("c", "a", 2), step("c", "b", 3), seal("c", "z", 4)}, 3, false, false},
		"a rejected one":             {[]*events.Event{step("c", "a", 2), conflict}, 3, true, false},
		"the last of its chain":      {[]*events.Event{step("c", "a", 2), step("c", "b", 3), step("e", "a", 4)}, 3, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t)
			s, err := Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			give(t, s, testStream, append([]*events.Event{step("d", "a", 1)}, c.events...)...)
			before := must2(s.Chains(ChainQuery{}))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			edit(t, cfg, tableJournal, key64(c.damaged), flip)
			dir := content(t, cfg.Dir)
			if c.refused {
				for _, open := range []func(Config) (*Store, error){Open, OpenReadOnly} {
					if _, err := open(cfg); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "chaind replay") {
						t.Errorf("open: %v", err)
					}
				}
				if after := content(t, cfg.Dir); after != dir {
					t.Errorf("the directory was\n%s and is\n%s", dir, after)
				}
			}
			next := uint64(10)
			for start := 0; start < 2 && !c.refused; start++ {
				if s, err = Open(cfg); err != nil {
					t.Fatal(err)
				}
				if c.aside {
					wantAside(t, s, "c")
				}
				want := map[bool]string{true: "[appended rejected chain_damaged]", false: "[appended late]"}[c.aside]
				if got := offer(t, s, step("d", fmt.Sprint(next), next), step("c", fmt.Sprint("n", next), next+1)); fmt.Sprint(got) != want {
					t.Errorf("%q, want %s", got, want)
				}
				if c.aside {
					wantAside(t, s, "c")
				}
				next += 2
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			edit(t, cfg, tableJournal, key64(c.damaged), flip)
			s = openStore(t, cfg) // and checked at the end
			for i, sum := range must2(s.Chains(ChainQuery{})) {
				rejected := before[i].Rejected
				if c.aside {
					rejected += 2 // that came meanwhile, and which the chain misses
				}
				if sum.Key.Chain == "c" && (sum.Segments != before[i].Segments || sum.Rejected != rejected || *sum.Head != *before[i].Head || sum.Damage != "") {
					t.Errorf("after the repair %+v, and it was %+v", sum, before[i])
				}
			}
			if st := must(s.Stats()); st.DamagedChains != 0 {
				t.Errorf("after the repair: %+v", st)
			}
		})
	}
}

// More than one damaged entry, or a frame that is not laid out as one, is nobody's.
func TestDamagedFrameIsRefused(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func([]byte) []byte{
		"two entries":   func(b []byte) []byte { b[20] ^= 1; b[len(b)-20] ^= 1; return b },
		"its layout":    func(b []byte) []byte { b[0] ^= 0x40; return b },
		"cut":           func(b []byte) []byte { return b[:len(b)/2] },
		"the last byte": func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
	} {
		cfg := testConfig(t)
		s, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		mustAppend(t, s, batchOf("c", 1, frameEntries))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		edit(t, cfg, tableJournal, append(key64(1), frameEntries-1), spoil)
		if s, err = Open(cfg); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "chaind replay") {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			s.Close()
		}
	}
}
