package store

import (
	"bytes"
	"encoding/binary"

	"go.etcd.io/bbolt"
)

// A value of the journal is one entry, or a frame of several with consecutive
// arrival numbers. A tree is asked once for a frame where it is asked for each
// entry otherwise, and a large page run is one write; so a busy store spends
// its time on its events and not on bbolt's pages. Each entry keeps a checksum
// of its own, over its own arrival number: one can be read, and a damaged one
// named, without the others. A batch writes whole frames, and what is left of it as
// single entries: bbolt writes the last page of a tree again with every commit,
// and a frame in it would be written over and over.
//
//	entry   key: arrival number                           value: payload, checksum
//	frame   key: number of the first entry, count less 1  value: per entry its length
//	        (8 bytes)                       (1 byte)      (uvarint), payload, checksum
const (
	frameEntries = 64      // entries of a frame
	frameBytes   = 1 << 16 // a frame is ended when it has so many
)

// gathered are the entries of the running transaction that are in no value yet.
type gathered struct {
	first uint64 // arrival number of the first one
	ends  []int  // where each one ends in buf
	buf   []byte // the entries as they stand in a frame
	key   []byte
}

func (g *gathered) reset() { g.ends, g.buf = g.ends[:0], g.buf[:0] }

// append adds an entry to the journal.
func (w *writer) append(e *entry) error {
	w.coding = codec{buf: w.scratch[:0]}
	e.fields(&w.coding)
	w.scratch = w.coding.buf
	return w.gather(e.Arrival, w.scratch)
}

// gather adds an entry that is encoded.
func (w *writer) gather(arrival uint64, payload []byte) error {
	g := &w.gathered
	if len(g.ends) == 0 {
		g.first = arrival
	}
	sum := w.checksum(tableJournal, w.key(arrival), payload)
	g.buf = binary.AppendUvarint(g.buf, uint64(len(payload)+sumSize))
	g.buf = append(append(g.buf, payload...), sum...)
	g.ends = append(g.ends, len(g.buf))
	if len(g.ends) < frameEntries && len(g.buf) < frameBytes {
		return nil
	}
	return w.putFrame()
}

// putFrame stores what has been gathered as one value.
func (w *writer) putFrame() error {
	g := &w.gathered
	if len(g.ends) < 2 {
		return w.putEntries()
	}
	b, err := w.table(tableJournal)
	if err != nil {
		return err
	}
	g.key = append(binary.BigEndian.AppendUint64(g.key[:0], g.first), byte(len(g.ends)-1))
	value := w.arena.concat(g.buf, nil)
	g.reset()
	return b.Put(g.key, value)
}

// putEntries stores what has been gathered one by one.
func (w *writer) putEntries() error {
	g := &w.gathered
	if len(g.ends) == 0 {
		return nil
	}
	b, err := w.table(tableJournal)
	if err != nil {
		return err
	}
	from := 0
	for i, end := range g.ends {
		_, n := binary.Uvarint(g.buf[from:])
		if err := b.Put(w.key(g.first+uint64(i)), w.arena.concat(g.buf[from+n:end], nil)); err != nil {
			return err
		}
		from = end
	}
	g.reset()
	return nil
}

// span reads the key of a journal value: the entries in it.
func span(k []byte) (first uint64, count int) {
	switch len(k) {
	case 8:
		return number(k), 1
	case 9:
		if k[8] > 0 {
			return number(k), int(k[8]) + 1
		}
	}
	return 0, 0 // no key of the journal
}

// inValue visits the entries in a journal value, unchecked, as long as visit
// returns true. A frame that is not laid out as one is an error.
func inValue(k, value []byte, visit func(arrival uint64, raw []byte) (bool, error)) error {
	first, count := span(k)
	if len(k) == 8 {
		_, err := visit(first, value)
		return err
	}
	for i := range count {
		n, size := binary.Uvarint(value)
		if size <= 0 || n > uint64(len(value)-size) {
			return corrupt(tableJournal, k, "frame is not laid out as it should be")
		}
		if more, err := visit(first+uint64(i), value[size:size+int(n)]); err != nil || !more {
			return err
		}
		value = value[size+int(n):]
	}
	if len(value) != 0 || count == 0 {
		return corrupt(tableJournal, k, "frame is not laid out as it should be")
	}
	return nil
}

// holding moves the cursor to the value that holds the entry, if there is one,
// or else to the first one behind it.
func holding(c *bbolt.Cursor, arrival uint64) (k, value []byte) {
	key := key64(arrival)
	k, value = c.Seek(key)
	if bytes.HasPrefix(k, key) {
		return k, value
	}
	before, framed := c.Prev()
	if k == nil {
		before, framed = c.Last()
	}
	if first, count := span(before); before != nil && arrival < first+uint64(count) {
		return before, framed
	}
	return c.Seek(key)
}

// journaled returns the checked payload of an entry; nil: there is none.
func (v *view) journaled(arrival uint64) (payload []byte, err error) {
	b, err := v.bucket(tableJournal)
	if err != nil {
		return nil, err
	}
	k, value := holding(b.Cursor(), arrival)
	if k == nil {
		return nil, nil
	}
	err = inValue(k, value, func(at uint64, raw []byte) (bool, error) {
		if at < arrival {
			return true, nil
		}
		if at == arrival {
			payload, err = v.open(tableJournal, key64(at), raw)
		}
		return false, err
	})
	return payload, err
}

// eachRaw visits the entries of the journal from an arrival number on, unchecked.
func (v *view) eachRaw(from uint64, visit func(arrival uint64, raw []byte) error) error {
	b, err := v.bucket(tableJournal)
	if err != nil {
		return err
	}
	c := b.Cursor()
	for k, value := holding(c, from); k != nil; k, value = c.Next() {
		err := inValue(k, value, func(arrival uint64, raw []byte) (bool, error) {
			if arrival < from {
				return true, nil
			}
			return true, visit(arrival, raw)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// journal reads the entry of an arrival number; nil: there is none.
func (v *view) journal(arrival uint64) (*entry, error) {
	payload, err := v.journaled(arrival)
	if payload == nil || err != nil {
		return nil, err
	}
	return decodeEntry(arrival, payload)
}

func decodeEntry(arrival uint64, payload []byte) (*entry, error) {
	e := new(entry)
	if err := e.decode(arrival, payload); err != nil {
		return nil, err
	}
	return e, nil
}

// decode reads an entry in place.
func (e *entry) decode(arrival uint64, payload []byte) error {
	*e = entry{}
	c := codec{buf: payload, reading: true}
	e.fields(&c)
	if err := c.finish(); err != nil {
		return corrupt(tableJournal, key64(arrival), err.Error())
	}
	e.Arrival = arrival
	return nil
}
