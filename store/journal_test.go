package store

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaind/chaind/events"
	"go.etcd.io/bbolt"
)

// framed is a store whose journal has frames and single entries, of small and
// large events, and the ids of the entries by arrival number less 1.
func framed(t *testing.T) (*Store, []string) {
	t.Helper()
	s := openStore(t, testConfig(t))
	rnd := rand.New(rand.NewPCG(8, 8))
	var ids []string
	for _, n := range []int{1, 63, 64, 65, 200, 2, 128, 7} {
		b := &events.Batch{Stream: testStream}
		for range n {
			id := fmt.Sprint("e", len(ids))
			if rnd.IntN(20) == 0 {
				id += strings.Repeat("x", 100)
			}
			ids = append(ids, id)
			b.Events = append(b.Events, step(fmt.Sprint("c", rnd.IntN(3)), id, uint64(len(ids))))
		}
		mustAppend(t, s, b)
	}
	return s, ids
}

// Every entry is found by its number, and from every number on in order,
// however the batches were cut into values.
func TestJournalFrames(t *testing.T) {
	t.Parallel()
	s, ids := framed(t)
	err := s.view(func(v *view) error {
		values, err := countKeys(v.tx)
		if err != nil || values[8] == 0 || values[9] == 0 {
			t.Errorf("keys by length: %v, %v", values, err)
		}
		for i, id := range ids {
			at := uint64(i + 1)
			e, err := v.journal(at)
			if err != nil || e == nil || e.EventID != id || e.Arrival != at {
				t.Fatalf("entry %d: %+v, %v", at, e, err)
			}
			want := at
			err = v.eachRaw(at, func(arrival uint64, raw []byte) error {
				payload, err := v.open(tableJournal, key64(arrival), raw)
				if err != nil {
					return err
				}
				e, err := decodeEntry(arrival, payload)
				if arrival != want || e.EventID != ids[arrival-1] {
					t.Errorf("from %d: entry %d is %+v, %v", at, arrival, e, err)
				}
				want++
				return err
			})
			if err != nil || want != uint64(len(ids)+1) {
				t.Fatalf("from %d: ended at %d, %v", at, want, err)
			}
		}
		for _, none := range []uint64{0, uint64(len(ids) + 1)} {
			if e, err := v.journal(none); e != nil || err != nil {
				t.Errorf("entry %d: %+v, %v", none, e, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	mustCheck(t, s)
}

func countKeys(tx *bbolt.Tx) (map[int]int, error) {
	lengths := map[int]int{}
	return lengths, tx.Bucket([]byte(tableJournal.name)).ForEach(func(k, _ []byte) error {
		lengths[len(k)]++
		return nil
	})
}

// A changed byte of a frame is an error for the entries that it touches, and
// nobody reads an entry other than it was written. The others stay readable,
// unless it was a length.
func TestJournalFrameDamage(t *testing.T) {
	t.Parallel()
	s, _ := framed(t)
	var key, value []byte
	err := s.db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte(tableJournal.name)).Cursor()
		for k, v := c.First(); k != nil && key == nil; k, v = c.Next() {
			if len(k) == 9 {
				key, value = slices.Clone(k), slices.Clone(v)
			}
		}
		return nil
	})
	if err != nil || key == nil {
		t.Fatal("no frame", err)
	}
	whole := rawEntries(t, key, value)
	for i := range value {
		value[i] ^= 0x81
		damaged := 0
		err := inValue(key, value, func(at uint64, raw []byte) (bool, error) {
			payload, err := newView(nil).open(tableJournal, key64(at), raw)
			if err != nil {
				damaged++
			} else if string(payload) != whole[at] {
				t.Errorf("byte %d: entry %d is read as something else", i, at)
			}
			return true, nil
		})
		if err == nil && damaged == 0 {
			t.Errorf("byte %d: nobody notices", i)
		}
		value[i] ^= 0x81
	}
	for n := range value {
		if err := inValue(key, value[:n], func(uint64, []byte) (bool, error) { return true, nil }); !errors.Is(err, ErrCorrupt) {
			t.Errorf("the first %d bytes: %v", n, err)
		}
	}
	for _, k := range [][]byte{key[:7], append(key[:8:8], 0), append(key[:8:8], key[8]-1), append(key[:8:8], key[8]+1), append(key[:9:9], 0)} {
		if err := inValue(k, value, func(uint64, []byte) (bool, error) { return true, nil }); !errors.Is(err, ErrCorrupt) {
			t.Errorf("under the key %x: %v", k, err)
		}
	}
}

// rawEntries are the payloads of an undamaged frame, by arrival number.
func rawEntries(t *testing.T, key, value []byte) map[uint64]string {
	t.Helper()
	whole := map[uint64]string{}
	err := inValue(key, value, func(at uint64, raw []byte) (bool, error) {
		payload, err := newView(nil).open(tableJournal, key64(at), raw)
		whole[at] = string(payload)
		return true, err
	})
	if err != nil || len(whole) != frameEntries {
		t.Fatalf("%d entries, %v", len(whole), err)
	}
	return whole
}

// A store of schema version 1, written by a program of that version with the
// first 60 messages of the small vector, is refused, upgraded with a copy kept,
// and then goes on with frames behind its single entries.
func TestUpgradeFromSchema1(t *testing.T) {
	t.Parallel()
	f, err := os.Open(filepath.Join("testdata", "schema-1.db.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	old, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	mark, err := os.ReadFile(filepath.Join("testdata", "schema-1.store.id"))
	if err != nil {
		t.Fatal(err)
	}
	cfg := testConfig(t)
	place(t, cfg.Dir, old, mark)
	if _, err := Open(cfg); !errors.Is(err, ErrSchema) {
		t.Fatalf("a store of version 1 is opened: %v", err)
	}
	r, err := Upgrade(t.Context(), cfg)
	if err != nil || r.From != 1 || r.To != SchemaVersion {
		t.Fatalf("%+v, %v", r, err)
	}
	s := openStore(t, cfg)
	mustCheck(t, s)
	v := loadVector(t, "small")
	for i := 0; i < len(v.Messages); i += 101 { // the first ones come again
		mustAppend(t, s, v.batch(i, i+101))
	}
	mustCheck(t, s)
	v.verify(t, s)
	v.verify(t, reopen(t, s))
}
