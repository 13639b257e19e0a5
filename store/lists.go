package store

import (
	"bytes"
	"encoding/binary"
)

// A chain's list is stored in pieces, each under the ordinal of its first
// element: uvarint count, then the arrival numbers, the first as it is and
// every other one as its distance from the one before.

func appendArrivals(dst []byte, arrivals []uint64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(arrivals)))
	var last uint64
	for _, a := range arrivals {
		dst = binary.AppendUvarint(dst, a-last)
		last = a
	}
	return dst
}

func decodeArrivals(payload []byte) ([]uint64, error) {
	c := codec{buf: payload, reading: true}
	var n, last uint64
	c.uint(&n)
	if n > uint64(len(c.buf)) {
		return nil, errCoding
	}
	arrivals := make([]uint64, n)
	for i := range arrivals {
		var d uint64
		c.uint(&d)
		last += d
		arrivals[i] = last
	}
	return arrivals, c.finish()
}

// arrivals returns up to limit arrival numbers of a chain's list, beginning
// with ordinal from.
func (v *view) arrivals(cv *chainView, l listing, from uint64, limit int) ([]uint64, error) {
	out, err := v.storedArrivals(cv.no, l, from, limit)
	if err != nil {
		return nil, inChain(err, *cv.key)
	}
	// What follows in memory is counted from the ordinal at which the view was
	// last flushed. A newer flush may have stored some of it, which the
	// ordinals show.
	ordinal := cv.stored.counts[l]
	for _, p := range cv.pending {
		if p.lists&(1<<l) == 0 || p.arrival > v.horizon {
			continue
		}
		if ordinal == from+uint64(len(out)) && len(out) < limit {
			out = append(out, p.arrival)
		}
		ordinal++
	}
	return out, nil
}

func (v *view) storedArrivals(no uint64, l listing, from uint64, limit int) ([]uint64, error) {
	b, err := v.bucket(tableLists)
	if err != nil {
		return nil, err
	}
	prefix := listKey(no, l, 0)[:9]
	c := b.Cursor()
	k, value := c.Seek(listKey(no, l, from))
	if k == nil || !bytes.Equal(k, listKey(no, l, from)) {
		if k, value = c.Prev(); k == nil || !bytes.HasPrefix(k, prefix) {
			return nil, nil // nothing stored at or before from
		}
	}
	var out []uint64
	for ; k != nil && bytes.HasPrefix(k, prefix) && len(out) < limit; k, value = c.Next() {
		if out, err = v.appendPiece(out, k, value, from, limit); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// appendPiece appends what a stored piece has of ordinals from+len(out) on.
func (v *view) appendPiece(out []uint64, k, value []byte, from uint64, limit int) ([]uint64, error) {
	payload, err := v.open(tableLists, k, value)
	if err != nil {
		return nil, err
	}
	piece, err := decodeArrivals(payload)
	if err != nil {
		return nil, corrupt(tableLists, k, err.Error())
	}
	first, want := binary.BigEndian.Uint64(k[9:]), from+uint64(len(out))
	if want < first || want > first+uint64(len(piece)) {
		return out, nil // the end, or a hole that Check reports
	}
	piece = piece[want-first:]
	return append(out, piece[:min(len(piece), limit-len(out))]...), nil
}
