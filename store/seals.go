package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// fixedRecord is a value of the table of ended chains. It is written once.
type fixedRecord struct {
	Fixed
	state []byte
}

func (f *fixedRecord) fields(c *codec) {
	c.uint32(&f.Epoch)
	c.uint(&f.StreamSeq)
	c.uint(&f.BrokerMS)
	c.uint(&f.Arrival)
	c.uint(&f.RejectedUpTo)
	c.bytes(&f.state)
}

// jobRecord is a value of the seal job table.
type jobRecord struct {
	chain     uint64
	attempts  uint32
	lastError string
	failedMS  int64
}

func (j *jobRecord) fields(c *codec) {
	c.uint(&j.chain)
	c.uint32(&j.attempts)
	text(c, &j.lastError)
	c.int64(&j.failedMS)
}

func (r *SealResult) fields(c *codec) {
	text(c, &r.Class)
	c.optDigest(&r.Head)
	text(c, &r.Path)
	c.uint(&r.Bytes)
	c.digest(&r.SHA256)
	c.bool(&r.Signed)
	text(c, &r.BundlePath)
	c.digest(&r.BundleRoot)
	c.uint(&r.BundleBytes)
	c.digest(&r.BundleSHA256)
	c.int64(&r.SealedMS)
}

// same compares results, whenever they were made.
func (r SealResult) same(o SealResult) bool {
	if (r.Head == nil) != (o.Head == nil) || r.Head != nil && *r.Head != *o.Head {
		return false
	}
	r.Head, o.Head, r.SealedMS, o.SealedMS = nil, nil, 0, 0
	return r == o
}

// fix keeps the chain as of its end and asks for its seal, in the transaction
// of the event that ended it.
func (w *writer) fix(c *chain, e *entry) error {
	f := fixedRecord{Fixed: Fixed{Epoch: e.Epoch, StreamSeq: e.StreamSeq, BrokerMS: e.BrokerMS,
		Arrival: e.Arrival, RejectedUpTo: w.n.rejections}}
	var err error
	if w.state, err = c.state.AppendBinary(w.state[:0]); err != nil {
		return err
	}
	f.state = w.state
	if err := w.write(tableFixed, key64(c.next.no), &f); err != nil {
		return err
	}
	w.n.jobs++
	w.n.pending++
	w.newJobs = true
	return w.write(tableJobs, key64(w.n.jobs), &jobRecord{chain: c.next.no})
}

// runSeal is a value of the run table.
type runSeal struct{ seq uint64 }

func (r *runSeal) fields(c *codec) { c.uint(&r.seq) }

// indexRun makes a run seal findable by its run id. The first seal of a run id
// in a chain stands.
func (w *writer) indexRun(c *chain, s *segments.Segment) error {
	run, ok := s.Kind.(*segments.RunSealed)
	if !ok {
		return nil
	}
	key := runKey(run.RunID, c.next.no)
	known, err := w.get(tableRuns, key)
	if err != nil && ofOneChain(err) {
		w.s.noteDamage(*c.next.key, err) // the check has it; the chain is whole
		return nil
	}
	if known != nil || err != nil {
		return err
	}
	return w.write(tableRuns, key, &runSeal{s.Seq})
}

// fixed reads a chain as of its end; nil: it is open.
func (v *view) fixed(no uint64) (*Fixed, error) {
	var f fixedRecord
	found, err := v.read(tableFixed, key64(no), &f)
	if err != nil || !found {
		return nil, err
	}
	if f.State, err = events.DecodeState(f.state); err != nil {
		return nil, corrupt(tableFixed, key64(no), err.Error())
	}
	return &f.Fixed, nil
}

// sealResult reads what became of a chain's seal job; nil: nothing yet.
func (v *view) sealResult(no uint64) (*SealResult, error) {
	r := new(SealResult)
	found, err := v.read(tableSeals, key64(no), r)
	if err != nil || !found {
		return nil, err
	}
	return r, nil
}

// SealJobs lists waiting seal jobs with an ID above after, oldest first. Limit
// 0 is DefaultPage. A page also ends after some MiB: only an empty one means
// that there are no more. A job whose commit is in the file and not in memory yet
// is left for later, when it is signalled: reading its chain, memory would say
// what it was before the commit, with fewer rejections.
func (s *Store) SealJobs(after uint64, limit int) ([]SealJob, error) {
	s.mu.RLock()
	known := s.n.jobs
	s.mu.RUnlock()
	var out []SealJob
	for {
		err := s.sealJobs(&out, after, known, limit)
		bad, ok := errors.AsType[*CorruptError](err)
		if !ok || bad.Bucket != tableJobs.name || len(bad.Key) != 8 {
			if err != nil {
				return nil, err
			}
			return out, nil
		}
		after = number(bad.Key) // the jobs behind it are read all the same
		s.noteDamage(events.Key{Chain: fmt.Sprint("of seal job ", after)}, err)
	}
}

// sealJobs appends jobs behind after up to the last known one. Those whose chain's end cannot be read stay
// in the table, and are left out.
func (s *Store) sealJobs(out *[]SealJob, after, known uint64, limit int) error {
	return s.view(func(v *view) error {
		bytes := 0
		return v.each(tableJobs, key64(after+1), func(k, payload []byte) (bool, error) {
			if number(k) > known {
				return false, nil
			}
			var j jobRecord
			if err := decode(tableJobs, k, payload, &j); err != nil {
				return false, err
			}
			f, err := v.fixed(j.chain)
			if err == nil && f == nil {
				err = corrupt(tableFixed, key64(j.chain), "the chain has a seal job and no end")
			}
			if err == nil {
				err = s.isAside(f.State.Key) // its segments cannot be read
			}
			if err != nil && ofOneChain(err) {
				key := events.Key{Chain: fmt.Sprint("number ", j.chain)}
				if f != nil {
					key = f.State.Key
				}
				s.noteDamage(key, err)
				return true, nil
			}
			if err != nil {
				return false, err
			}
			*out = append(*out, SealJob{ID: number(k), Key: f.State.Key, Fixed: *f, Attempts: j.attempts, LastError: j.lastError})
			bytes += 1024 + 64*len(f.State.Steps)
			return len(*out) < pageLimit(limit) && bytes < maxPageBytes, nil
		})
	})
}

// FinishSeal stores the result with the chain and removes the job, in one
// transaction. It may be repeated: finishing a job that is gone is no error
// when the result is the same, and ErrNotFound when it is not.
func (s *Store) FinishSeal(ctx context.Context, job *SealJob, result SealResult) error {
	result.SealedMS = s.nowMS()
	return s.do(ctx, func(w *writer) error { return w.finishSeal(job, &result) })
}

func (w *writer) finishSeal(job *SealJob, result *SealResult) error {
	j, err := w.job(job)
	if err != nil {
		return err
	}
	if j == nil {
		return w.sealedAlready(job, result)
	}
	b, err := w.table(tableJobs)
	if err != nil {
		return err
	}
	if err := b.Delete(key64(job.ID)); err != nil {
		return err
	}
	w.n.pending--
	if j.attempts > 0 {
		w.n.failing--
	}
	return w.write(tableSeals, key64(j.chain), result)
}

// job reads the record of a job; nil: it is gone.
func (w *writer) job(job *SealJob) (*jobRecord, error) {
	j := new(jobRecord)
	found, err := w.read(tableJobs, key64(job.ID), j)
	if err != nil || !found {
		return nil, err
	}
	rec, err := w.chainRecord(j.chain)
	if err != nil {
		return nil, err
	}
	if rec.key != job.Key {
		return nil, refusal{fmt.Errorf("seal job %d: %w for this chain", job.ID, ErrNotFound)}
	}
	return j, nil
}

func (w *writer) sealedAlready(job *SealJob, result *SealResult) error {
	no, err := w.chainNumber(job.Key)
	if err != nil {
		return err
	}
	was, err := w.sealResult(no)
	if err != nil {
		return err
	}
	if was != nil && was.same(*result) {
		return nil
	}
	return refusal{fmt.Errorf("seal job %d: %w", job.ID, ErrNotFound)}
}

// FailSeal counts a failed attempt and keeps its reason, up to 1 KiB; the job stays.
func (s *Store) FailSeal(ctx context.Context, job *SealJob, reason string) error {
	return s.do(ctx, func(w *writer) error {
		j, err := w.job(job)
		if err != nil {
			return err
		}
		if j == nil {
			return refusal{fmt.Errorf("seal job %d: %w", job.ID, ErrNotFound)}
		}
		if j.attempts == 0 {
			w.n.failing++
		}
		j.attempts++
		j.lastError, j.failedMS = reason[:min(len(reason), maxReason)], s.nowMS()
		return w.write(tableJobs, key64(job.ID), j)
	})
}

// SealJobsAdded receives after commits that added seal jobs, and once after
// opening when some wait; at most one token waits.
func (s *Store) SealJobsAdded() <-chan struct{} { return s.jobsAdded }

// PendingRejections lists rejections not yet published, oldest first. Limit 0
// is DefaultPage. A page also ends after some MiB.
func (s *Store) PendingRejections(limit int) ([]events.Rejection, error) {
	s.mu.RLock()
	after := s.n.published
	s.mu.RUnlock()
	page, _, err := s.Rejected(RejectedQuery{After: after, Limit: limit})
	return page, err
}

// RejectionsPublished records that all rejections up to this ID have been
// published.
func (s *Store) RejectionsPublished(ctx context.Context, upTo uint64) error {
	return s.do(ctx, func(w *writer) error {
		w.n.published = max(w.n.published, min(upTo, w.n.rejections))
		return nil
	})
}

// RejectionsAdded receives after commits that added rejections, and once after
// opening when some wait; at most one token waits.
func (s *Store) RejectionsAdded() <-chan struct{} { return s.rejectionsAdded }
