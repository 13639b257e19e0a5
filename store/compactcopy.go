package store

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"go.etcd.io/bbolt"
)

// contentHash is SHA-256 over the content of a database: buckets and values in
// key order, each as the length of the key, the key, the length of the value, the
// value (lengths 8 bytes, big-endian; a bucket has a value of length 2^64-1).
type contentHash struct {
	h      hash.Hash
	length [8]byte
	values uint64
}

func newContentHash() *contentHash { return &contentHash{h: sha256.New()} }

func (c *contentHash) add(key, value []byte) {
	n := uint64(len(value))
	if value == nil {
		n--
	}
	c.number(uint64(len(key)))
	c.h.Write(key)
	c.number(n)
	c.h.Write(value)
}

func (c *contentHash) number(n uint64) {
	binary.BigEndian.PutUint64(c.length[:], n)
	c.h.Write(c.length[:])
}

func (c *contentHash) sum() (sum [sha256.Size]byte) {
	c.h.Sum(sum[:0])
	return sum
}

// copyWriter puts values into a database in transactions of bounded size.
type copyWriter struct {
	db     *bbolt.DB
	tx     *bbolt.Tx
	bucket *bbolt.Bucket // of tx
	size   int           // bytes in tx
}

// put takes values in key order; a nil key begins the bucket. The value must
// stay as it is until the transaction ends.
func (w *copyWriter) put(name, key, value []byte) error {
	if w.size > compactBatch {
		if err := w.commit(); err != nil {
			return err
		}
	}
	if w.tx == nil {
		tx, err := w.db.Begin(true)
		if err != nil {
			return sealOff("write the copy", err)
		}
		w.tx = tx
		w.open(name)
	}
	if key == nil {
		_, err := w.tx.CreateBucket(name)
		w.open(name)
		return err
	}
	w.size += len(key) + len(value)
	if err := w.bucket.Put(key, value); err != nil {
		return sealOff("write the copy", err)
	}
	return nil
}

// open takes the bucket at hand; its pages become as full as the writer of the
// table leaves them.
func (w *copyWriter) open(name []byte) {
	if w.bucket = w.tx.Bucket(name); w.bucket == nil {
		return
	}
	for _, t := range tables() {
		if t.name == string(name) {
			w.bucket.FillPercent = t.fill
		}
	}
}

func (w *copyWriter) commit() error {
	if w.tx == nil {
		return nil
	}
	tx := w.tx
	w.tx, w.size = nil, 0
	growGently(w.db, tx)
	if err := tx.Commit(); err != nil {
		return sealOff("write the copy", err)
	}
	return nil
}

func (w *copyWriter) rollback() {
	if w.tx != nil {
		_ = w.tx.Rollback()
	}
}
