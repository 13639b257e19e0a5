package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/chaind/chaind/events"
)

func mustRecord(t *testing.T, s *Store, weak ...events.Weakness) {
	t.Helper()
	if err := s.RecordSettings(context.Background(), testStream, weak); err != nil {
		t.Fatal(err)
	}
}

// weakOf is the settings in a chain's record, in one line.
func weakOf(t *testing.T, s *Store, chain string) string {
	t.Helper()
	c, err := s.Chain(testKey(chain))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(c.Weak)
}

// recorded lists the records of settings, in order.
func recorded(t *testing.T, s *Store) (out []string) {
	t.Helper()
	err := s.view(func(v *view) error {
		return v.each(tableMeta, settingsPrefix, func(k, payload []byte) (bool, error) {
			var r settings
			err := decode(tableMeta, k, payload, &r)
			at, _ := settingsArrival(k)
			out = append(out, fmt.Sprintf("%d: at %d in %d: %v", r.number, at, r.epoch, r.weak))
			return true, err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A chain has what was in force from its first event to its end, whatever is
// recorded before and afterwards, also after a restart.
func TestSettingsInForce(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	s := openStore(t, cfg)
	mustRecord(t, s) // none, and never any: nothing to record
	if got := recorded(t, s); len(got) != 0 || len(must(s.Epochs())) != 0 {
		t.Errorf("records %v", got)
	}
	give(t, s, testStream, step("older", "a", 1))
	mustRecord(t, s, events.WeakNoAck) // in force for no event
	mustRecord(t, s, events.WeakMaxAge)
	give(t, s, testStream, step("before", "a", 2), step("across", "a", 3), seal("before", "end", 4))
	want := map[string]string{"before": "[max_age]", "across": "[max_age]", "older": "[]"}
	check := func() {
		t.Helper()
		for chain, weak := range want {
			if got := weakOf(t, s, chain); got != weak {
				t.Errorf("chain %s: %s, want %s", chain, got, weak)
			}
		}
	}
	check()
	mustRecord(t, s, events.WeakOneReplica, events.WeakDiscard, events.WeakOneReplica)
	check() // what is recorded behind a chain's last event changes nothing
	mustRecord(t, s, events.WeakDiscard, events.WeakOneReplica)
	give(t, s, testStream, step("after", "a", 5), seal("across", "end", 6), seal("older", "end", 7))
	want["after"], want["across"] = "[discard_old one_replica]", "[discard_old max_age one_replica]"
	want["older"] = want["across"]
	check()
	// The broker goes back: the epoch is another one, the settings are not.
	give(t, s, testStream, step("after", "b", 5))
	mustRecord(t, s, events.WeakMemory)
	give(t, s, testStream, step("last", "a", 6), step("across", "late", 7), seal("last", "end", 8))
	want["last"] = "[memory_storage]"
	check() // the event that came after the end of its chain changes nothing there
	mustRecord(t, s)
	give(t, s, testStream, step("clean", "a", 9))
	want["clean"] = "[]"
	check()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, cfg)
	if _, err := s.Compact(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	check()
	if got := strings.Join(recorded(t, s), "\n"); got != "1: at 2 in 1: [max_age]\n2: at 5 in 1: [discard_old one_replica]\n3: at 9 in 2: [memory_storage]\n4: at 12 in 2: []" {
		t.Errorf("records:\n%s", got)
	}
}

// A record whose commit failed, with or without effect, is given again and is
// there once, before any event.
func TestSettingsSurviveFailedCommits(t *testing.T) {
	t.Parallel()
	for _, persisted := range []bool{false, true} {
		s := openStore(t, testConfig(t))
		fail := func() error { return errInjected }
		s.testingOnly = hooks{beforeCommit: fail}
		if persisted {
			s.testingOnly = hooks{afterCommit: fail}
		}
		if err := s.RecordSettings(context.Background(), testStream, []events.Weakness{events.WeakMemory}); !errors.Is(err, errInjected) {
			t.Fatalf("persisted %v: %v", persisted, err)
		}
		s.testingOnly = hooks{}
		mustRecord(t, s, events.WeakMemory)
		give(t, s, testStream, step("c", "a", 1))
		if got := recorded(t, s); !slices.Equal(got, []string{"1: at 1 in 1: [memory_storage]"}) || weakOf(t, s, "c") != "[memory_storage]" {
			t.Errorf("persisted %v: %v, %s", persisted, got, weakOf(t, s, "c"))
		}
	}
}

// Settings that change for ever: the records of an epoch end, and no chain that
// has ended gets others than it had.
func TestSettingsOnlyAddUp(t *testing.T) {
	t.Parallel()
	s := openStore(t, testConfig(t))
	turns := [][]events.Weakness{{events.WeakMaxAge}, {events.WeakDiscard}, {events.WeakNoAck}, {}}
	var had []string
	const rounds = 2 * maxSettingsPerEpoch
	for n := range rounds {
		mustRecord(t, s, turns[n%len(turns)]...)
		chain := fmt.Sprint("c", n)
		give(t, s, testStream, step(chain, "a", uint64(2*n+1)), seal(chain, "end", uint64(2*n+2)))
		had = append(had, weakOf(t, s, chain))
	}
	for n, weak := range had {
		want := fmt.Sprint(turns[n%len(turns)])
		if n >= maxSettingsPerEpoch+2 { // all of them have been in force by then
			want = "[discard_old max_age no_ack]"
		}
		adding := n >= maxSettingsPerEpoch && n < maxSettingsPerEpoch+2
		if !adding && weak != want {
			t.Errorf("chain %d had %s, want %s", n, weak, want)
		}
		if now := weakOf(t, s, fmt.Sprint("c", n)); now != weak {
			t.Errorf("chain %d had %s and has %s", n, weak, now)
		}
	}
	if got := len(recorded(t, s)); got < maxSettingsPerEpoch || got > maxSettingsPerEpoch+3 {
		t.Errorf("%d records", got)
	}
	other := events.Stream{Name: testStream.Name, CreatedNS: testStream.CreatedNS + 1}
	if err := s.RecordSettings(t.Context(), other, nil); err != nil {
		t.Fatal(err)
	}
	give(t, s, other, step("new", "a", 1))
	if got := weakOf(t, s, "new"); got != "[]" {
		t.Errorf("a new epoch begins with %s", got)
	}
}

// Check finds a record that is gone, and one that was changed.
func TestLostSettingsRecordIsFound(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{true, false} {
		cfg := testConfig(t)
		s := must(Open(cfg))
		mustRecord(t, s, events.WeakMaxAge)
		give(t, s, testStream, step("c", "a", 1))
		mustRecord(t, s, events.WeakDiscard)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		changeSettings(t, filepath.Join(cfg.Dir, DatabaseFile), lost)
		s = must(Open(cfg))
		report, err := s.Check(t.Context(), nil)
		want := Mismatch
		if lost {
			want = Torn
		}
		named := func(f Finding) bool { return f.Class == want && f.Bucket == tableMeta.name }
		if err != nil || !slices.ContainsFunc(report.Findings, named) {
			t.Errorf("lost %v: %v, %+v", lost, err, report)
		}
		if _, err := s.Chain(testKey("c")); (err == nil) != lost || err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("lost %v: chain: %v", lost, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// changeSettings removes the first record or changes a byte of it.
func changeSettings(t *testing.T, path string, remove bool) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(tableMeta.name))
		if remove {
			return b.Delete(settingsKey(1))
		}
		value := slices.Clone(b.Get(settingsKey(1)))
		value[len(value)-sumSize-1] ^= 1
		return b.Put(settingsKey(1), value)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}
