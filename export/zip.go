package export

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// MaxUnpacked bounds the bytes that a ZIP file may hold, unpacked.
const MaxUnpacked = 8 << 30

// ErrArchive is wrapped by the errors for ZIP files that are refused.
var ErrArchive = errors.New("archive is refused")

// IsZip tells a ZIP file by its first bytes.
func IsZip(start []byte) bool { return strings.HasPrefix(string(start), "PK\x03\x04") }

// OpenZip opens a ZIP file as a folder. It refuses with [ErrArchive] what is no
// archive, paths that lead out of it or that an export cannot have, links and
// other special files, names that occur twice (case ignored), too many files
// and too many bytes. A file that unpacks to more than it states fails when it
// is read, as one with a wrong checksum does.
func OpenZip(r io.ReaderAt, size int64) (fs.FS, error) {
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("%w: it cannot be read as a ZIP file", ErrArchive)
	}
	if len(archive.File) > MaxFiles+2 {
		return nil, fmt.Errorf("%w: more than %d files", ErrArchive, MaxFiles)
	}
	files := make(archived, len(archive.File))
	folded := make(map[string]bool, len(archive.File))
	left := uint64(MaxUnpacked)
	for i, f := range archive.File {
		name, directory := strings.CutSuffix(f.Name, "/")
		switch {
		case !safePath(name):
			return nil, fmt.Errorf("%w: entry %d has a path that no export has", ErrArchive, i)
		case directory:
			continue
		case !f.Mode().IsRegular():
			return nil, fmt.Errorf("%w: entry %d is no plain file", ErrArchive, i)
		case folded[strings.ToLower(name)]:
			return nil, fmt.Errorf("%w: entry %d has the name of another", ErrArchive, i)
		case f.UncompressedSize64 > left:
			return nil, fmt.Errorf("%w: it unpacks to more than %d bytes", ErrArchive, uint64(MaxUnpacked))
		}
		left -= f.UncompressedSize64
		folded[strings.ToLower(name)] = true
		files[name] = f
	}
	return files, nil
}

// archived is the folder within a ZIP file: plain files by path.
type archived map[string]*zip.File

// Open opens a file. The standard library's reader ends it at the stated size
// and compares the checksum.
func (a archived) Open(name string) (fs.File, error) {
	f, ok := a[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	return &entry{ReadCloser: r, info: f.FileInfo(), left: int64(f.UncompressedSize64)}, nil
}

// entry gives no byte more than the archive states for it.
type entry struct {
	io.ReadCloser
	info fs.FileInfo
	left int64
}

func (e *entry) Stat() (fs.FileInfo, error) { return e.info, nil }

func (e *entry) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	if e.left -= int64(n); e.left < 0 {
		return 0, fmt.Errorf("%w: a file is larger than stated", ErrArchive)
	}
	return n, err
}

// list names all files, for Check.
func (a archived) list() ([]string, error) {
	names := make([]string, 0, len(a))
	for name := range a {
		names = append(names, name)
	}
	return names, nil
}
