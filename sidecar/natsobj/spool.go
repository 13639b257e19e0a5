package natsobj

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// spool keeps an open object: in memory, beyond maxInMemory in a temporary file.
type spool struct {
	dir string
	buf bytes.Buffer
	io.ReadSeeker
	file *os.File // nil: in memory
}

func (s *spool) Write(p []byte) (int, error) {
	if s.file == nil && s.buf.Len()+len(p) > maxInMemory {
		if err := s.overflow(); err != nil {
			return 0, err
		}
	}
	if s.file != nil {
		return s.file.Write(p)
	}
	return s.buf.Write(p)
}

func (s *spool) overflow() error {
	f, err := os.CreateTemp(s.dir, "chaind-object-")
	if err != nil {
		return err
	}
	s.file = f
	// Where an open file can lose its name, nothing is left behind by a crash.
	_ = os.Remove(f.Name())
	_, err = s.buf.WriteTo(f)
	s.buf = bytes.Buffer{}
	return err
}

// rewind ends writing and begins reading.
func (s *spool) rewind() error {
	if s.file == nil {
		s.ReadSeeker = bytes.NewReader(s.buf.Bytes())
		return nil
	}
	s.ReadSeeker = s.file
	_, err := s.file.Seek(0, io.SeekStart)
	return err
}

// Close implements io.Closer.
func (s *spool) Close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if removed := os.Remove(s.file.Name()); removed != nil && !errors.Is(removed, os.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}
