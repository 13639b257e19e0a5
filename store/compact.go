package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"
)

// compactFile is the copy that a compaction writes; what a crash leaves of it is
// removed at the next opening.
const compactFile = creatingPrefix + "compact"

// CompactReport is what [Store.Compact] did.
type CompactReport struct {
	Before int64  `json:"before_bytes"` // of the file
	After  int64  `json:"after_bytes"`  // of the file that took its place
	Values uint64 `json:"values"`       // in both
}

// Compact is [Store.Compact] of an existing store that nobody has open. It
// returns errors as Open does, and ErrMissing rather than make a store.
func Compact(ctx context.Context, cfg Config, progress func(CheckProgress)) (*CompactReport, error) {
	s, err := open(cfg.withDefaults(), &Store{newest: SchemaVersion, existing: true})
	if err != nil {
		return nil, err
	}
	r, err := s.Compact(ctx, progress)
	if err := errors.Join(err, s.Close()); err != nil {
		return nil, err
	}
	return r, nil
}

// Compact rewrites the database into a new file without the space that is free
// in the old one, compares both value for value, and puts the new one in the
// place of the old: same id, same chains, same heads. Where that would save
// nothing the old one stays (After is Before). A database in which Check
// finds anything is left as it is (an error matching ErrCorrupt).
//
// The store may be in use. Appends wait from when the copy begins until it is in
// place, about as long as it takes to read the file twice and write it once;
// readers wait for the moment of the exchange only. The disk needs room for both files.
// After an error, or a cancelled ctx, the old file is in use; ErrBroken is the
// exception: the new file has the name, and whether that is durable is not known.
//
// What a crash leaves behind, after each step:
//
//	creating-compact written, fsync   the old database, and a file that opening removes
//	store.id with the lower size      the same: the mark is true of both files
//	renameat creating-compact → chaind.db
//	                                  the old or the new database; opening syncs
//	                                  the directory before anything is appended
//	fsync of the directory            the new database
func (s *Store) Compact(ctx context.Context, progress func(CheckProgress)) (*CompactReport, error) {
	r, err := s.compact(ctx, progress, false)
	if err != nil {
		return nil, fmt.Errorf("compact store: %w", err)
	}
	return r, nil
}

// compact compacts; always: also where nothing is saved, and where chains are damaged
// that are on record as set aside. They are copied as they are, and stay set aside.
func (s *Store) compact(ctx context.Context, progress func(CheckProgress), always bool) (*CompactReport, error) {
	if s.readOnly {
		return nil, ErrReadOnly
	}
	report, err := s.Check(ctx, progress)
	if err != nil {
		return nil, err
	}
	if always {
		err := s.settled(ctx, func() { report.Findings = notOf(s.asidesOnRecord(), report.Findings) })
		if err != nil {
			return nil, err
		}
	}
	if err := report.clean(); err != nil {
		return nil, err
	}
	s.long.Lock() // before the writer is stopped: it shall not wait for a backup
	defer s.long.Unlock()
	select {
	case s.token <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.done:
		return nil, ErrClosed
	}
	defer func() { <-s.token }()
	if s.fatal != nil {
		return nil, s.fatal
	}
	c := &compaction{s: s, ctx: ctx, tell: progress, total: report.Values, always: always}
	return c.run()
}

// clean: there are no findings.
func (r *CheckReport) clean() error {
	switch n := uint64(len(r.Findings)) + r.More; {
	case n == 0:
		return nil
	case len(r.Findings) == 0:
		return fmt.Errorf("%w: %d findings", ErrCorrupt, n)
	default:
		return fmt.Errorf("%w: %d findings, the first is: %s", ErrCorrupt, n, r.Findings[0].Detail)
	}
}

// compaction is one that is running. It holds the token.
type compaction struct {
	s      *Store
	ctx    context.Context
	tell   func(CheckProgress)
	total  uint64 // values, about
	always bool   // also where nothing is saved
	f      *os.File
	db     *bbolt.DB // in f, and of f's lock; nil before it is open
}

func (c *compaction) run() (*CompactReport, error) {
	r, err := c.write()
	if err == nil {
		err = c.measure(r)
	}
	if err == nil && r.After >= r.Before && !c.always {
		r.After = r.Before // nothing to give back: the old one stays
		return r, c.discard()
	}
	if err == nil {
		err = c.takePlace(r)
	}
	if err != nil && !errors.Is(err, ErrBroken) {
		return nil, errors.Join(err, c.discard())
	}
	if err != nil {
		return nil, err
	}
	c.s.cfg.Logger.Info("store compacted", "bytes", r.After, "saved", r.Before-r.After)
	return r, nil
}

// measure compares the files, which are longer than what is used of them.
func (c *compaction) measure(r *CompactReport) error {
	old, err := c.s.mark.f.Stat()
	if err != nil {
		return err
	}
	made, err := c.f.Stat()
	if err != nil {
		return err
	}
	r.Before, r.After = old.Size(), made.Size()
	return nil
}

// discard removes what was written.
func (c *compaction) discard() error {
	var err error
	if c.db != nil {
		err = c.db.Close()
	} else if c.f != nil {
		err = c.f.Close()
	}
	if c.f != nil {
		err = errors.Join(err, c.s.mark.root.Remove(compactFile))
	}
	return err
}

// step is one durable step; tests make it fail.
func (c *compaction) step(name string, do func() error) error {
	if hook := c.s.testingOnly.compact; hook != nil {
		return hook(name, do)
	}
	return do()
}

// write makes the copy, durable but for its name, and proves that it is one.
func (c *compaction) write() (r *CompactReport, err error) {
	if c.f, err = c.s.mark.root.OpenFile(compactFile, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
		return nil, err
	}
	// The lock comes before the name: nobody gets between.
	if err := lockFile(c.f, true, c.s.cfg.LockTimeout); err != nil {
		return nil, err
	}
	if c.db, err = bbolt.Open(c.f.Name(), 0o600, options(c.f, false)); err != nil {
		return nil, sealOff("write the copy", err)
	}
	c.db.NoSync = true // until it is whole
	r = new(CompactReport)
	var want, got [sha256.Size]byte
	err = c.s.view(func(v *view) (err error) {
		r.Before = v.tx.Size()
		want, err = c.copy(v.tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := c.step("sync the copy", c.f.Sync); err != nil {
		return nil, err
	}
	c.db.NoSync = false
	pages, err := openPages(c.f)
	if err == nil {
		err = pages.checkFreelist()
	}
	if err != nil {
		return nil, err
	}
	err = c.reading(func(tx *bbolt.Tx) (err error) {
		r.After = tx.Size()
		got, r.Values, err = c.digest(tx)
		return err
	})
	if err == nil && got != want {
		err = fmt.Errorf("%w: the copy differs from the original", ErrCorrupt)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// reading runs fn over the copy, whose mapped file may fault like any other.
func (c *compaction) reading(fn func(*bbolt.Tx) error) (err error) {
	defer c.s.guard(&err)()
	tx, err := c.db.Begin(false)
	if err != nil {
		return sealOff("read the copy", err)
	}
	defer tx.Rollback()
	return fn(tx)
}

// takePlace gives the copy the name of the database. After the rename there is
// no way back: names that are not known to be durable end all writing.
func (c *compaction) takePlace(r *CompactReport) error {
	s := c.s
	info, err := c.f.Stat()
	if err != nil {
		return err
	}
	r.After = info.Size()
	if err := c.step("lower the mark", func() error { return s.lowerMark(min(r.After, r.Before)) }); err != nil {
		return err
	}
	s.open.Lock()
	defer s.open.Unlock()
	renamed := false
	err = c.step("rename", func() error {
		err := s.mark.root.Rename(compactFile, DatabaseFile)
		renamed = err == nil
		return err
	})
	if !renamed {
		return err
	}
	if err == nil {
		err = c.step("sync the name", func() error { return syncRoot(s.mark.root) })
	}
	old := s.db
	s.db, s.mark.f, s.tx = c.db, c.f, 0
	s.renew.Store(true)
	if closing := old.Close(); closing != nil {
		s.cfg.Logger.Warn("the old database file was not closed", "err", closing)
	}
	if err != nil {
		s.fatal = fmt.Errorf("%w: %v", ErrBroken, err)
		s.leaveUnsynced(err)
		return s.fatal
	}
	return nil
}

// compactBatch bounds what one transaction of the copy holds, in bytes.
const compactBatch = 16 << 20

// copy writes every value of from into the copy, in transactions of bounded
// size, and returns the digest of what it read.
func (c *compaction) copy(from *bbolt.Tx) (sum [sha256.Size]byte, err error) {
	defer c.s.guard(&err)()
	w := &copyWriter{db: c.db}
	defer w.rollback()
	h := newContentHash()
	err = c.walk(from, h, w.put)
	if err == nil {
		err = w.commit()
	}
	if err != nil {
		return sum, err
	}
	return h.sum(), nil
}

// digest is over all names, keys and values of a database.
func (c *compaction) digest(tx *bbolt.Tx) (sum [sha256.Size]byte, values uint64, err error) {
	h := newContentHash()
	if err := c.walk(tx, h, func(_, _, _ []byte) error { return nil }); err != nil {
		return sum, 0, err
	}
	return h.sum(), h.values, nil
}

// walk visits all values in order; key is nil for a bucket's beginning.
func (c *compaction) walk(tx *bbolt.Tx, h *contentHash, visit func(bucket, key, value []byte) error) error {
	return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
		h.add(name, nil)
		if err := visit(name, nil, nil); err != nil {
			return err
		}
		return b.ForEach(func(k, v []byte) error {
			if v == nil {
				return &CorruptError{Bucket: string(name), Key: k, Class: Contradiction, Detail: "a bucket among the values"}
			}
			h.add(k, v)
			if h.values++; h.values%scanPerTx == 0 {
				if err := c.progress(h.values); err != nil {
					return err
				}
			}
			return visit(name, k, v)
		})
	})
}

func (c *compaction) progress(done uint64) error {
	if c.tell != nil {
		c.tell(CheckProgress{Phase: "compact", Done: done, Total: max(done, c.total)})
	}
	return c.ctx.Err()
}
