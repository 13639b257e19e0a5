package export

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrArchive is wrapped by the errors for ZIP files and folders that are
// refused.
var ErrArchive = errors.New("archive is refused")

// IsZip tells a ZIP file by its first bytes.
func IsZip(start []byte) bool { return strings.HasPrefix(string(start), "PK\x03\x04") }

// OpenZip opens a ZIP file as a folder. It refuses with [ErrArchive] what is no
// archive, paths that lead out of it or that an export cannot have, links and
// other special files, names that occur twice (case ignored), too many files
// and too many bytes. A file that unpacks to more than it states fails when it
// is read, as one with a wrong checksum does.
func OpenZip(r io.ReaderAt, size int64) (*Folder, error) {
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("%w: it cannot be read as a ZIP file", ErrArchive)
	}
	var folder Folder
	for i, f := range archive.File {
		name, directory := strings.CutSuffix(f.Name, "/")
		switch {
		case directory && safePath(name):
			continue
		case directory || !f.Mode().IsRegular():
			return nil, fmt.Errorf("%w: entry %d is no plain file", ErrArchive, i)
		case f.UncompressedSize64 > MaxUnpacked:
			return nil, fmt.Errorf("%w: it unpacks to more than %d bytes", ErrArchive, int64(MaxUnpacked))
		}
		if err := folder.Add(name, int64(f.UncompressedSize64), f.Open); err != nil {
			return nil, fmt.Errorf("entry %d: %w", i, err)
		}
	}
	return &folder, nil
}
