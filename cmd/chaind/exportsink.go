package main

import (
	"archive/zip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// sink is where an export is written: a directory or a ZIP file. Until finish
// nothing has the name that the user gave; abandon removes what was written,
// and does nothing after finish.
type sink interface {
	write(name string, content []byte) error
	finish() error
	abandon()
}

// openSink begins an export. What exists is not overwritten: fs.ErrExist.
func openSink(name string) (sink, error) {
	if _, err := os.Lstat(name); err == nil {
		return nil, fmt.Errorf("write %s: %w", name, fs.ErrExist)
	}
	parent, prefix := filepath.Dir(name), "."+filepath.Base(name)+"."
	if !strings.HasSuffix(strings.ToLower(name), ".zip") {
		temp, err := os.MkdirTemp(parent, prefix)
		if err != nil {
			return nil, err
		}
		root, err := os.OpenRoot(temp)
		if err != nil {
			return nil, errors.Join(err, os.Remove(temp))
		}
		return &folderSink{root: root, temp: temp, name: name}, nil
	}
	temp, err := os.CreateTemp(parent, prefix)
	if err != nil {
		return nil, err
	}
	return &zipSink{file: temp, zip: zip.NewWriter(temp), name: name}, nil
}

type folderSink struct {
	root       *os.Root
	temp, name string
	done       bool
}

func (s *folderSink) write(name string, content []byte) error {
	if dir := path.Dir(name); dir != "." {
		if err := s.root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	f, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	return fill(f, content)
}

func (s *folderSink) finish() error {
	if err := os.Chmod(s.temp, 0o755); err != nil {
		return err
	}
	if err := os.Rename(s.temp, s.name); err != nil {
		return err
	}
	s.done = true
	return errors.Join(s.root.Close(), syncDirectory(filepath.Dir(s.name)))
}

func (s *folderSink) abandon() {
	if !s.done {
		s.root.Close()
		os.RemoveAll(s.temp)
	}
}

type zipSink struct {
	file *os.File
	zip  *zip.Writer
	name string
	done bool
}

// write adds a file without a time, so that the same content gives the same
// archive.
func (s *zipSink) write(name string, content []byte) error {
	w, err := s.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
	if err != nil {
		return err
	}
	_, err = w.Write(content)
	return err
}

func (s *zipSink) finish() error {
	if err := errors.Join(s.zip.Close(), s.file.Chmod(0o644), s.file.Sync()); err != nil {
		return err
	}
	// Link fails, unlike a rename, when somebody took the name meanwhile.
	if err := os.Link(s.file.Name(), s.name); err != nil {
		return err
	}
	s.done = true
	return errors.Join(os.Remove(s.file.Name()), s.file.Close(), syncDirectory(filepath.Dir(s.name)))
}

func (s *zipSink) abandon() {
	if !s.done {
		s.file.Close()
		os.Remove(s.file.Name())
	}
}
