package store

import (
	"container/list"
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chaind/chaind/events"
	"go.etcd.io/bbolt"
)

// SchemaVersion is the layout that this program writes. A store with a higher
// one is refused with [ErrSchema].
const SchemaVersion = 2

// Config says where a store lives and what it keeps.
type Config struct {
	// Dir holds the database and nothing else. [Open] creates it, and the
	// database in it, only when it is empty or missing.
	Dir string
	// ExpectID refuses a store with another id (a staging copy, say). "": any.
	ExpectID string
	// LockTimeout bounds the wait for the file lock; 0: DefaultLockTimeout.
	LockTimeout time.Duration
	// CachedChains bounds the chain states in memory; 0: DefaultCachedChains.
	CachedChains int
	// KeepIntent and KeepParsed keep the intent text and the parsed
	// expression of a step. Plans and seal artifacts are always kept.
	KeepIntent, KeepParsed bool
	// Logger gets start, recovery and trouble; nil: nothing is logged.
	Logger *slog.Logger
	// Now stamps epochs, losses and seals, none of which is hashed; nil: time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	if c.LockTimeout <= 0 {
		c.LockTimeout = DefaultLockTimeout
	}
	if c.CachedChains <= 0 {
		c.CachedChains = DefaultCachedChains
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Store is an open store. All methods may be called concurrently. Queries copy
// what they return, and hold no transaction when they return.
type Store struct {
	cfg       Config
	db        *bbolt.DB
	identity  identity
	readOnly  bool
	newest    uint32 // the schema version to work with
	upgrading bool   // an older one is opened, for upgrade alone
	existing  bool   // none is made
	mark      *mark
	torn      bool   // one meta page was damaged when the store was opened
	restored  bool   // it is an older copy of itself, or lies there without a mark
	unsynced  string // what was noted of a failed sync when the store was opened; "": nothing

	life  life        // writer's: as committed
	begun bool        // writer's: that life, by this process
	tx    uint64      // writer's: the last one that is durable
	renew atomic.Bool // a new life is due

	durable durability // locks for itself

	// open is held by every call for reading, and by Close for writing.
	open   sync.RWMutex
	closed bool

	// long is held for reading by calls whose transactions take long, so that a
	// compaction, which holds it for writing, need not stop writers and readers
	// while it waits for them. It is taken before token and open.
	long sync.RWMutex

	replays replays // of readers; locks for itself

	// token is held by whoever writes: the leader of a group commit, or Close
	// for good. It covers all that only the writer touches.
	token chan struct{}
	w     writer // reused from transaction to transaction
	stale bool   // memory may differ from the database: recover first
	fatal error  // nothing more can be written by this process

	queueMu sync.Mutex
	queue   []*request // nil and refusing once closing is set
	closing bool
	done    chan struct{} // closed with closing

	// mu guards what readers see of the last commit. The writer holds it for
	// the moments in which it publishes, never during a transaction, and reads
	// these fields without it.
	mu       sync.RWMutex
	chains   map[events.Key]*chain
	epochs   map[string]*Epoch // current epoch by stream name
	n        counters
	writeErr error // of the last transaction
	aside    map[events.Key]*aside
	damaged  map[events.Key]bool
	damage   string // of the chain found last

	dirty  []dirtyMark // writer's: chains in the order of their oldest pending entries, on which the tail depends
	cut    []dirtyMark // writer's: chains that are being flushed to shorten the tail, by number
	recent *list.List  // writer's: chains with a state in memory, last used first

	unread []*aside // writer's: chains to be set aside in the next transaction

	idSeed     maphash.Seed
	idSlots    int // writer's: places in the sets of ids of all chains
	maxIDSlots int
	spareIDs   [][]heldID // writer's

	jobsAdded, rejectionsAdded chan struct{}

	flush       flushLimits
	testingOnly hooks
	viewing     func() // tests: in a reader's transaction that has just begun; beside hooks, which tests change while others read
}

// hooks make transactions fail at named points, in tests only.
type hooks struct {
	beforeCommit func() error              // the transaction is not persisted
	commit       func(tx *bbolt.Tx) error  // in the place of tx.Commit
	afterCommit  func() error              // persisted, yet reported as failed
	published    func(touched, states int) // after a commit, under the token

	compact func(step string, do func() error) error // around the steps of a compaction
	scan    int                                      // in the place of scanPerTx, for a check
}

// ID is the random identity that the store got when it was created: 32
// lower-case hex digits. Copies have the same.
func (s *Store) ID() string { return s.identity.id }

func (s *Store) nowMS() int64 { return s.cfg.Now().UnixMilli() }

// Close waits for running calls, lets waiting ones fail with ErrClosed, and
// releases the file. It is idempotent.
func (s *Store) Close() error {
	s.queueMu.Lock()
	already := s.closing
	if s.closing = true; !already {
		close(s.done)
	}
	s.queueMu.Unlock()
	if already {
		s.open.RLock() // wait until the first Close is done
		defer s.open.RUnlock()
		return nil
	}
	s.token <- struct{}{} // never given back
	s.queueMu.Lock()
	waiting := s.queue
	s.queue = nil
	s.queueMu.Unlock()
	for _, r := range waiting {
		r.done <- ErrClosed
	}
	s.open.Lock()
	defer s.open.Unlock()
	s.closed = true
	if s.begun && s.fatal == nil {
		s.lastMark()
	}
	if err := errors.Join(s.db.Close(), s.mark.root.Close()); err != nil {
		return sealOff("close store", err)
	}
	return nil
}

// Append applies the events of b in order and makes their effects durable in
// one transaction. The effects, one per event and in the same order, are
// returned only after the commit; after an error nothing of the batch is
// visible, or all of it, and the same batch may be given again.
//
// Batches of one stream must be given in stream order, one after the other;
// batches of different streams may be given concurrently and share a
// transaction. Events at or below the watermark are recognised by id and
// digest, or as rejected before, and have no second effect; a message that the
// store does not know under such a sequence begins a new epoch. A jump in the
// sequences is recorded as a lost range in the same transaction: a stream is
// delivered in order, so what lies between will not come.
//
// It returns ErrClosed, ErrReadOnly, an error matching ErrCorrupt, ErrBroken
// when the store must be opened again, or an error of the disk, after which
// the batch may be tried again.
func (s *Store) Append(ctx context.Context, b *events.Batch) ([]events.Effect, error) {
	var effects []events.Effect
	err := s.do(ctx, func(w *writer) (err error) {
		effects, err = w.appendBatch(b)
		return err
	})
	if err != nil {
		return nil, err
	}
	return effects, nil
}
