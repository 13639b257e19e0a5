package store

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/chaind/chaind/events"
	"go.etcd.io/bbolt"
)

// A chain is set aside, a sync fails, and then the value is repaired: the next
// start must be able to take the chain up.
func TestChainsSetAsideDoNotForbidWritingAnew(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		repairedAfterAFailedSync(t, again)
	}
}

// repairedAfterAFailedSync repairs a chain that was set aside before a sync failed;
// again: after a start that wrote the database anew with the damage in it.
func repairedAfterAFailedSync(t *testing.T, again bool) {
	t.Helper()
	cfg := testConfig(t)
	cfg.CachedChains = 1
	s := openStore(t, cfg)
	s.flush = flushLimits{tail: 10, slack: 2, pending: 100}
	give(t, s, testStream, step("c", "a", 1), step("d", "a", 2))
	if err := s.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(tableChains.name))
		return b.Put(key64(1), flip(append([]byte(nil), b.Get(key64(1))...)))
	}); err != nil {
		t.Fatal(err)
	}
	for i := uint64(3); i < 60; i++ {
		wantVerdicts(t, give(t, s, testStream, step("d", fmt.Sprint("d", i), i)), events.Appended)
	}
	wantAside(t, s, "c")
	s.testingOnly.commit = func(tx *bbolt.Tx) error {
		return errors.Join(tx.Commit(), pathError("sync", syscall.EIO))
	}
	if _, err := s.Append(t.Context(), &events.Batch{Stream: testStream, Events: []*events.Event{step("d", "last", 60)}}); !errors.Is(err, ErrBroken) {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	repair := func() { edit(t, cfg, tableChains, key64(1), flip) }
	other := edit(t, cfg, tableLists, listKey(2, listSegments, 0), flip)
	if _, err := Open(cfg); !errors.Is(err, ErrUnsynced) || !errors.Is(err, ErrCorrupt) {
		t.Errorf("with damage of a chain that was not set aside: %v", err)
	}
	edit(t, cfg, tableLists, listKey(2, listSegments, 0), func([]byte) []byte { return other })
	if again {
		s, err := Open(cfg)
		if err != nil {
			t.Fatalf("with the damage that is known: %v", err)
		}
		wantAside(t, s, "c")
		for _, f := range must(s.Check(t.Context(), nil)).Findings {
			if f.Chain != testKey("c") {
				t.Errorf("%+v", f)
			}
		}
		if got := offer(t, s, step("d", "more", 60)); got[0] == "chain_damaged" {
			t.Errorf("the other chain: %q", got)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		wantFiles(t, cfg.Dir)
	}
	repair()
	s, err := Open(cfg)
	if err != nil {
		t.Fatalf("after the repair: %v", err)
	}
	defer s.Close()
	if got := offer(t, s, step("c", "a", 61), step("c", "b", 62)); fmt.Sprint(got) != "[duplicate appended]" {
		t.Errorf("%q", got)
	}
	mustCheck(t, s)
}
