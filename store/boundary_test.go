package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chaind/chaind/events"
)

// Case C12: a crash right behind a boundary, where something new begins and has no
// record yet. The chain goes on from its head, with no second genesis, and a check
// finds nothing wrong. What a kill leaves is what the system calls have written: a
// copy of the directory under the open store.
func TestC12KilledBehindABoundary(t *testing.T) {
	t.Parallel()
	recreated := events.Stream{Name: testStream.Name, CreatedNS: testStream.CreatedNS + 1}
	for name, c := range map[string]struct {
		cross func(*Store) error
		next  events.Stream // where the chain goes on
		seq   uint64
		epoch uint32
	}{
		"nothing":      {func(*Store) error { return nil }, testStream, 3, 1},
		"a new epoch":  {func(s *Store) error { _, err := s.BeginEpoch(t.Context(), testStream, 1, WhyRolledBack); return err }, testStream, 2, 2},
		"a new stream": {func(*Store) error { return nil }, recreated, 1, 2},
		"a loss":       {func(s *Store) error { return s.RecordLost(t.Context(), testStream, 3, 5, "purged") }, testStream, 6, 1},
		"new settings": {func(s *Store) error {
			return s.RecordSettings(t.Context(), testStream, []events.Weakness{events.WeakMaxAge})
		}, testStream, 3, 1},
		"a new file": {func(s *Store) error { _, err := s.Compact(t.Context(), nil); return err }, testStream, 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, testConfig(t))
			give(t, s, testStream, step("c", "a", 1), step("c", "b", 2))
			head := *state(t, s, "c").Head
			if err := c.cross(s); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), "store")
			if err := os.CopyFS(dir, os.DirFS(s.cfg.Dir)); err != nil {
				t.Fatal(err)
			}
			killed := openStore(t, Config{Dir: dir})
			mustCheck(t, killed)
			if got := state(t, killed, "c"); got.Segments != 2 || *got.Head != head || killed.ID() != s.ID() {
				t.Errorf("%d segments, head %s", got.Segments, got.Head)
			}
			give(t, killed, c.next, step("c", "c", c.seq))
			list, err := killed.Segments(testKey("c"), 0, 0)
			if err != nil || len(list) != 3 {
				t.Fatalf("%d segments, %v", len(list), err)
			}
			for i, r := range list {
				if genesis := r.Segment.Prev == nil; genesis != (i == 0) || r.Segment.Seq != uint64(i) {
					t.Errorf("segment %d: number %d, genesis %t", i, r.Segment.Seq, genesis)
				}
			}
			if *list[2].Segment.Prev != head || list[2].Epoch != c.epoch {
				t.Errorf("goes on from %s in epoch %d, want %s, %d", list[2].Segment.Prev, list[2].Epoch, head, c.epoch)
			}
			mustCheck(t, killed)
		})
	}
}
