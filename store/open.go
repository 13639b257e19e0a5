package store

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"go.etcd.io/bbolt"
)

// Names within the directory.
const (
	// DatabaseFile is the database.
	DatabaseFile = "chaind.db"
	// MarkFile holds the store id and the size that the database had at least.
	MarkFile = "store.id"
	// creatingPrefix begins the names of databases that are being made.
	creatingPrefix = "creating-"
)

// Open opens the store in cfg.Dir for writing. It creates one when the
// directory is missing or empty; a database that is missing beside other files
// is ErrMissing. It returns errors that match ErrForeign, ErrTruncated,
// ErrCorrupt, ErrSchema, ErrUnsynced, ErrLocked (a [*LockedError]) or that of the
// system, all with the file's name. A damaged file is an error, never a crash and never a
// fresh start: sizes and both meta pages are looked at before the file is mapped.
func Open(cfg Config) (*Store, error) { return open(cfg.withDefaults(), &Store{newest: SchemaVersion}) }

// OpenReadOnly opens an existing store for inspection, never creating or
// changing anything. While a writer holds the store it returns a [*LockedError]:
// ask the running daemon, or inspect a backup. It believes what the system shows after
// a failed sync, and tells so ([Store.Unsynced], and a line of the log).
func OpenReadOnly(cfg Config) (*Store, error) {
	return open(cfg.withDefaults(), &Store{newest: SchemaVersion, readOnly: true})
}

// open opens s, in which only newest, readOnly and upgrading are set.
func open(cfg Config, s *Store) (*Store, error) {
	if cfg.Dir == "" {
		return nil, errors.New("open store: no directory given")
	}
	if s.creates() {
		if err := makeDir(cfg.Dir); err != nil {
			return nil, fmt.Errorf("open store: %w", err)
		}
	}
	root, err := os.OpenRoot(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s.cfg, s.mark, s.flush = cfg, &mark{root: root}, defaultFlush
	s.token, s.done = make(chan struct{}, 1), make(chan struct{})
	s.idSeed, s.maxIDSlots = maphash.MakeSeed(), maxIDSlots
	s.jobsAdded, s.rejectionsAdded = make(chan struct{}, 1), make(chan struct{}, 1)
	if err := s.openIn(root); err != nil {
		root.Close()
		return nil, fmt.Errorf("open store %s: %w", filepath.Join(cfg.Dir, DatabaseFile), err)
	}
	return s, nil
}

// creates: a missing database is made.
func (s *Store) creates() bool { return !s.readOnly && !s.upgrading && !s.existing }

func (s *Store) openIn(root *os.Root) error {
	if err := s.ensure(root); err != nil {
		return err
	}
	for {
		if err := s.openOnce(root); !errors.Is(err, errReplaced) {
			return err
		}
	}
}

// errReplaced: while we waited for the lock, a compaction put another file in
// the place of the one that we opened, to which nobody must write.
var errReplaced = errors.New("database was replaced meanwhile")

func (s *Store) openOnce(root *os.Root) error {
	flag := os.O_RDWR
	if s.readOnly {
		flag = os.O_RDONLY
	}
	f, err := root.OpenFile(DatabaseFile, flag, 0)
	if err != nil {
		return err
	}
	if err := s.openFile(f); err != nil {
		f.Close() // a second time after bbolt, which does no harm
		return err
	}
	return nil
}

// ensure makes the database when the directory is empty.
func (s *Store) ensure(root *os.Root) error {
	_, err := root.Lstat(DatabaseFile)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !s.creates() {
		return ErrMissing
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), creatingPrefix) {
			return fmt.Errorf("%w, and the directory holds %q; restore the database, or name an empty directory", ErrMissing, e.Name())
		}
	}
	return s.create(root)
}

// create makes a database under a name of its own and gives it the right one
// when it is whole: a crash on the way leaves a file that is no database to
// anybody, and nothing was acknowledged yet. Of two processes that do this at
// once, one gets the name, and both go on to open it.
func (s *Store) create(root *os.Root) error {
	name, err := randomHex()
	if err != nil {
		return err
	}
	name = creatingPrefix + name
	f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer root.Remove(name)
	if err := s.initialise(f); err != nil {
		f.Close()
		return fmt.Errorf("create: %w", err)
	}
	if err := root.Link(name, DatabaseFile); err != nil {
		if _, there := root.Lstat(DatabaseFile); there != nil {
			return err
		}
	}
	return syncRoot(root)
}

// tidy removes what a crash during creation or compaction left, under the lock.
func tidy(root *os.Root) {
	entries, _ := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), creatingPrefix) {
			_ = root.Remove(e.Name()) // it is in nobody's way if it stays
		}
	}
}

// initialise writes the first transaction; bbolt syncs it and closes f.
func (s *Store) initialise(f *os.File) error {
	id, err := randomHex()
	if err != nil {
		return err
	}
	db, err := bbolt.Open(f.Name(), 0o600, options(f, false))
	if err != nil {
		return sealOff("write", err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		growGently(db, tx)
		for _, t := range tables() {
			if _, err := tx.CreateBucket([]byte(t.name)); err != nil {
				return err
			}
		}
		w := new(writer)
		w.reset(s, tx)
		first := identity{schema: SchemaVersion, id: id, createdMS: s.nowMS()}
		if err := w.write(tableMeta, metaIdentity, &first); err != nil {
			return err
		}
		return w.write(tableMeta, metaCounters, &counters{tail: 1})
	})
	if err != nil {
		err = sealOff("write", err)
	}
	return errors.Join(err, db.Close())
}

// openFile opens the database in f, which it owns from here on when it
// returns nil. The lock is taken first, so that a running writer is named as
// such and not mistaken for a damaged file.
func (s *Store) openFile(f *os.File) error {
	path := filepath.Join(s.cfg.Dir, DatabaseFile)
	if err := lockFile(f, !s.readOnly, s.cfg.LockTimeout); err != nil {
		if errors.Is(err, ErrLocked) {
			return &LockedError{Path: path, Waited: s.cfg.LockTimeout}
		}
		return err
	}
	if err := stillNamed(s.mark.root, f); err != nil {
		return err
	}
	if err := errors.Join(s.mark.read(), s.readUnsynced()); err != nil {
		return err
	}
	pages, err := openPages(f)
	if err != nil {
		return err
	}
	if pages.size < s.mark.size {
		return fmt.Errorf("%w: %d bytes, but it has had %d; if it is a restored backup, remove %s",
			ErrTruncated, pages.size, s.mark.size, MarkFile)
	}
	if err := pages.checkFreelist(); err != nil {
		return err
	}
	if s.mark.id == "" {
		if err := pages.structure(); err != nil {
			return err
		}
	}
	if s.torn = pages.damagedMeta >= 0; s.torn {
		s.cfg.Logger.Warn("one meta page is damaged: a crash during a commit, or damage to the disk", "page", pages.damagedMeta)
	}
	if err := s.openDB(f); err != nil {
		return err
	}
	s.mark.f = f
	if err := s.settle(pages); err != nil {
		s.db.Close()
		return err
	}
	return nil
}

func stillNamed(root *os.Root, f *os.File) error {
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	named, err := root.Stat(DatabaseFile)
	if err != nil {
		return err
	}
	if !os.SameFile(mine, named) {
		return errReplaced
	}
	return nil
}

func options(f *os.File, readOnly bool) *bbolt.Options {
	return &bbolt.Options{
		ReadOnly:        readOnly,
		FreelistType:    bbolt.FreelistMapType,
		NoStatistics:    true,
		InitialMmapSize: mapSize(f),
		Timeout:         DefaultLockTimeout, // held already, through the same descriptor
		OpenFile:        func(string, int, os.FileMode) (*os.File, error) { return f, nil },
	}
}

// mapSize is the address space to map the file into, more than it will fill for long:
// while a slow backup or a check reads, nobody shall wait for a larger one. It costs
// no memory. Where the system does not give as much (ulimit -v), others need the rest,
// and it is little; 0: what bbolt takes.
func mapSize(f *os.File) int {
	info, err := f.Stat()
	if err != nil || strconv.IntSize < 64 {
		return 0
	}
	return int(mappable(info.Size(), func(n int64) bool { return canMap(f, n) }))
}

func mappable(size int64, can func(int64) bool) int64 {
	for _, n := range []int64{max(mapAtLeast, 4*size), max(mapGently, 2*size)} {
		if can(n) {
			return n
		}
	}
	return 0
}

// growGently lets the file grow by as much again as tx has in it, up to growAtMost;
// what bbolt decides by the size of the mapping would be the most from the first page on.
func growGently(db *bbolt.DB, tx *bbolt.Tx) {
	db.AllocSize = int(min(max(tx.Size(), minGrowth), growAtMost))
}

func (s *Store) openDB(f *os.File) (err error) {
	defer s.guard(&err)()
	if s.db, err = bbolt.Open(f.Name(), 0o600, options(f, s.readOnly)); err != nil {
		return sealOff("map", err)
	}
	return nil
}

// settle reads who the store is and what was going on.
func (s *Store) settle(pages *pageFile) error {
	if err := s.readIdentity(); err != nil || s.upgrading {
		return err
	}
	if s.restored && s.mark.id != "" { // without a mark they were looked at before
		if err := pages.structure(); err != nil {
			return err
		}
	}
	if err := s.recover(); err != nil {
		return err
	}
	if s.n.pending != 0 {
		signal(s.jobsAdded)
	}
	if s.n.published < s.n.rejections {
		signal(s.rejectionsAdded)
	}
	if s.readOnly {
		if s.unsynced != "" {
			s.cfg.Logger.Warn("a sync of the database failed in an earlier run, and what is read may not be on the disk", "detail", s.unsynced)
		}
		s.noteAsides()
		return nil
	}
	tidy(s.mark.root)
	// A kill may have come between the last commit's writes and their sync, or
	// between a compaction's rename and its: what was read above is told of as
	// durable from here on.
	if err := errors.Join(s.db.Sync(), syncRoot(s.mark.root)); err != nil {
		s.leaveUnsynced(err)
		return fmt.Errorf("make what was read durable: %w", err)
	}
	if err := s.rewrite(); err != nil {
		return err
	}
	if err := s.noteRestore(); err != nil {
		return fmt.Errorf("note that the store was restored: %w", err)
	}
	if err := s.takeUp(); err != nil {
		return fmt.Errorf("take up what was set aside: %w", err)
	}
	s.noteAsides()
	s.raiseMark()
	return nil
}

func (s *Store) readIdentity() (err error) {
	defer s.guard(&err)()
	tx, err := s.db.Begin(false)
	if err != nil {
		return sealOff("begin transaction", err)
	}
	defer tx.Rollback()
	if tx.Bucket([]byte(tableMeta.name)) == nil || tx.Bucket([]byte(tableMeta.name)).Get(metaIdentity) == nil {
		return fmt.Errorf("%w: a database, but not of chaind", ErrForeign)
	}
	v := newView(tx)
	if _, err := v.read(tableMeta, metaIdentity, &s.identity); err != nil {
		return err
	}
	switch id := s.identity; {
	case id.schema > s.newest:
		return fmt.Errorf("%w: version %d, and this program knows up to %d", ErrSchema, id.schema, s.newest)
	case id.schema < s.newest && !s.upgrading:
		return fmt.Errorf("%w: version %d, and this program works with %d: upgrade it first (chaind upgrade)", ErrSchema, id.schema, s.newest)
	case s.mark.id != "" && s.mark.id != id.id:
		return fmt.Errorf("%w: it is store %s, and %s says %s", ErrForeign, id.id, MarkFile, s.mark.id)
	case s.cfg.ExpectID != "" && s.cfg.ExpectID != id.id:
		return fmt.Errorf("%w: it is store %s, and %s is expected", ErrForeign, id.id, s.cfg.ExpectID)
	case s.mark.id == "" && !s.readOnly:
		s.cfg.Logger.Info("store without a size mark: new, or a restored backup", "store", id.id)
	}
	return s.readLife(v, tx)
}

func randomHex() (string, error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(b[:]), nil
}

// makeDir makes the directory and makes its name durable.
func makeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	parent, err := os.Open(filepath.Dir(filepath.Clean(dir)))
	if err != nil {
		return err
	}
	return errors.Join(parent.Sync(), parent.Close())
}

func syncRoot(root *os.Root) error {
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
