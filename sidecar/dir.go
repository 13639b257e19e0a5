package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/chaind/chaind/internal/durable"
)

const (
	ownDir    = ".chaind"
	lockName  = ownDir + "/lock"
	ownerName = ownDir + "/owner"
)

// LockedError says that another process writes to the directory.
type LockedError struct {
	Dir    string
	Holder string // process id as the holder wrote it; "" when unknown
}

func (e *LockedError) Error() string {
	if e.Holder == "" {
		return fmt.Sprintf("sidecar directory %q is in use by another process", e.Dir)
	}
	return fmt.Sprintf("sidecar directory %q is in use by process %s", e.Dir, e.Holder)
}

// Dir keeps each blob in a file of its name below one directory. Writes are
// durable and atomic (package durable); no symbolic link below the directory is
// followed, neither for reading nor for writing.
type Dir struct {
	files *durable.Dir
	lock  *os.File // nil when opened for reading
	folds bool     // the file system takes names that differ in case for one
}

var _ Blobs = (*Dir)(nil)

// OpenDir opens the directory at dir for writing, creating it when it is
// missing, takes its lock and removes what interrupted writes left behind. A
// directory that another process has open this way is a [*LockedError]. The
// lock ends with Close or with the process.
func OpenDir(dir string) (*Dir, error) {
	files, err := durable.Create(dir)
	if err != nil {
		return nil, fmt.Errorf("open sidecar directory: %w", err)
	}
	return OpenDirIn(files, dir)
}

// OpenDirIn is OpenDir of a tree that is open already, at dir; the Dir closes it.
func OpenDirIn(files *durable.Dir, dir string) (*Dir, error) {
	d := &Dir{files: files}
	if err := d.prepare(dir); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *Dir) prepare(dir string) error {
	root := d.files.Root()
	if err := root.Mkdir(ownDir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("open sidecar directory: %w", err)
	}
	lock, err := takeLock(root, dir)
	if err != nil {
		return err
	}
	d.lock = lock
	// On a file system that folds case the lock answers to another spelling.
	_, err = root.Lstat(strings.ToUpper(lockName))
	d.folds = err == nil
	if _, err := d.files.RemoveTemp(); err != nil {
		return fmt.Errorf("open sidecar directory: %w", err)
	}
	return nil
}

// OpenDirReadOnly opens an existing directory for reading beside whoever
// writes it. Writes fail.
func OpenDirReadOnly(dir string) (*Dir, error) {
	files, err := durable.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open sidecar directory: %w", err)
	}
	return &Dir{files: files}, nil
}

// Close releases the lock and the directory.
func (d *Dir) Close() error {
	var err error
	if d.lock != nil {
		err = d.lock.Close()
	}
	return errors.Join(err, d.files.Close())
}

var errReadOnly = errors.New("directory is open for reading only")

func (d *Dir) checkWrite(ctx context.Context, name string) error {
	if err := check(ctx, name); err != nil {
		return err
	}
	if d.lock == nil {
		return errReadOnly
	}
	if d.folds && strings.ToLower(name) != name {
		return fmt.Errorf("%w: %q has capitals, which this file system does not keep apart", ErrName, clip(name))
	}
	return nil
}

// Put implements [Blobs]. A symbolic link in the place of the file is replaced.
func (d *Dir) Put(ctx context.Context, name string, body Body) error {
	if err := d.checkWrite(ctx, name); err != nil {
		return fmt.Errorf("write blob: %w", err)
	}
	return d.files.Write(name, body)
}

// PutOnce implements [Blobs].
func (d *Dir) PutOnce(ctx context.Context, name string, body Body) error {
	if err := d.checkWrite(ctx, name); err != nil {
		return fmt.Errorf("write blob: %w", err)
	}
	err := d.files.WriteOnce(name, body)
	if _, ok := errors.AsType[*durable.ConflictError](err); ok {
		return &ConflictError{Name: name}
	}
	return err
}

// PutGroup puts many blobs for few waits for the disk (package durable,
// [durable.Dir.WriteGroup]).
func (d *Dir) PutGroup(ctx context.Context, first, then []Blob, meanwhile func() error) error {
	files := make([]durable.File, 0, len(first)+len(then))
	for _, b := range slices.Concat(first, then) {
		if err := d.checkWrite(ctx, b.Name); err != nil {
			return fmt.Errorf("write blob: %w", err)
		}
		files = append(files, durable.File(b))
	}
	err := d.files.WriteGroup(files[:len(first)], files[len(first):], meanwhile)
	if conflict, ok := errors.AsType[*durable.ConflictError](err); ok {
		return &ConflictError{Name: conflict.Name}
	}
	return err
}

// Open implements [Blobs].
func (d *Dir) Open(ctx context.Context, name string) (io.ReadSeekCloser, error) {
	if err := check(ctx, name); err != nil {
		return nil, fmt.Errorf("open blob: %w", err)
	}
	f, err := d.files.Open(name)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Remove implements [Blobs].
func (d *Dir) Remove(ctx context.Context, name string) error {
	if err := d.checkWrite(ctx, name); err != nil {
		return fmt.Errorf("remove blob: %w", err)
	}
	return d.files.Remove(name)
}

// List implements [Blobs]. Links and other special files are not blobs.
func (d *Dir) List(ctx context.Context, prefix string, visit func(name string) error) error {
	dir := "."
	if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
		dir = prefix[:i]
	}
	return d.list(ctx, dir, prefix, visit)
}

func (d *Dir) list(ctx context.Context, dir, prefix string, visit func(name string) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := d.files.List(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if !strings.HasPrefix(name, prefix) || name == durable.TempDir || name == lockName {
			continue
		}
		if e.IsDir() {
			err = d.list(ctx, name, "", visit)
		} else if e.Type().IsRegular() {
			err = visit(name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
