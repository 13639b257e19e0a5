package export

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"
)

// MaxUnpacked bounds the bytes of all files of a [Folder].
const MaxUnpacked = 8 << 30

// Folder is a flat file system of plain files by path, for sources that are no
// directory. The zero value is empty and ready to use.
type Folder struct {
	files map[string]flat
	taken map[string]bool // names, case folded
	bytes int64
}

type flat struct {
	size int64
	open func() (io.ReadCloser, error)
}

// Add puts a file into the folder; open may be called several times. A path
// that an export cannot have, a name that is there already (case ignored), and
// too many files or bytes are [ErrArchive].
func (d *Folder) Add(name string, size int64, open func() (io.ReadCloser, error)) error {
	folded := strings.ToLower(name)
	switch {
	case !safePath(name):
		return fmt.Errorf("%w: a path that no export has", ErrArchive)
	case d.taken[folded]:
		return fmt.Errorf("%w: a name that occurs twice", ErrArchive)
	case len(d.files) >= MaxFiles+2:
		return fmt.Errorf("%w: more than %d files", ErrArchive, MaxFiles)
	case size < 0 || size > MaxUnpacked-d.bytes:
		return fmt.Errorf("%w: more than %d bytes", ErrArchive, int64(MaxUnpacked))
	}
	if d.files == nil {
		d.files, d.taken = map[string]flat{}, map[string]bool{}
	}
	d.files[name], d.taken[folded] = flat{size, open}, true
	d.bytes += size
	return nil
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
		return 0, fmt.Errorf("%w: a file is larger than stated", ErrArchive)
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
