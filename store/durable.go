package store

import (
	"fmt"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"
)

// durability keeps readers away from a commit of which nobody knows yet whether
// it will last. bbolt writes the meta page, which whoever begins a transaction
// then sees, before it syncs it: in between a power cut takes back what was read,
// and when the sync fails nobody can say.
type durability struct {
	pending    atomic.Uint64 // the transaction that is being committed; 0: none
	lost       atomic.Uint64 // one whose commit failed, so that it may or may not be on disk; 0: none
	committing sync.Mutex    // held by the writer while it commits
	met        func()        // in tests: a reader met a pending transaction
}

// commit commits transaction tx.
func (d *durability) commit(tx uint64, do func() error) error {
	d.committing.Lock()
	defer d.committing.Unlock()
	d.pending.Store(tx)
	defer d.pending.Store(0)
	err := do()
	if err != nil && !leavesNothing(err) {
		d.lost.Store(tx)
	}
	return err
}

// begin begins a reader's transaction on the last commit that is durable. While
// a later one is in the file already, it waits, for as long as a sync takes.
func (s *Store) begin() (*bbolt.Tx, error) {
	tx, pending, err := s.beginUnless()
	if !pending {
		return tx, err
	}
	if met := s.durable.met; met != nil {
		met()
	}
	s.durable.committing.Lock() // until the commit is over
	defer s.durable.committing.Unlock()
	tx, _, err = s.beginUnless()
	return tx, err
}

// beginUnless begins a transaction, unless that would show a commit which is not
// known to be durable: one that is pending, or one that is lost, which is an error.
func (s *Store) beginUnless() (tx *bbolt.Tx, isPending bool, err error) {
	tx, err = s.db.Begin(false)
	if err != nil {
		return nil, false, sealOff("begin transaction", err)
	}
	// In this order: a commit that failed is lost before it is no longer pending.
	pending, lost, id := s.durable.pending.Load(), s.durable.lost.Load(), uint64(tx.ID())
	switch {
	case lost != 0 && id >= lost:
		err = fmt.Errorf("begin transaction: %w: the last commit may not be on disk", ErrBroken)
	case pending != 0 && id >= pending:
		isPending = true
	default:
		return tx, false, nil
	}
	_ = tx.Rollback()
	return nil, isPending, err
}
