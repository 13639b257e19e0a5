package store

import (
	"bytes"
	"slices"
	"strings"

	"go.etcd.io/bbolt"
)

// The ids of a chain are stored in blocks, in the order of the ids, as a tree
// stores them in its leaves: a block holds the ids from its first one up to the next
// block's. One that is looked for is in the last block which begins at or before it,
// or nowhere; ids that come in ascending order fill one block after the other, with
// one value for many of them.
//
//	block   key: chain number, 0, first id    payload: per id: id, holder; ascending
//	single  key: chain number, id             payload: holder (schema version 1)
//
// No id begins with a byte 0, so all blocks of a chain come before its singles. Where
// both have an id, the block counts.
const blockIDs = 32 // ids of a block, at most

func blockKey(dst []byte, no uint64, first string) []byte {
	return append(idKey(dst, no, "\x00"), first...)
}

// isBlock: the key, which is of event_ids, is a block's.
func isBlock(k []byte) bool { return len(k) > 9 && k[8] == 0 }

func (h *heldID) fields(c *codec) {
	text(c, &h.id)
	h.holder.fields(c)
}

// inBlock appends the ids of a block to dst.
func inBlock(dst []heldID, k, payload []byte) ([]heldID, error) {
	c, from := codec{buf: payload, reading: true}, len(dst)
	for len(c.buf) > 0 && c.err == nil {
		dst = append(dst, heldID{})
		dst[len(dst)-1].fields(&c)
		if n := len(dst) - 1; n > from && dst[n].id <= dst[n-1].id {
			c.err = errCoding
		}
	}
	if c.err == nil && (len(dst) == from || dst[from].id != string(k[9:])) {
		c.err = errCoding
	}
	if c.err != nil {
		return nil, corrupt(tableIDs, k, c.err.Error())
	}
	return dst, nil
}

// block is the block that an id is in, or would be; nil: it lies before all blocks of
// the chain. seek is the block's key if the id began one.
func (n *near) block(seek []byte) (k, value []byte) {
	if bytes.Equal(n.k, seek) {
		return n.k, n.value
	}
	if !isBlock(n.before) || !bytes.HasPrefix(n.before, seek[:9]) {
		return nil, nil
	}
	return n.before, n.valueBefore
}

// storedID looks an id up in the table, which it moves c over; the zero holder:
// it is not there.
func (v *view) storedID(c *bbolt.Cursor, no uint64, id string) (holder, error) {
	h, err := v.idInBlock(c, no, id)
	if h.arrival != 0 || err != nil {
		return h, err
	}
	v.id = idKey(v.id[:0], no, id)
	n := around(c, v.id)
	if !bytes.Equal(n.k, v.id) {
		return holder{}, v.absent(tableIDs, v.id, v.id[:8], &n)
	}
	payload, err := v.open(tableIDs, n.k, n.value)
	if err == nil {
		err = decode(tableIDs, n.k, payload, &h)
	}
	return h, err
}

// idInBlock finds an id among the blocks; the zero holder: it is in none.
func (v *view) idInBlock(c *bbolt.Cursor, no uint64, id string) (h holder, err error) {
	v.id = blockKey(v.id[:0], no, id)
	n := around(c, v.id)
	k, value := n.block(v.id)
	if k == nil {
		return holder{}, v.absent(tableIDs, v.id, v.id[:8], &n)
	}
	payload, err := v.open(tableIDs, k, value)
	if err != nil {
		return holder{}, err
	}
	code := codec{buf: payload, reading: true}
	for len(code.buf) > 0 && code.err == nil {
		var n uint64
		code.uint(&n)
		is := string(code.take(n)) == id
		if h.fields(&code); is && code.err == nil {
			return h, nil
		}
		h = holder{}
	}
	if code.err != nil {
		return holder{}, corrupt(tableIDs, k, code.err.Error())
	}
	return holder{}, v.absent(tableIDs, v.id, v.id[:8], &n)
}

func findID(ids []heldID, id string) (int, bool) {
	return slices.BinarySearchFunc(ids, id, func(h heldID, id string) int { return strings.Compare(h.id, id) })
}

// storeIDs writes what ids of a chain stand for now. It puts them in order.
func (w *writer) storeIDs(no uint64, ids []heldID) error {
	slices.SortFunc(ids, func(a, b heldID) int { return strings.Compare(a.id, b.id) })
	for len(ids) > 0 {
		n, err := w.storeInBlock(no, ids)
		if err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

// storeInBlock writes those of the ids, in order, that go where the first one does,
// and tells how many that are.
func (w *writer) storeInBlock(no uint64, ids []heldID) (int, error) {
	c, err := w.idCursor()
	if err != nil {
		return 0, err
	}
	w.number = blockKey(w.number[:0], no, ids[0].id)
	near := around(c, w.number)
	k, value := near.block(w.number)
	if bytes.Equal(near.k, w.number) {
		near.k, near.value = c.Next()
	}
	if err := w.absent(tableIDs, w.number, w.number[:8], &near); err != nil {
		return 0, err
	}
	w.block = w.block[:0]
	if k != nil {
		payload, err := w.open(tableIDs, k, value)
		if err != nil {
			return 0, err
		}
		if w.block, err = inBlock(w.block, k, payload); err != nil {
			return 0, err
		}
	}
	n := len(ids)
	if isBlock(near.k) && bytes.HasPrefix(near.k, w.number[:9]) { // the rest goes from there on
		n, _ = findID(ids, string(near.k[9:]))
	}
	most := blockIDs
	if old := len(w.block); old > 0 && ids[0].id <= w.block[old-1].id {
		w.block = merge(w.block, ids[:n])
		most = evenly(len(w.block))
	} else {
		w.block = append(w.block, ids[:n]...) // the usual case; what is full stays full
	}
	return n, w.putBlocks(no, w.block, most)
}

// merge puts ids into a block; where both have one, it is what ids say.
func merge(block, ids []heldID) []heldID {
	for i := range ids {
		at, found := findID(block, ids[i].id)
		if !found {
			block = slices.Insert(block, at, heldID{})
		}
		block[at] = ids[i]
	}
	return block
}

// evenly gives the size of blocks for n ids, so that each has room for more.
func evenly(n int) int {
	blocks := (n + blockIDs - 1) / blockIDs
	return (n + blocks - 1) / blocks
}

// putBlocks stores ids in blocks of most.
func (w *writer) putBlocks(no uint64, ids []heldID, most int) error {
	for part := range slices.Chunk(ids, most) {
		w.number = blockKey(w.number[:0], no, part[0].id)
		w.coding = codec{buf: w.scratch[:0]}
		for i := range part {
			part[i].fields(&w.coding)
		}
		w.scratch = w.coding.buf
		if err := w.put(tableIDs, w.number, w.scratch); err != nil {
			return err
		}
	}
	return nil
}

// idCursor is one cursor for all of the transaction's look-ups: each of its own
// would take memory. After a change of the table it must be moved before it is read.
func (w *writer) idCursor() (*bbolt.Cursor, error) {
	if w.ids == nil {
		b, err := w.table(tableIDs)
		if err != nil {
			return nil, err
		}
		w.ids = b.Cursor()
	}
	return w.ids, nil
}

// eachID visits the stored ids of a chain, of those that are there twice the one
// that counts. Blocks that are out of order are an error.
func (v *view) eachID(no uint64, visit func(id string, h *holder) error) error {
	prefix, last := key64(no), ""
	var block []heldID
	b, err := v.bucket(tableIDs)
	if err != nil {
		return err
	}
	look := b.Cursor()
	return v.each(tableIDs, prefix, func(k, payload []byte) (bool, error) {
		if !bytes.HasPrefix(k, prefix) {
			return false, nil
		}
		if !isBlock(k) {
			return true, v.visitSingle(look, no, k, payload, visit)
		}
		var err error
		if block, err = inBlock(block[:0], k, payload); err != nil {
			return false, err
		}
		for i := range block {
			if block[i].id <= last {
				return false, contradicts(tableIDs, k, "the ids are out of order")
			}
			last = block[i].id
			if err := visit(last, &block[i].holder); err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

func (v *view) visitSingle(look *bbolt.Cursor, no uint64, k, payload []byte, visit func(id string, h *holder) error) error {
	id := string(k[8:])
	newer, err := v.idInBlock(look, no, id)
	if newer.arrival != 0 || err != nil {
		return err
	}
	var h holder
	if err := decode(tableIDs, k, payload, &h); err != nil {
		return err
	}
	return visit(id, &h)
}
