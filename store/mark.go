package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// mark is the file beside the database that remembers whose it is and how long
// it has been, so that a shorter one is noticed though its pages fit together.
// Its text is one line:
//
//	chaind store {32 hex digits} has had {decimal} bytes
//
// A database without it (a restored backup) is taken as it is.
type mark struct {
	root *os.Root
	f    *os.File // the database
	id   string   // "": no mark yet
	size int64    // bytes
}

const markFormat = "chaind store %s has had %d bytes\n"

func (m *mark) read() error {
	info, err := m.root.Lstat(MarkFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > maxMarkSize {
		return m.damaged()
	}
	b, err := m.root.ReadFile(MarkFile)
	if err != nil {
		return err
	}
	if _, err := fmt.Sscanf(string(b), markFormat, &m.id, &m.size); err != nil || string(b) != m.text() {
		return m.damaged()
	}
	return nil
}

func (m *mark) damaged() error {
	return fmt.Errorf("%w: %s is not what was written; remove it to take the database as it is", ErrCorrupt, MarkFile)
}

func (m *mark) text() string { return fmt.Sprintf(markFormat, m.id, m.size) }

// raise writes the mark when the database has grown. A crash before the rename
// leaves the lower mark, which is true as well: a file gets shorter only by a
// compaction, which lowers the mark first.
func (m *mark) raise(id string) error {
	info, err := m.f.Stat()
	if err != nil {
		return err
	}
	if info.Size() <= m.size && m.id == id {
		return nil
	}
	return m.write(id, info.Size())
}

// write makes the mark durable:
//
//	openat creating-store.id, write, fsync, close, renameat → store.id, fsync the directory
func (m *mark) write(id string, size int64) error {
	next := mark{id: id, size: size}
	const temp = creatingPrefix + MarkFile
	f, err := m.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(next.text())
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := m.root.Rename(temp, MarkFile); err != nil {
		return err
	}
	if err := syncRoot(m.root); err != nil {
		return err
	}
	m.id, m.size = next.id, next.size
	return nil
}

// raiseMark raises the mark after a commit and when the store is opened. When
// that fails, on a full disk say, the mark is only less sharp than it could be;
// it is tried again with every commit.
func (s *Store) raiseMark() {
	if err := s.mark.raise(s.identity.id); err != nil {
		s.cfg.Logger.Warn("size mark not written", "err", err)
	}
}
