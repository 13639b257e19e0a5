package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/chaind/chaind/events"
	"go.etcd.io/bbolt"
	"pgregory.net/rapid"
)

// idOrders make the nth id of a chain: as a counter spells it, without order, and
// from the last to the first.
var idOrders = map[string]func(n int) string{
	"ascending":  func(n int) string { return fmt.Sprintf("e%08d", n) },
	"scattered":  func(n int) string { return fmt.Sprintf("%016x", uint64(n+1)*0x9e3779b97f4a7c15) },
	"descending": func(n int) string { return fmt.Sprintf("e%08d", 1<<20-n) },
}

// Every event id is known for good, whatever the order of the ids, however they came
// to be stored, with room for the hashes of all of them and without, and after a
// restart: the same event is a duplicate, another one under its id a conflict.
func TestIDsAreKnownForGood(t *testing.T) {
	t.Parallel()
	for name, id := range idOrders {
		for _, room := range []int{maxIDSlots, 64} {
			t.Run(fmt.Sprint(name, room), func(t *testing.T) {
				t.Parallel()
				s := openStore(t, testConfig(t))
				const chains, each, batch = 2, 400, 40
				seq := uint64(0)
				for round, pending := range []int{7, 64, 1 << 10} {
					s.maxIDSlots = room
					s.flush = flushLimits{tail: 1 << 12, slack: 1, pending: pending}
					for n := 0; n < each; n += batch {
						var evs []*events.Event
						for i := n; i < n+batch; i++ {
							seq++
							evs = append(evs, step(fmt.Sprint("c", i%chains), id(round*each+i), seq))
						}
						if got := slices.Compact(offer(t, s, evs...)); fmt.Sprint(got) != "[appended]" {
							t.Fatalf("round %d, events from %d on: %q", round, n, got)
						}
					}
					s = reopen(t, s)
				}
				mustCheck(t, s)
				var twice []*events.Event
				for n := range 3 * each {
					seq += 2
					other := step(fmt.Sprint("c", n%chains), id(n), seq)
					other.Sum[0]++
					twice = append(twice, step(fmt.Sprint("c", n%chains), id(n), seq-1), other)
				}
				got := offer(t, s, twice...)
				for i := 0; i < len(got); i += 2 {
					if got[i] != "duplicate" || got[i+1] != "rejected conflict" {
						t.Fatalf("id %d again: %q", i/2, got[i:i+2])
					}
				}
			})
		}
	}
}

// The sets of hashes stay within their room, and are given back.
func TestIDSetsAreBounded(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.CachedChains = 20
	s := openStore(t, cfg)
	s.maxIDSlots = 512
	s.flush = flushLimits{tail: 64, slack: 8, pending: 16}
	for seq := range uint64(1500) {
		e := step(fmt.Sprint("c", seq*seq%37), fmt.Sprint("e", seq), seq+1)
		if seq%500 == 499 {
			e = seal(fmt.Sprint("c", seq*seq%37), fmt.Sprint("e", seq), seq+1)
		}
		offer(t, s, e)
		places := 0
		for _, c := range s.chains {
			places += len(c.ids.seen.slots)
		}
		if places != s.idSlots || places > s.maxIDSlots+20*32 {
			t.Fatalf("after %d events %d places, and %d are counted", seq, places, s.idSlots)
		}
	}
}

// What is stored under ids, written in any portions and order, changed and read
// back, is what a map would hold; and no block has more ids than it may.
func TestIDBlocks(t *testing.T) {
	t.Parallel()
	s := openStore(t, testConfig(t))
	chainNo := uint64(1 << 40)
	rapid.Check(t, func(t *rapid.T) {
		chainNo += 2
		portions := rapid.SliceOfN(rapid.MapOfN(rapid.StringMatching("[a-c][0-9]{1,3}"), rapid.Uint64Range(1, 1<<40), 1, 90), 1, 8).Draw(t, "portions")
		want := map[string]uint64{}
		err := s.do(t.Context(), func(w *writer) error {
			singles := rapid.MapOfN(rapid.StringMatching("[a-c][0-9]{1,3}"), rapid.Uint64Range(1, 1<<40), 0, 3).Draw(t, "singles")
			for id, arrival := range singles { // as schema version 1 had them
				want[id] = arrival
				if err := w.write(tableIDs, idKey(nil, chainNo, id), &holder{arrival: arrival}); err != nil {
					return err
				}
			}
			for i, portion := range portions {
				var ids []heldID
				for id, arrival := range portion {
					want[id] = arrival
					ids = append(ids, heldID{id, holder{held: i%2 == 0, arrival: arrival}})
				}
				for no := chainNo - 1; no <= chainNo+1; no++ { // neighbours
					if err := w.storeIDs(no, slices.Clone(ids)); err != nil {
						return err
					}
				}
			}
			compareIDs(t, w, chainNo, want)
			return errors.New("not kept")
		})
		if err == nil || err.Error() != "not kept" {
			t.Fatal(err)
		}
	})
}

func compareIDs(t *rapid.T, w *writer, no uint64, want map[string]uint64) {
	cursor, err := w.idCursor()
	if err != nil {
		t.Fatal(err)
	}
	for id, arrival := range want {
		if h, err := w.storedID(cursor, no, id); err != nil || h.arrival != arrival {
			t.Fatalf("id %s: %+v, %v, want %d", id, h, err, arrival)
		}
		for _, none := range []string{id + "0", id[:1], "0" + id} {
			if h, err := w.storedID(cursor, no, none); err != nil || h.arrival != want[none] {
				t.Fatalf("id %s: %+v, %v", none, h, err)
			}
		}
	}
	got := map[string]uint64{}
	err = w.eachID(no, func(id string, h *holder) error {
		if got[id] != 0 {
			t.Fatalf("id %s comes twice", id)
		}
		got[id] = h.arrival
		return nil
	})
	if err != nil || !maps.Equal(got, want) {
		t.Fatalf("%d ids, %v, want %d", len(got), err, len(want))
	}
	c := w.buckets[tableIDs].Cursor()
	for k, v := c.Seek(key64(no)); k != nil && number(k) == no && isBlock(k); k, v = c.Next() {
		if ids, err := inBlock(nil, k, v[:len(v)-sumSize]); err != nil || len(ids) > blockIDs {
			t.Fatalf("a block of %d ids, %v", len(ids), err)
		}
	}
}

// A changed byte in a block of ids, also where its checksum fits again, is an error
// or another value, never a fault; blocks out of order are found by the check.
func TestIDBlockDamage(t *testing.T) {
	t.Parallel()
	var block []heldID
	for n := range blockIDs {
		block = append(block, heldID{fmt.Sprint("e", 100+n), holder{held: n%2 == 0, arrival: uint64(n + 1)}})
	}
	key := blockKey(nil, 1, block[0].id)
	var c codec
	for i := range block {
		block[i].fields(&c)
	}
	if again, err := inBlock(nil, key, c.buf); err != nil || !slices.Equal(again, block) {
		t.Fatalf("%+v, %v", again, err)
	}
	for i := range c.buf {
		if _, err := inBlock(nil, key, c.buf[:i]); err == nil && i == 0 {
			t.Error("an empty block is read")
		}
		c.buf[i] ^= 0x81
		if again, err := inBlock(nil, key, c.buf); err == nil && slices.Equal(again, block) {
			t.Errorf("byte %d: read as it was", i)
		} else if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("byte %d: %v", i, err)
		}
		c.buf[i] ^= 0x81
	}
	if _, err := inBlock(nil, blockKey(nil, 1, "e0"), c.buf); !errors.Is(err, ErrCorrupt) {
		t.Errorf("under another first id: %v", err)
	}
}

// The check holds each stored id against the journal, and their number.
func TestCheckOfIDs(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(ids []heldID) []heldID{
		"none":        func(ids []heldID) []heldID { return ids },
		"one missing": func(ids []heldID) []heldID { return ids[:len(ids)-1] },
		"one astray":  func(ids []heldID) []heldID { ids[3].arrival++; return ids },
		"one renamed": func(ids []heldID) []heldID { ids[3].id += "x"; return ids },
		"no holder":   func(ids []heldID) []heldID { ids[3].held = false; return ids },
		"another one": func(ids []heldID) []heldID { ids[3].sum[0]++; return ids },
		"disorder":    func(ids []heldID) []heldID { ids[3], ids[4] = ids[4], ids[3]; return ids },
		"later first": func(ids []heldID) []heldID { return ids[1:] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openStore(t, testConfig(t))
			s.flush = flushLimits{tail: 1 << 12, slack: 1, pending: 16}
			b := &events.Batch{Stream: testStream}
			for n := range 40 {
				b.Events = append(b.Events, step("c", fmt.Sprintf("e%04d", n), uint64(n+1)))
			}
			mustAppend(t, s, b)
			k, before := rewriteBlock(t, s, change)
			r := must(s.Check(t.Context(), nil))
			if found := len(r.Findings) > 0; found != (name != "none") {
				t.Errorf("%d findings", len(r.Findings))
			}
			putRaw(t, s, k, before)
		})
	}
}

// rewriteBlock stores the first block changed, with a checksum that fits, and
// returns what it was.
func rewriteBlock(t *testing.T, s *Store, change func([]heldID) []heldID) (k, before []byte) {
	t.Helper()
	var c codec
	err := s.view(func(v *view) error {
		b, err := v.bucket(tableIDs)
		if err != nil {
			return err
		}
		k, before = b.Cursor().First()
		k, before = slices.Clone(k), slices.Clone(before)
		ids, err := inBlock(nil, k, before[:len(before)-sumSize])
		if err != nil {
			return err
		}
		for _, h := range change(ids) {
			h.fields(&c)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	putRaw(t, s, k, append(c.buf, newView(nil).checksum(tableIDs, k, c.buf)...))
	return k, before
}

func putRaw(t *testing.T, s *Store, k, value []byte) {
	t.Helper()
	err := s.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte(tableIDs.name)).Put(k, value) })
	if err != nil {
		t.Fatal(err)
	}
}
