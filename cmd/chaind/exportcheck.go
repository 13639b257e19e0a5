package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/chaind/chaind/export"
	"github.com/chaind/chaind/verifier"
)

// directory is a folder on the disk. No link leads out of it, and opening what
// is no plain file, such as a pipe without a writer, does not wait: whoever
// looks at the kind of a file first may find it another one when opening it.
type directory struct{ root *os.Root }

var _ fs.ReadLinkFS = directory{}

func (d directory) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	f, err := d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (d directory) Lstat(name string) (fs.FileInfo, error) { return d.root.Lstat(name) }
func (d directory) ReadLink(name string) (string, error)   { return d.root.Readlink(name) }

// openExport opens what chaind export writes: a directory, or a ZIP file. For
// anything else the folder is nil.
func openExport(name string) (folder fs.FS, closeIt func() error, err error) {
	nothing := func() error { return nil }
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return nil, nothing, nil // whoever opens it as a file says why not
	}
	if info.IsDir() {
		root, err := os.OpenRoot(name)
		if err != nil {
			return nil, nothing, err
		}
		return directory{root}, root.Close, nil
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nothing, nil
	}
	start := make([]byte, 4)
	if _, err := io.ReadFull(f, start); err != nil || !export.IsZip(start) {
		return nil, nothing, f.Close()
	}
	archive, err := export.OpenZip(f, info.Size())
	if err != nil {
		return nil, nothing, errors.Join(err, f.Close())
	}
	return archive, f.Close, nil
}

// verifyExport judges a whole export: a report on each bundle in it, then the
// one on the export. It gives nothing when name is no export.
func (c *verifyCmd) verifyExport(a *app, name string, o verifier.Options, visit func(verified) error) (found bool, err error) {
	folder, closeIt, err := openExport(name)
	if err != nil {
		return true, visit(verified{name, export.Refused(err)})
	}
	if folder == nil {
		return false, nil
	}
	var failed error
	r := export.Check(a.ctx, folder, o, func(path string, r *verifier.Report) {
		if failed == nil {
			failed = visit(verified{name + "/" + path, r})
		}
	})
	if failed == nil {
		failed = visit(verified{name, r})
	}
	return true, errors.Join(failed, closeIt())
}
