package export

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// ErrArchive is wrapped by the errors for ZIP files and folders that are
// refused. Their texts are safe to print.
var ErrArchive = errors.New("archive is refused")

// IsZip tells a ZIP file by its first bytes: those of an entry, or of the end
// of an archive without any.
func IsZip(start []byte) bool {
	return strings.HasPrefix(string(start), "PK\x03\x04") || strings.HasPrefix(string(start), "PK\x05\x06")
}

// OpenZip opens a ZIP file as a folder. It refuses with [ErrArchive] what is no
// archive, paths that could lead out of it, links and other special files, names
// that occur twice, too many files and too many bytes. A file that unpacks to
// more than it states fails when it is read, as one with a wrong checksum does.
//
// Whatever is in the archive beside its entries, and what its headers say
// differently in their two places, [Check] reports. When all entries lie in one
// directory that holds the manifest, as when that was packed and not what is in
// it, this directory is the folder.
func OpenZip(r io.ReaderAt, size int64) (*Folder, error) {
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("%w: it cannot be read as a ZIP file", ErrArchive)
	}
	if len(archive.File) > maxEntries {
		return nil, fmt.Errorf("%w: more than %d entries", ErrArchive, maxEntries)
	}
	folder := &Folder{packed: true, faults: layout(r, size, archive.File)}
	top := topOf(archive.File)
	directories := map[string]bool{}
	for _, f := range archive.File {
		name := strings.TrimPrefix(f.Name, top)
		switch directory, is := strings.CutSuffix(name, "/"); {
		case name == "": // the top itself
			folder.directory(f, f.Name)
		case is:
			if err := addDirectory(directories, directory, f.Mode()); err != nil {
				return nil, err
			}
			folder.directory(f, name)
		case !f.Mode().IsRegular():
			return nil, fmt.Errorf("%w: %s is no plain file", ErrArchive, shown(name))
		default:
			if err := folder.Add(name, int64(min(f.UncompressedSize64, MaxUnpacked+1)), func() (io.ReadCloser, error) { return unpack(f) }); err != nil {
				return nil, err
			}
		}
	}
	for _, f := range archive.File { // in their order, so that the same archive gives the same report
		name := strings.TrimPrefix(f.Name, top)
		if _, file := folder.files[name]; file && directories[name] {
			folder.faults = append(folder.faults, fault{name, "is a directory, too"})
		}
	}
	return folder, nil
}

// resourceForks is where the packer of a Mac puts files of its own, beside what
// was packed.
const resourceForks = "__MACOSX/"

// topOf gives the directory that all entries lie in together with the
// manifest, with its slash; "": there is none, or the manifest lies outside. A
// Mac's own files do not count, so that they are named as extra, each.
func topOf(files []*zip.File) string {
	top, found := "", false
	for _, f := range files {
		if strings.HasPrefix(f.Name, resourceForks) {
			continue
		}
		if top == "" {
			first, _, nested := strings.Cut(f.Name, "/")
			if !nested || dangerous(first) {
				return ""
			}
			top = first + "/"
		}
		if !strings.HasPrefix(f.Name, top) {
			return ""
		}
		found = found || f.Name == top+ManifestFile
	}
	if !found {
		return ""
	}
	return top
}

func addDirectory(all map[string]bool, name string, mode fs.FileMode) error {
	switch {
	case dangerous(name):
		return fmt.Errorf("%w: the path %s could lead out of the folder", ErrArchive, shown(name))
	case mode.Type() != fs.ModeDir:
		return fmt.Errorf("%w: %s is no plain file", ErrArchive, shown(name))
	case all[name]:
		return fmt.Errorf("%w: the name %s occurs twice", ErrArchive, shown(name))
	}
	all[name] = true
	return nil
}

// emptyDeflated is what some tools write for a directory: nothing, compressed.
const emptyDeflated = 2

func (d *Folder) directory(f *zip.File, name string) {
	if f.UncompressedSize64 > 0 || f.CompressedSize64 > emptyDeflated {
		d.faults = append(d.faults, fault{name, "is a directory with content"})
	}
}
