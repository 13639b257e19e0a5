package store

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// interrupted checks the database in dir in pieces, each of which ends after one
// step and hands its checkpoint to the next as bytes, in another process as it were.
func interrupted(t *testing.T, dir string) (report *CheckReport, pieces int) {
	t.Helper()
	kept := must(new(Checkpoint).MarshalBinary())
	for {
		if pieces++; pieces > 10_000 {
			t.Fatal("the check does not get on")
		}
		s, err := OpenReadOnly(Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		s.testingOnly.scan = 7
		var at Checkpoint
		if err := at.UnmarshalBinary(kept); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		steps := 0
		report, err = s.CheckFrom(ctx, &at, func(p CheckProgress) {
			if p.Phase == "pages" {
				return
			}
			if steps++; steps > 1 {
				stop()
			}
		})
		stop()
		s.Close()
		kept = must(at.MarshalBinary())
		if err == nil {
			return report, pieces
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
}

// A check that is interrupted at every step says what one without a break says,
// of a whole database as of damaged ones.
func TestCheckInPieces(t *testing.T) {
	t.Parallel()
	compare := func(t *testing.T, dir string) *CheckReport {
		s, err := OpenReadOnly(Config{Dir: dir})
		if err != nil {
			t.Skip("it does not open:", err)
		}
		want, err := s.Check(t.Context(), nil)
		s.Close()
		if err != nil {
			t.Fatal(err)
		}
		got, pieces := interrupted(t, dir)
		if diff := cmp.Diff(want, got); diff != "" || pieces < 10 {
			t.Errorf("%d pieces (-whole +pieces)\n%s", pieces, diff)
		}
		return want
	}
	database, mark := smallStore(t)
	t.Run("whole", func(t *testing.T) {
		dir := t.TempDir()
		place(t, dir, database, mark)
		if r := compare(t, dir); len(r.Findings) != 0 || r.Chains < 2 {
			t.Errorf("%+v", r)
		}
	})
	eachTampering(t, database, mark, func(t *testing.T, dir string) { compare(t, dir) })
}

// A checkpoint is for the database that it was made with, as it was then, and
// the caller's is left alone when it is refused.
func TestCheckpointOfAnother(t *testing.T) {
	t.Parallel()
	half := func(s *Store) (at Checkpoint) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		_, err := s.CheckFrom(ctx, &at, func(p CheckProgress) {
			if p.Phase == "chains" {
				stop()
			}
		})
		if !errors.Is(err, context.Canceled) || at.phase == 0 {
			t.Fatal(at, err)
		}
		return at
	}
	s, other := openStore(t, testConfig(t)), openStore(t, testConfig(t))
	give(t, s, testStream, step("c", "a", 1))
	give(t, other, testStream, step("c", "a", 1))
	at := half(s)
	same := at
	if _, err := s.CheckFrom(t.Context(), &same, nil); err != nil {
		t.Error("the same database:", err)
	}
	for name, store := range map[string]*Store{"another store": other, "a later state": s} {
		if store == s {
			give(t, s, testStream, step("c", "b", 2))
		}
		refused := at
		if _, err := store.CheckFrom(t.Context(), &refused, nil); !errors.Is(err, ErrCheckpoint) {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(must(at.MarshalBinary()), must(refused.MarshalBinary())); diff != "" {
			t.Error(name, diff)
		}
	}
}

// Every prefix and every changed byte of a checkpoint is refused.
func TestCheckpointBytes(t *testing.T) {
	t.Parallel()
	whole := Checkpoint{tx: 7, phase: 3, table: 2, from: []byte("k"), unsettled: [][]byte{[]byte("u")},
		report: CheckReport{StoreID: "s", Chains: 4, Findings: []Finding{{Class: Torn, Chain: testKey("c"), Bucket: "b", Key: []byte{1}, Detail: "d"}}}}
	text := must(whole.MarshalBinary())
	var back Checkpoint
	if err := back.UnmarshalBinary(text); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole, back, cmp.AllowUnexported(Checkpoint{}, counters{})); diff != "" {
		t.Error(diff)
	}
	for n := range text {
		if back.UnmarshalBinary(text[:n]) == nil {
			t.Errorf("its first %d bytes were taken", n)
		}
		text[n] ^= 1
		if back.UnmarshalBinary(text) == nil {
			t.Errorf("a change of byte %d was not noticed", n)
		}
		text[n] ^= 1
	}
}
