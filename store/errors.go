package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/chaind/chaind/events"
)

// These errors can be returned by [Open] and [OpenReadOnly].
var (
	// ErrMissing: there is no database, but the directory is not empty, or
	// the store is opened for reading only.
	ErrMissing = errors.New("database is missing")
	// ErrForeign: the file is no database, or not one of ours, or belongs to another store id.
	ErrForeign = errors.New("database belongs to something else")
	// ErrTruncated: the file is shorter than its own pages or than it once was.
	ErrTruncated = errors.New("database is truncated")
	// ErrSchema: the database was written by a newer program, or by an older one
	// and is to be upgraded first ([Upgrade]).
	ErrSchema = errors.New("database schema is not supported")
	// ErrUnsynced: a sync failed in an earlier process, so that what the disk has is
	// not known, and the database could not be checked and written anew. Restore a
	// backup, or replay the stream, when it is damaged ([Store.Check]).
	ErrUnsynced = errors.New("a sync of the database failed in an earlier run")
	// ErrLocked: another process holds the database.
	ErrLocked = errors.New("database is locked")
)

// These errors can be returned by an open store.
var (
	ErrNotFound = errors.New("not found")
	ErrClosed   = errors.New("store is closed")
	ErrReadOnly = errors.New("store is read-only")
	// ErrBroken: a commit failed in a way that leaves the disk's content
	// unknown. Nothing more is written; close the store and open it again.
	ErrBroken = errors.New("store must be opened again")
	// ErrCursor: a page cursor that this store did not hand out.
	ErrCursor = errors.New("malformed cursor")
	// ErrCorrupt is matched by every [CorruptError].
	ErrCorrupt = errors.New("store is corrupt")
)

// CorruptError says which stored value is not what was written.
type CorruptError struct {
	Bucket string
	Key    []byte     // key within the bucket
	Chain  events.Key // zero when the value belongs to no chain
	Class  FindingClass
	Detail string
}

func (e *CorruptError) Error() string {
	if e.Chain == (events.Key{}) {
		return fmt.Sprintf("read %s %x: %s", e.Bucket, e.Key, e.Detail)
	}
	return fmt.Sprintf("read %s %x of chain %s/%s/%s/%s: %s", e.Bucket, e.Key,
		e.Chain.Tenant, e.Chain.PromptHash, e.Chain.Session, e.Chain.Chain, e.Detail)
}

// Is makes every CorruptError match [ErrCorrupt].
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// LockedError names the file that another process holds.
type LockedError struct {
	Path   string
	Waited time.Duration
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("lock %s: held by another process for the %v we waited (a running chaind serve, or an inspection of this directory)", e.Path, e.Waited)
}

// Is makes every LockedError match [ErrLocked].
func (e *LockedError) Is(target error) bool { return target == ErrLocked }
