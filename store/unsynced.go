package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// UnsyncedFile lies beside the database after a sync of it has failed.
const UnsyncedFile = "store.unsynced"

// After a failed fsync the kernel may keep in memory what the disk never got, say
// so once, and then take it for written: the next process reads what a power cut
// would undo. A commit whose second fsync failed (that of the meta page) is such a
// thing: events in it were not acknowledged, would be recognised when they come
// again, and be acknowledged then, with nothing on the disk.
//
// So the failure is noted beside the database before anybody is told of it, and the
// next start believes nothing: it checks the whole database as it reads it, writes
// it into a new file, as a compaction does, syncs that, and gives it the name. Only
// then is the note removed. What is read in the first step may be of the memory or
// of the disk; it is whole either way (it has been checked, and the new file is
// compared with it value for value), and durable by a sync of bytes that were never
// synced in vain. That needs no trust in how a system treats the pages of a failed
// sync, as reading past its memory would.
//
// Chains that were set aside before are no reason to refuse: the database said that
// they are damaged, and they are copied with the damage, as repairable as before.
//
// A crash leaves the note, until the new file has its name for good. If the note
// cannot be written, on a disk that takes nothing any more, the log says so: then
// only its reader knows.

// leaveUnsynced notes that a sync failed.
func (s *Store) leaveUnsynced(cause error) {
	text := strings.ReplaceAll(cause.Error(), "\n", " ")
	text = fmt.Sprintf("%s at %s: %s\n", unsyncedHead, s.cfg.Now().UTC().Format("2006-01-02T15:04:05Z"), text[:min(len(text), maxReason)])
	if err := writeNamed(s.mark.root, UnsyncedFile, text); err != nil {
		s.cfg.Logger.Error("what the disk has is not known, and that could not be noted for the next start: make a file "+UnsyncedFile+" in the directory of the database",
			"err", cause, "record_err", err)
		return
	}
	s.cfg.Logger.Error("what the disk has is not known: the next start checks the database and writes it anew", "err", cause)
}

// Unsynced tells of a failed sync of an earlier process, which a store that was opened
// for reading only shows the database after as the system does: a power cut may take
// back the last commit, which was not acknowledged. "": there is none, or it has been
// made good.
func (s *Store) Unsynced() string { return s.unsynced }

const unsyncedHead = "a sync of the database failed"

// readUnsynced reads the note; whatever stands in it, it is one.
func (s *Store) readUnsynced() error {
	info, err := s.mark.root.Lstat(UnsyncedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	s.unsynced = unsyncedHead
	if !info.Mode().IsRegular() || info.Size() > 2*maxReason {
		return nil
	}
	b, err := s.mark.root.ReadFile(UnsyncedFile)
	if line, _, _ := strings.Cut(string(b), "\n"); strings.HasPrefix(line, unsyncedHead) {
		s.unsynced = line
	}
	return err
}

// rewrite brings a database that was left unsynced onto the disk.
func (s *Store) rewrite() error {
	if s.unsynced == "" {
		return nil
	}
	s.cfg.Logger.Warn("a sync of the database failed in an earlier run: it is checked and written anew", "detail", s.unsynced)
	s.torn = false // the new file has two whole meta pages, and a torn one is no reason to refuse
	if _, err := s.compact(context.Background(), nil, true); err != nil {
		return fmt.Errorf("%w, and it could not be checked and written anew, for which the disk needs room for a second one "+
			"(noted was: %s; if chaind check finds damage in chains that were not set aside before, restore a backup or replay the stream): %w", ErrUnsynced, s.unsynced, err)
	}
	if err := s.mark.root.Remove(UnsyncedFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := syncRoot(s.mark.root); err != nil {
		return err
	}
	s.unsynced = ""
	return nil
}
