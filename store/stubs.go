package store

import (
	"context"
	"io"

	"github.com/chaind/chaind/events"
)

// Store is an open store. All methods may be called concurrently. Queries copy what they return.
type Store struct{}

// Open opens the store in cfg.Dir for writing, creating it when the directory is empty or missing.
// It returns ErrMissing, ErrForeign, ErrTruncated, ErrSchema, ErrLocked or ErrCorrupt (all wrapped).
func Open(cfg Config) (*Store, error) { panic("stub") }

// OpenReadOnly opens an existing store for inspection. It never creates or changes anything, and
// returns ErrLocked while a writer holds the store.
func OpenReadOnly(cfg Config) (*Store, error) { panic("stub") }

// Close waits for running calls and releases the file. It is idempotent.
func (s *Store) Close() error { panic("stub") }

// ID is the random identity given to the store when it was created: 32 lower-case hex digits.
func (s *Store) ID() string { panic("stub") }

// Append applies the events of b in order and makes their effects durable in one transaction.
// The effects (one per event, same order) are returned only after the commit; on an error nothing of the batch
// is visible, and the same batch may be given again. Batches of one stream must be given in stream order, one after
// the other; batches of different streams may be given concurrently.
// Events at or below the watermark are recognised by id and digest and have no second effect. A jump in the sequences
// is recorded as a lost range in the same transaction.
func (s *Store) Append(ctx context.Context, b *events.Batch) ([]events.Effect, error) { panic("stub") }

// Watermark says how far the stream has been applied.
func (s *Store) Watermark(stream events.Stream) (Watermark, error) { panic("stub") }

// BeginEpoch starts a new epoch of the stream: the caller found that the broker lost what lies above
// sequence base (its last sequence is lower than the watermark). It does nothing when base equals the watermark.
func (s *Store) BeginEpoch(ctx context.Context, stream events.Stream, base uint64, why string) (Watermark, error) {
	panic("stub")
}

// RecordLost records that the sequences from..to will never be delivered, and moves the watermark over them.
// What is applied or recorded already is left out, so that a second call changes nothing.
func (s *Store) RecordLost(ctx context.Context, stream events.Stream, from, to uint64, why string) error {
	panic("stub")
}

// LostRanges lists lost ranges with an ID above after.
func (s *Store) LostRanges(after uint64, limit int) ([]LostRange, error) { panic("stub") }

// Epochs lists all epochs, oldest first.
func (s *Store) Epochs() ([]Epoch, error) { panic("stub") }

// Chain returns one chain; ErrNotFound.
func (s *Store) Chain(key events.Key) (*ChainRecord, error) { panic("stub") }

// Chains returns a page of chains in key order and the cursor of the next page ("": no more). A filter that
// matches little may return a short or empty page with a cursor.
func (s *Store) Chains(q ChainQuery) (page []ChainSummary, next string, err error) { panic("stub") }

// Runs returns a page of (run id, chain) pairs, in the order in which each run id met its chains.
func (s *Store) Runs(q RunQuery) (page []RunRecord, next string, err error) { panic("stub") }

// Segments returns the chain's segments from sequence number from on; ErrNotFound for an unknown chain. Limit 0
// is DefaultPage; a page also ends after some MiB, so only an empty one means the end.
func (s *Store) Segments(key events.Key, from uint64, limit int) ([]SegmentRecord, error) {
	panic("stub")
}

// Attempts returns the chain's attempts from ordinal from on, like Segments.
func (s *Store) Attempts(key events.Key, from uint64, limit int) ([]AttemptRecord, error) {
	panic("stub")
}

// Addenda returns the chain's late events from ordinal from on, like Segments.
func (s *Store) Addenda(key events.Key, from uint64, limit int) ([]Addendum, error) { panic("stub") }

// Preimages returns the chain's kept preimages from ordinal from on, like Segments.
func (s *Store) Preimages(key events.Key, from uint64, limit int) ([]PreimageRecord, error) {
	panic("stub")
}

// Rejected returns a page of rejections by ascending ID and the After of the next page (0: no more).
func (s *Store) Rejected(q RejectedQuery) (page []events.Rejection, next uint64, err error) {
	panic("stub")
}

// SealJobs lists waiting seal jobs with an ID above after, oldest first.
func (s *Store) SealJobs(after uint64, limit int) ([]SealJob, error) { panic("stub") }

// FinishSeal stores the result with the chain and removes the job, in one transaction. Finishing a job
// that is gone already is no error when the result is the same.
func (s *Store) FinishSeal(job *SealJob, result SealResult) error { panic("stub") }

// FailSeal counts a failed attempt and keeps its reason; the job stays.
func (s *Store) FailSeal(job *SealJob, reason string) error { panic("stub") }

// SealJobsAdded receives after commits that added seal jobs (one token at most waits).
func (s *Store) SealJobsAdded() <-chan struct{} { panic("stub") }

// PendingRejections lists rejections not yet published, oldest first.
func (s *Store) PendingRejections(limit int) ([]events.Rejection, error) { panic("stub") }

// RejectionsPublished records that all rejections up to this ID have been published.
func (s *Store) RejectionsPublished(upTo uint64) error { panic("stub") }

// RejectionsAdded receives after commits that added rejections (one token at most waits).
func (s *Store) RejectionsAdded() <-chan struct{} { panic("stub") }

// Check walks everything and reports what does not fit; see [CheckReport]. The error is only about not being able to check.
func (s *Store) Check(ctx context.Context, progress func(CheckProgress)) (*CheckReport, error) {
	panic("stub")
}

// Backup writes a consistent copy of the database to w while the store is in use.
func (s *Store) Backup(ctx context.Context, w io.Writer) (int64, error) { panic("stub") }

// Stats returns sizes and counts for metrics and readiness.
func (s *Store) Stats() (Stats, error) { panic("stub") }
