package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
)

// Open opens the regular file name for reading. The error wraps
// [fs.ErrNotExist] when there is none and [ErrNotRegular] when a symbolic link
// is on the way.
func (d *Dir) Open(name string) (*os.File, error) {
	f, err := d.open(name)
	if err != nil {
		return nil, fmt.Errorf("open file %q: %w", name, err)
	}
	return f, nil
}

// open looks before it opens (opening a pipe would block) and again after, so
// that a link put there in between is noticed.
func (d *Dir) open(name string) (*os.File, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	in, err := d.folders.enter(path.Dir(name))
	if err != nil {
		return nil, err
	}
	defer d.folders.leave(in)
	dir, base := in.root, path.Base(name)
	before, err := dir.Lstat(base)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, ErrNotRegular
	}
	f, err := dir.Open(base)
	if err != nil {
		return nil, err
	}
	after, err := f.Stat()
	if err == nil && !os.SameFile(before, after) && !sameNow(dir, base, after) {
		err = ErrNotRegular
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// sameNow tells whether the opened file is the one that the name stands for: a
// writer of ours may have replaced it between the look and the opening.
func sameNow(dir *os.Root, base string, opened fs.FileInfo) bool {
	now, err := dir.Lstat(base)
	return err == nil && now.Mode().IsRegular() && os.SameFile(now, opened)
}

// Read returns the bytes of the regular file name, at most limit of them; a
// larger file is an error that wraps [ErrTooLarge]. Other errors as [Dir.Open].
func (d *Dir) Read(name string, limit int64) ([]byte, error) {
	f, err := d.open(name)
	if err != nil {
		return nil, fmt.Errorf("read file %q: %w", name, err)
	}
	defer f.Close()
	b, err := readLimited(f, limit)
	if err != nil {
		return nil, fmt.Errorf("read file %q: %w", name, err)
	}
	return b, nil
}

func readLimited(f *os.File, limit int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, ErrTooLarge
	}
	// One byte of room lets the last read see the end of the file.
	buf := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	if _, err := buf.ReadFrom(io.LimitReader(f, limit+1)); err != nil {
		return nil, err
	}
	if int64(buf.Len()) > limit {
		return nil, ErrTooLarge
	}
	return buf.Bytes(), nil
}

// List returns the entries of the directory dir, sorted by name; "." is the
// root. A directory that does not exist has none, nor has a file.
func (d *Dir) List(dir string) ([]fs.DirEntry, error) {
	if dir != "." {
		if err := checkName(dir); err != nil {
			return nil, fmt.Errorf("list directory: %w", err)
		}
		err := d.checkParents(dir + "/x")
		if errors.Is(err, fs.ErrNotExist) || d.isFile(dir) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list directory %q: %w", dir, err)
		}
	}
	entries, err := fs.ReadDir(d.root.FS(), dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list directory: %w", err)
	}
	return entries, nil
}

func (d *Dir) isFile(name string) bool {
	info, err := d.root.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}

// checkParents refuses a name with anything but directories on the way to it.
func (d *Dir) checkParents(name string) error {
	f, err := d.folders.enter(path.Dir(name))
	if err == nil {
		d.folders.leave(f)
	}
	return err
}

const compareSize = 64 << 10 // bytes compared at a time

func (d *Dir) sameBytes(a, b string) (bool, error) {
	fa, err := d.open(a)
	if err != nil {
		return false, err
	}
	defer fa.Close()
	fb, err := d.open(b)
	if err != nil {
		return false, err
	}
	defer fb.Close()
	return sameContent(fa, fb)
}

func sameContent(a, b io.Reader) (bool, error) {
	bufA, bufB := make([]byte, compareSize), make([]byte, compareSize)
	for {
		n, errA := io.ReadFull(a, bufA)
		m, errB := io.ReadFull(b, bufB)
		if !bytes.Equal(bufA[:n], bufB[:m]) {
			return false, nil
		}
		if ended(errA) && ended(errB) {
			return true, nil
		}
		if err := errors.Join(errA, errB); err != nil {
			return false, err
		}
	}
}

func ended(err error) bool { return err == io.EOF || err == io.ErrUnexpectedEOF }
