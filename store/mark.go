package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// mark is the file beside the database that remembers whose it is, how long it
// has been, and which life of it was last written to, so that a shorter or an older
// one is noticed though its pages fit together. Its text is:
//
//	chaind store {32 hex digits} has had {decimal} bytes
//	life {32 hex digits} has had {decimal} transactions
//
// The second line is there from the first commit on. What it says is least: a mark
// that is behind the database is true as well. A database without a mark (a
// restored backup) is taken as it is.
type mark struct {
	root *os.Root
	f    *os.File // the database
	id   string   // "": no mark yet
	size int64    // bytes
	life string   // "": none yet
	tx   uint64   // of that life
}

const (
	markFormat = "chaind store %s has had %d bytes\n"
	lifeFormat = "life %s has had %d transactions\n"
)

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
	_, err = fmt.Sscanf(string(b), markFormat, &m.id, &m.size)
	if _, life, more := strings.Cut(string(b), "\n"); err == nil && more && life != "" {
		_, err = fmt.Sscanf(life, lifeFormat, &m.life, &m.tx)
	}
	if err != nil || string(b) != m.text() {
		return m.damaged()
	}
	return nil
}

func (m *mark) damaged() error {
	return fmt.Errorf("%w: %s is not what was written; remove it to take the database as it is", ErrCorrupt, MarkFile)
}

func (m *mark) text() string {
	text := fmt.Sprintf(markFormat, m.id, m.size)
	if m.life != "" {
		text += fmt.Sprintf(lifeFormat, m.life, m.tx)
	}
	return text
}

// write makes the mark durable. A crash before the rename leaves the lower mark,
// which is true as well: a file gets shorter, and its transactions are counted anew,
// only by a compaction, which lowers the mark first.
func (m *mark) write(next mark) error {
	if err := writeNamed(m.root, MarkFile, next.text()); err != nil {
		return err
	}
	m.id, m.size, m.life, m.tx = next.id, next.size, next.life, next.tx
	return nil
}

// writeNamed makes a small file durable under its name:
//
//	openat creating-NAME, write, fsync, close, renameat → NAME, fsync the directory
func writeNamed(root *os.Root, name, text string) error {
	temp := creatingPrefix + name
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := root.Rename(temp, name); err != nil {
		return err
	}
	return syncRoot(root)
}

// raiseMark raises the mark after a commit and when the store is opened, where that
// says more than the mark: when the file has grown, in a new life, and now and then.
// When it fails, on a full disk say, the mark is only less sharp than it could be;
// it is tried again with every commit.
func (s *Store) raiseMark() {
	if err := s.raise(markEvery); err != nil {
		s.cfg.Logger.Warn("size mark not written", "err", err)
	}
}

// raise writes the mark when it is so many transactions behind, or more than that.
func (s *Store) raise(every uint64) error {
	info, err := s.mark.f.Stat()
	if err != nil {
		return err
	}
	m := s.mark
	next := mark{id: s.identity.id, size: max(info.Size(), m.size), life: s.life.now}
	if next.life != "" {
		next.tx = s.tx
	}
	if next.size == m.size && next.id == m.id && next.life == m.life && next.tx < m.tx+every {
		return nil
	}
	return m.write(next)
}

// lastMark raises the mark as the store is closed, after which nothing is
// committed by this process.
func (s *Store) lastMark() {
	if err := s.raise(1); err != nil {
		s.cfg.Logger.Warn("size mark not written", "err", err)
	}
}

// lowerMark makes the mark true of a database of that size with the same content,
// whose transactions are counted anew, as well. Where there is none, none is made:
// that a restore has not been noted yet must stay to be seen.
func (s *Store) lowerMark(size int64) error {
	if s.mark.id == "" {
		return nil
	}
	return s.mark.write(mark{id: s.mark.id, size: min(size, s.mark.size), life: s.mark.life})
}
