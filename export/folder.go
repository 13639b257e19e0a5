package export

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/chaind/chaind/verifier"
)

// Folder is a flat file system of plain files by path, for sources that are no
// directory. The zero value is empty and ready to use.
type Folder struct {
	files  map[string]flat
	bytes  int64
	packed bool    // it is a ZIP file
	faults []fault // of that file
}

type flat struct {
	size int64
	open func() (io.ReadCloser, error)
}

// fault is what is wrong with a ZIP file that can be read all the same. path
// is raw; "": no single entry. detail is safe to print.
type fault struct{ path, detail string }

// Add puts a file into the folder; open may be called several times. A path
// that could lead out of a folder, a name that is there already, and too many
// files or bytes are [ErrArchive]. A name that is merely odd is taken: such a
// file is not listed, and [Check] names it.
func (d *Folder) Add(name string, size int64, open func() (io.ReadCloser, error)) error {
	_, twice := d.files[name]
	switch {
	case dangerous(name):
		return fmt.Errorf("%w: the path %s could lead out of the folder", ErrArchive, shown(name))
	case twice:
		return fmt.Errorf("%w: the name %s occurs twice", ErrArchive, shown(name))
	case len(d.files) >= MaxFiles+2:
		return fmt.Errorf("%w: more than %d files with %s", ErrArchive, MaxFiles, shown(name))
	case size < 0 || size > MaxUnpacked-d.bytes:
		return fmt.Errorf("%w: more than %d bytes in all with %s", ErrArchive, int64(MaxUnpacked), shown(name))
	}
	if d.files == nil {
		d.files = map[string]flat{}
	}
	d.files[name] = flat{size, open}
	d.bytes += size
	return nil
}

// dangerous tells whether a path may name something outside of the folder, on
// any system, or has more than one spelling.
func dangerous(name string) bool {
	if len(name) > maxName || strings.ContainsAny(name, "\x00\\") || len(name) > 1 && name[1] == ':' {
		return true
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return true
		}
	}
	return false
}

// shown makes a path safe to print, and short enough.
func shown(path string) string { return verifier.Escape(short(path)) }

func short(path string) string {
	if len(path) > maxPath {
		return path[:maxPath] + "…"
	}
	return path
}

// Open implements fs.FS for the files of the folder.
func (d *Folder) Open(name string) (fs.File, error) {
	f, ok := d.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	r, err := f.open()
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &entry{ReadCloser: r, name: path.Base(name), size: f.size, left: f.size}, nil
}

// names lists all files.
func (d *Folder) names() []string {
	names := make([]string, 0, len(d.files))
	for name := range d.files {
		names = append(names, name)
	}
	return names
}

// entry is an open file. It gives no byte more than was stated for it.
type entry struct {
	io.ReadCloser
	name       string
	size, left int64
}

// Read fails with ErrArchive behind the stated size.
func (e *entry) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	if e.left -= int64(n); e.left < 0 {
		return 0, errOverlong
	}
	return n, err
}

func (e *entry) Stat() (fs.FileInfo, error) { return e, nil }
func (e *entry) Name() string               { return e.name }
func (e *entry) Size() int64                { return e.size }
func (e *entry) Mode() fs.FileMode          { return 0o444 }
func (e *entry) ModTime() time.Time         { return time.Time{} }
func (e *entry) IsDir() bool                { return false }
func (e *entry) Sys() any                   { return nil }
