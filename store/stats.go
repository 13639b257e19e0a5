package store

import (
	"context"
	"fmt"
	"io"
)

// Stats returns sizes and counts for metrics and readiness.
func (s *Store) Stats() (Stats, error) {
	s.mu.RLock()
	n := s.n
	st := Stats{Chains: n.chains, Arrivals: n.arrivals, PendingSeals: n.pending, FailingSeals: n.failing,
		SealJobs: n.jobs, PendingRejections: n.rejections - n.published, Rejections: n.rejections, LostRanges: n.lost, LostEvents: n.lostEvents}
	st.DamagedChains, st.LastDamage = uint64(len(s.damaged)), s.damage
	if s.writeErr != nil {
		st.LastWriteError, st.WriteFault = s.writeErr.Error(), faultOf(s.writeErr)
	}
	s.mu.RUnlock()
	err := s.view(func(v *view) (err error) {
		st.FileBytes = v.tx.Size()
		if n.failing != 0 {
			st.LastSealError, err = v.lastSealError()
		}
		return err
	})
	if err != nil {
		return Stats{}, err
	}
	return st, nil
}

// lastSealError looks at the oldest jobs only: they fail as long as others do.
func (v *view) lastSealError() (string, error) {
	var last jobRecord
	looked := 0
	err := v.each(tableJobs, nil, func(k, payload []byte) (bool, error) {
		var j jobRecord
		err := decode(tableJobs, k, payload, &j)
		if j.attempts > 0 && j.failedMS >= last.failedMS {
			last = j
		}
		looked++
		return looked < scanPerTx, err
	})
	return last.lastError, err
}

// Backup writes a consistent copy of the database to w while the store is in
// use, and returns its length in bytes. The copy, named chaind.db in an empty
// directory, is a store with the same id. As long as it runs, pages that are
// freed meanwhile cannot be used again and the file may grow: let w be a local
// file, not a slow network connection.
func (s *Store) Backup(ctx context.Context, w io.Writer) (int64, error) {
	s.long.RLock()
	defer s.long.RUnlock()
	var n int64
	out := &backupWriter{ctx: ctx, w: w}
	err := s.view(func(v *view) (err error) {
		s.renew.Store(true) // what is committed from here on is not in the copy
		n, err = v.tx.WriteTo(out)
		return err
	})
	if out.err != nil {
		return 0, fmt.Errorf("back up store: %w", out.err)
	}
	if err != nil {
		return 0, sealOff("back up store", err)
	}
	return n, nil
}

// backupWriter ends with its context and keeps the error, which bbolt does not
// pass on as it is.
type backupWriter struct {
	ctx context.Context
	w   io.Writer
	err error
}

func (b *backupWriter) Write(p []byte) (n int, err error) {
	if b.err = b.ctx.Err(); b.err == nil {
		n, b.err = b.w.Write(p)
	}
	return n, b.err
}
