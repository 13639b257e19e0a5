package store

import (
	"log/slog"
	"time"
)

// SchemaVersion is the layout that this program writes. A store with a higher
// one is refused with [ErrSchema].
const SchemaVersion = 1

// Config says where a store lives and what it keeps.
type Config struct {
	// Dir holds the database and nothing else. [Open] creates it, and the
	// database in it, only when it is empty or missing.
	Dir string
	// ExpectID refuses a store with another id (a staging copy, say). "": any.
	ExpectID string
	// LockTimeout bounds the wait for the file lock; 0: DefaultLockTimeout.
	LockTimeout time.Duration
	// CachedChains bounds the clean chain states in memory; 0: DefaultCachedChains.
	CachedChains int
	// KeepIntent and KeepParsed keep the intent text and the parsed
	// expression of a step. Plans and seal artifacts are always kept.
	KeepIntent, KeepParsed bool
	// Logger gets start, recovery and trouble; nil: nothing is logged.
	Logger *slog.Logger
	// Now stamps epochs, losses and seals, none of which is hashed; nil: time.Now.
	Now func() time.Time
}
