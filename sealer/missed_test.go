package sealer

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/store"
	"go.etcd.io/bbolt"
)

// TestDamagedChainMissesAnEvent: an event was rejected, and acknowledged, because its
// chain was damaged. The chain is repaired and ends, and nobody sends the event again:
// nothing that the producer declared misses it, and record and bundle say all the same
// that it was rejected, and that the chain is not complete. It may be, when the event is
// sent again before the end.
func TestDamagedChainMissesAnEvent(t *testing.T) {
	t.Parallel()
	damagedChain(t, false, events.Incomplete, `["lost","1:2-2 chain_damaged"]`)
	damagedChain(t, true, events.Complete)
}

// damagedChain makes such a chain and looks for what must be in its bundle.
func damagedChain(t *testing.T, again bool, want events.Coverage, inBundle ...string) {
	t.Helper()
	s := sent{t: t, chain: "damaged", lim: events.DefaultLimits}
	dir := t.TempDir()
	begin := `,"phase":"begin","kind":{"kind":"step_executed","step_id":"a","step_index":0}`
	db := openStore(t, dir)
	// flip changes the chain's record, or changes it back.
	flip := func() *store.Store {
		t.Helper()
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		flipFirst(t, filepath.Join(dir, store.DatabaseFile), "chains")
		again, err := store.Open(store.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { again.Close() })
		return again
	}
	feed(t, db, []*events.Event{s.event("i", events.VerbIntent, 1, "")}, 1)
	before, err := db.Chain(s.key())
	if err != nil {
		t.Fatal(err)
	}
	db = flip()
	effects, err := db.Append(t.Context(), &events.Batch{Stream: events.Stream{Name: "EVIDENCE", CreatedNS: 1}, Events: []*events.Event{s.event("b", events.VerbStep, 2, begin)}})
	if err != nil || effects[0].Fault == nil || effects[0].Fault.Class != events.ChainDamaged {
		t.Fatal(effects, err)
	}
	db = flip()
	seq, end := uint64(3), `,"producer_head":"`+before.State.Head.String()+`"`
	if again {
		seq, end = 4, `,"event_count":3`
		feed(t, db, []*events.Event{s.event("b", events.VerbStep, 3, begin)}, 1)
	}
	feed(t, db, []*events.Event{s.event("end", events.VerbSeal, seq, end)}, 1)
	record, err := db.Chain(s.key())
	if err != nil {
		t.Fatal(err)
	}
	if got, why := record.Coverage(); got != want || record.State.Rejected != 1 || record.Fixed.State.Rejected != 1 {
		t.Errorf("the record says %s %v, %d rejected, %d at the end", got, why, record.State.Rejected, record.Fixed.State.Rejected)
	}
	text, _, err := Pack(t.Context(), db, record, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	checkBundle(t, record, text)
	for _, part := range append(inBundle, `"rejected:2"`, `["class","chain_damaged"]`) {
		if !strings.Contains(text, part) {
			t.Errorf("%s is not in the bundle", part)
		}
	}
}

// flipFirst changes a bit of the first value of a table, or changes it back.
func flipFirst(t *testing.T, path, table string) {
	t.Helper()
	f, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(table))
		k, v := b.Cursor().First()
		v = append([]byte(nil), v...)
		v[len(v)/2] ^= 4
		return b.Put(append([]byte(nil), k...), v)
	}); err != nil {
		t.Fatal(err)
	}
}

// TestSegmentOutOfOrder: a segment, or the end, comes at a sequence that was recorded
// as lost, before the chain's first event, or from a stream that was left and gone
// back to. The chain is sealed, and its record says like its bundle that it is not
// complete: the order of its segments is not that of the stream.
func TestSegmentOutOfOrder(t *testing.T) {
	t.Parallel()
	s := sent{t: t, chain: "order", lim: events.DefaultLimits}
	s.check([]*events.Event{
		s.event("i", events.VerbIntent, 6, `,"producer_seq":0`),
		s.event("s", events.VerbStep, 5, `,"producer_seq":1`),
		s.event("end", events.VerbSeal, 7, `,"producer_seq":2`),
	}, 1, events.Incomplete)
	s.check([]*events.Event{
		s.event("i", events.VerbIntent, 6, `,"producer_seq":0`),
		s.event("end", events.VerbSeal, 5, `,"producer_seq":1`),
	}, 1, events.Incomplete)

	db := openStore(t, t.TempDir())
	for i, c := range []struct {
		stream string
		event  *events.Event
	}{
		{"A", s.event("i", events.VerbIntent, 1, `,"producer_seq":0`)},
		{"B", s.event("s", events.VerbStep, 1, `,"producer_seq":1`)},
		{"A", s.event("end", events.VerbSeal, 2, `,"producer_seq":2`)},
	} {
		if _, err := db.Append(t.Context(), &events.Batch{Stream: events.Stream{Name: c.stream, CreatedNS: 1}, Events: []*events.Event{c.event}}); err != nil {
			t.Fatal(i, err)
		}
	}
	record, err := db.Chain(s.key())
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := Pack(t.Context(), db, record, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	checkBundle(t, record, text)
}
