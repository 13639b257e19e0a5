package store

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"
)

// A checksum covers its key, and so tells of a damaged one; but whoever looks for
// what was stored under it finds nothing, and would take an event twice or begin a
// chain anew. A damaged key lies next to the place where the search for it ends: the
// search within a leaf compares with it last of all that could decide otherwise. And
// so does one that misleads the search for another. So before something is taken to
// be new, both entries next to its place are opened. A damaged key in a branch leads
// to a leaf that the searched key does not fit into, before or behind all that is
// there: then the neighbours are out of order.

// near are the entries around the place of a key in a table.
type near struct {
	k, value            []byte // with the key, or the first one behind its place
	before, valueBefore []byte // the last one before its place; nil also where k is the key
}

func around(c *bbolt.Cursor, key []byte) (n near) {
	n.k, n.value = c.Seek(key)
	switch {
	case bytes.Equal(n.k, key):
	case n.k == nil:
		n.before, n.valueBefore = c.Last()
	default:
		n.before, n.valueBefore = c.Prev()
	}
	return n
}

// absent makes sure that the key, which was not found, is not there; or whether
// it is cannot be told, which is an error. A damaged neighbour that belongs to
// somebody else and leads nobody astray is no reason: own is what the keys begin
// with that it must not have.
func (v *view) absent(t *table, key, own []byte, n *near) error {
	if n.k != nil && bytes.Compare(n.k, key) <= 0 || bytes.Compare(n.before, key) >= 0 {
		return contradicts(t, key, "the table is out of order where the value would be")
	}
	if err := v.beside(t, key, own, n.k, n.value); err != nil {
		return err
	}
	return v.beside(t, key, own, n.before, n.valueBefore)
}

// beside is absent for one neighbour.
func (v *view) beside(t *table, key, own, k, value []byte) error {
	if k == nil {
		return nil
	}
	_, err := v.open(t, k, value)
	if err == nil {
		return nil
	}
	was := v.keyByValue(t, k, value)
	if was != nil && !bytes.HasPrefix(k, own) && !bytes.HasPrefix(was, own) && bytes.Compare(was, key) == bytes.Compare(k, key) {
		return nil
	}
	return contradicts(t, bytes.Clone(k), fmt.Sprintf("value does not match its checksum, and may be what is looked for under %x", key))
}

// keyByValue is the key of a damaged entry as far as its value tells, if it is the
// key that is damaged, and the entry's own if that is a damaged value; nil: that
// cannot be told.
func (v *view) keyByValue(t *table, k, value []byte) []byte {
	payload := value[:max(len(value)-sumSize, 0)]
	if t == tableIDs {
		return v.idKeyByValue(k, payload)
	}
	if len(payload) != 8 {
		return nil
	}
	rec, err := v.chainRecord(number(payload))
	if err != nil {
		return nil
	}
	return nameKey(rec.key)
}

// idKeyByValue asks the journal whose ids they are.
func (v *view) idKeyByValue(k, payload []byte) []byte {
	var first heldID
	c := codec{buf: payload, reading: true}
	if first.fields(&c); c.err == nil {
		if e, err := v.journal(first.arrival); err == nil && e != nil && e.EventID == first.id {
			return blockKey(nil, e.chain, first.id)
		}
	}
	var single holder
	c = codec{buf: payload, reading: true}
	if single.fields(&c); c.finish() == nil {
		if e, err := v.journal(single.arrival); err == nil && e != nil && e.EventID != "" {
			return idKey(nil, e.chain, e.EventID)
		}
	}
	return k
}
