package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaind/chaind/events"
)

// One bit of a key in the file changes: the name of chain c. Its next event must not
// begin the chain anew.
func TestDamagedNameIsNoNewGenesis(t *testing.T) {
	t.Parallel()
	cfg, _, b := oneBlockEach(t)
	key := nameKey(testKey("c"))
	n := 0
	for at := 0; ; {
		i := bytes.Index(b[at:], key)
		if i < 0 {
			break
		}
		b[at+i] ^= 1 // all copies, old pages included: a, the tenant's first letter
		at += i + 1
		n++
	}
	if err := os.WriteFile(filepath.Join(cfg.Dir, DatabaseFile), b, 0o600); err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		t.Fatal("the name is not in the file")
	}
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want := "[rejected chain_damaged rejected chain_damaged appended appended]"
	if got := offer(t, s, step("c", "n", 20), step("c", "a", 21), step("d", "n", 22), step("e", "a", 23)); fmt.Sprint(got) != want {
		t.Errorf("%q", got)
	}
	if r, err := s.Chain(testKey("c")); !errors.Is(err, ErrCorrupt) {
		t.Errorf("the chain is %+v, %v", r, err)
	}
	if len(must(s.Check(t.Context(), nil)).Findings) == 0 {
		t.Error("the check finds nothing")
	}
}

// The same with the key of a block of event ids: an event that was taken comes again.
// The neighbour, who has nothing to do with it, goes on.
func TestDamagedIDKeyTakesNothingTwice(t *testing.T) {
	t.Parallel()
	cfg, key, whole := oneBlockEach(t)
	path, mark := filepath.Join(cfg.Dir, DatabaseFile), filepath.Join(cfg.Dir, MarkFile)
	marked := must(os.ReadFile(mark))
	for at := range key {
		for bit := range 8 {
			flipped := bytes.Clone(key)
			flipped[at] ^= 1 << bit
			if err := os.WriteFile(path, bytes.ReplaceAll(whole, key, flipped), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(mark, marked, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			if got := offer(t, s, step("c", "a", 20), step("d", "n", 21)); fmt.Sprint(got) != "[rejected chain_damaged appended]" {
				t.Errorf("key %x, byte %d, bit %d: %q", key, at, bit, got)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// oneBlockEach is a stopped store with two chains, the key of the first one's block of
// ids, and the file.
func oneBlockEach(t *testing.T) (cfg Config, key, whole []byte) {
	t.Helper()
	cfg = testConfig(t)
	cfg.CachedChains = 1
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.flush = flushLimits{tail: 4, slack: 1, pending: 1}
	give(t, s, testStream, step("c", "a", 1), step("c", "b", 2), step("d", "a", 3))
	for i := uint64(4); i < 20; i++ {
		give(t, s, testStream, step("d", fmt.Sprint("d", i), i))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return cfg, blockKey(nil, 1, "a"), must(os.ReadFile(filepath.Join(cfg.Dir, DatabaseFile)))
}

// In a table of many pages, one key is damaged, in a leaf, in a branch, or in both:
// what is stored is found, or its reader is told of damage; and what is not there is
// not found, in most places without an error.
func TestDamagedKeyHidesNothing(t *testing.T) {
	t.Parallel()
	const chains, ids = 400, 900
	cfg := testConfig(t)
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.flush = flushLimits{tail: 4, slack: 1, pending: 1}
	r := rand.New(rand.NewPCG(1, 2))
	var batch []*events.Event
	for i := range chains {
		batch = append(batch, step(fmt.Sprint("c", r.Uint32(), "-", i), "a", uint64(len(batch)+1)))
	}
	for i := range ids {
		batch = append(batch, step(batch[i%2].Key.Chain, fmt.Sprint("i", r.Uint32(), "-", i), uint64(len(batch)+1)))
	}
	for part := range slices.Chunk(batch, 50) {
		give(t, s, testStream, part...)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(cfg.Dir, DatabaseFile)
	whole := must(os.ReadFile(path))
	var told, spared int
	for round := range 150 {
		key := nameKey(batch[r.IntN(chains)].Key)
		if round%2 == 1 {
			key = storedBlock(t, cfg, path, whole, r)
		}
		var places []int
		for at := 0; ; at++ {
			i := bytes.Index(whole[at:], key)
			if i < 0 {
				break
			}
			at += i
			places = append(places, at)
		}
		if len(places) == 0 {
			t.Fatalf("%x is not in the file", key)
		}
		if round%3 != 0 {
			i := r.IntN(len(places))
			places = places[i : i+1]
		}
		file, at, bit := bytes.Clone(whole), r.IntN(len(key)), byte(1)<<r.IntN(8)
		for _, i := range places {
			file[i+at] ^= bit
		}
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		a, b := lookEverywhere(t, cfg, batch, chains)
		told, spared = told+a, spared+b
	}
	if told < 50 || spared < 100*chains {
		t.Errorf("%d look-ups were told of damage, and %d of what is not there were told so", told, spared)
	}
}

// storedBlock is the key of some block of ids.
func storedBlock(t *testing.T, cfg Config, path string, whole []byte, r *rand.Rand) (key []byte) {
	t.Helper()
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	s := must(OpenReadOnly(cfg))
	defer s.Close()
	var keys [][]byte
	err := s.view(func(v *view) error {
		return v.tx.Bucket([]byte(tableIDs.name)).ForEach(func(k, _ []byte) error { keys = append(keys, bytes.Clone(k)); return nil })
	})
	if err != nil || len(keys) < 300 {
		t.Fatalf("%d blocks, %v", len(keys), err)
	}
	return keys[r.IntN(len(keys))]
}

// lookEverywhere looks for all that was stored, and as much that was not, and counts
// who was told of damage, and who was told that there is nothing.
func lookEverywhere(t *testing.T, cfg Config, batch []*events.Event, chains int) (told, spared int) {
	t.Helper()
	s, err := OpenReadOnly(cfg)
	if err != nil {
		return 1, 0
	}
	defer s.Close()
	numbers := make(map[events.Key]uint64, chains)
	for i := range chains {
		numbers[batch[i].Key] = uint64(i + 1)
	}
	judge := func(what string, got, want uint64, err error) {
		switch {
		case errors.Is(err, ErrCorrupt):
			told++
		case err != nil || got != want:
			t.Errorf("%s: %d, want %d, %v", what, got, want, err)
		case want == 0:
			spared++
		}
	}
	err = s.view(func(v *view) error {
		cursor := v.tx.Bucket([]byte(tableIDs.name)).Cursor()
		for i, e := range batch {
			id, other, want := e.ID, e.Key, uint64(i+1)
			if i < chains {
				no, err := v.chainNumber(e.Key)
				judge("chain "+e.Key.Chain, no, want, err)
				other.Chain += "x"
				no, err = v.chainNumber(other)
				judge("no chain "+other.Chain, no, 0, err)
			}
			h, err := v.storedID(cursor, numbers[e.Key], id)
			judge("id "+id, h.arrival, want, err)
			h, err = v.storedID(cursor, numbers[e.Key], id+"x")
			judge("no id "+id, h.arrival, 0, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return told, spared
}
