package sidecar

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"
)

// ErrNotFound is returned when there is no evidence, or no snapshot, for what
// was asked.
var ErrNotFound = errors.New("not found")

// OwnerError says that the sidecars belong to another store.
type OwnerError struct {
	Have string // id of the store that the sidecars belong to
	Want string // id of the store that was to write to them
}

func (e *OwnerError) Error() string {
	return fmt.Sprintf("sidecars belong to store %q, not to %q", clip(e.Have), clip(e.Want))
}

// Config says where sidecars are kept.
type Config struct {
	Blobs Blobs
	// Owner is the id of the store whose chains are written here; it is
	// recorded at the first opening. "": nothing is recorded or compared, for
	// readers.
	Owner string
	// TakeOver records Owner in the place of another store's id instead of
	// refusing with an [*OwnerError] (a store rebuilt from its stream, say).
	TakeOver bool
	// Retention is the age from which [Sidecars.Expire] deletes run snapshots
	// that we wrote; 0: never. Below one minute it counts as one minute, as in
	// the reference.
	Retention time.Duration
	// Now stamps and ages snapshots; nil: time.Now.
	Now func() time.Time
}

// Sidecars reads and writes evidence in the layout of the package comment. It
// is safe for concurrent use, and what writes leave behind does not depend on
// their order.
type Sidecars struct {
	blobs     Blobs
	retention time.Duration
	now       func() time.Time
	locks     locks
}

// locks keep the writes under one name apart: each looks at what is there and
// then replaces it. Different names may share a lock.
type locks [4096]sync.Mutex

// lock takes the locks of names, all at once or, which comes to the same, in their
// order; nobody takes more while holding some.
func (l *locks) lock(names ...string) (unlock func()) {
	which := make([]uint32, len(names))
	for i, name := range names {
		h := fnv.New32a()
		h.Write([]byte(name))
		which[i] = h.Sum32() % uint32(len(l))
	}
	slices.Sort(which)
	which = slices.Compact(which)
	for _, i := range which {
		l[i].Lock()
	}
	return func() {
		for _, i := range which {
			l[i].Unlock()
		}
	}
}

const minRetention = time.Minute

// Open prepares the store of blobs and checks that it belongs to the owner.
func Open(ctx context.Context, cfg Config) (*Sidecars, error) {
	s := &Sidecars{blobs: cfg.Blobs, now: cfg.Now}
	if s.now == nil {
		s.now = time.Now
	}
	if cfg.Retention > 0 {
		s.retention = max(cfg.Retention, minRetention)
	}
	if err := s.claim(ctx, cfg); err != nil {
		return nil, fmt.Errorf("open sidecars: %w", err)
	}
	return s, nil
}

// claim records the owner, first come. Where it stands already nothing is written:
// a full disk must keep nobody from starting.
func (s *Sidecars) claim(ctx context.Context, cfg Config) error {
	if cfg.Owner == "" {
		return nil
	}
	text := cfg.Owner + "\n"
	have, err := read(ctx, s.blobs, ownerName, maxPointer)
	switch {
	case err == nil && string(have) == text:
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrTooLarge):
		return err
	}
	body := Bytes([]byte(text))
	err = s.blobs.PutOnce(ctx, ownerName, body)
	if _, ok := errors.AsType[*ConflictError](err); !ok {
		return err
	}
	if cfg.TakeOver {
		return s.blobs.Put(ctx, ownerName, body)
	}
	have, err = read(ctx, s.blobs, ownerName, maxPointer)
	if err != nil {
		return err
	}
	return &OwnerError{Have: strings.TrimSpace(string(have)), Want: cfg.Owner}
}
