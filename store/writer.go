package store

import (
	"encoding/binary"
	"slices"

	"github.com/chaind/chaind/events"
	"go.etcd.io/bbolt"
)

// writer is one running write transaction. Everything it changes in memory
// besides the transaction is either its own until publish, or thrown away and
// read again from the database when the transaction fails (Store.recover).
type writer struct {
	*view
	s        *Store
	n        counters
	scratch  []byte   // the value being encoded
	state    []byte   // the chain state being encoded
	number   []byte   // the key being used
	coding   codec    // with scratch; here so that it needs no memory of its own
	entry    entry    // the entry being written
	block    []heldID // the ids of the block being changed
	gathered gathered // entries that are in no value of the journal yet
	arena    *arena   // holds the values until the transaction ends
	buckets  map[*table]*bbolt.Bucket
	ids      *bbolt.Cursor // of the table of event ids; nil: not needed yet

	touched []*chain
	created map[events.Key]*chain
	epochs  map[string]*Epoch // changed ones, by stream name

	asides  []*aside     // chains set aside
	takenUp []events.Key // chains that are no longer
	life    *life        // begun in the transaction; nil: none

	newJobs, newRejections bool
}

// arena keeps values in place until the transaction ends: bbolt refers to
// them, without a copy, up to the commit. Its memory is used again.
type arena struct {
	chunks [][]byte
	used   int // chunks in use
}

const arenaChunk = 1 << 20

func (a *arena) reset() {
	const keep = 32 // MiB that stay for the next transaction
	if len(a.chunks) > keep {
		a.chunks = slices.Delete(a.chunks, keep, len(a.chunks))
	}
	for i := range a.chunks {
		a.chunks[i] = a.chunks[i][:0]
	}
	a.used = 0
}

// concat returns payload and sum as one slice.
func (a *arena) concat(payload, sum []byte) []byte {
	n := len(payload) + len(sum)
	if n > arenaChunk {
		return append(append(make([]byte, 0, n), payload...), sum...)
	}
	for a.used < len(a.chunks) && cap(a.chunks[a.used])-len(a.chunks[a.used]) < n {
		a.used++
	}
	if a.used == len(a.chunks) {
		a.chunks = append(a.chunks, make([]byte, 0, arenaChunk))
	}
	c := &a.chunks[a.used]
	at := len(*c)
	*c = append(append(*c, payload...), sum...)
	return (*c)[at:len(*c):len(*c)]
}

func (w *writer) table(t *table) (*bbolt.Bucket, error) {
	if b := w.buckets[t]; b != nil {
		return b, nil
	}
	b, err := w.bucket(t)
	if err != nil {
		return nil, err
	}
	b.FillPercent = t.fill
	w.buckets[t] = b
	return b, nil
}

// put stores a payload with its checksum.
func (w *writer) put(t *table, key, payload []byte) error {
	b, err := w.table(t)
	if err != nil {
		return err
	}
	return b.Put(key, w.arena.concat(payload, w.checksum(t, key, payload)))
}

// write encodes and stores a record.
func (w *writer) write(t *table, key []byte, r record) error {
	w.coding = codec{buf: w.scratch[:0]}
	r.fields(&w.coding)
	w.scratch = w.coding.buf
	return w.put(t, key, w.scratch)
}

// key is key64 in memory that is used again; bbolt copies keys.
func (w *writer) key(n uint64) []byte {
	w.number = binary.BigEndian.AppendUint64(w.number[:0], n)
	return w.number
}

// get is as view's, but goes through the buckets at hand.
func (w *writer) get(t *table, key []byte) ([]byte, error) {
	b, err := w.table(t)
	if err != nil {
		return nil, err
	}
	value := b.Get(key)
	if value == nil {
		return nil, nil
	}
	return w.open(t, key, value)
}

// finish writes what the transaction changed besides single values.
func (w *writer) finish() error {
	for _, e := range w.epochs {
		if err := w.write(tableEpochs, key64(uint64(e.Number)), e); err != nil {
			return err
		}
	}
	if err := w.putEntries(); err != nil {
		return err
	}
	if err := w.flushDue(); err != nil {
		return err
	}
	if err := w.putUnread(); err != nil {
		return err
	}
	if err := w.renewLife(); err != nil {
		return err
	}
	w.n.tail = w.tail()
	return w.write(tableMeta, metaCounters, &w.n)
}
