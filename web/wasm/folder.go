//go:build js && wasm

package main

import (
	"io/fs"
	"slices"
	"strings"
	"syscall/js"
	"time"
)

// folder is what somebody chose as a folder: its files by path, with all names
// that a file system may have. It has one directory, which lists them all.
type folder struct {
	files  map[string]js.Value
	unread *fault
}

// Open implements fs.FS for the files.
func (f folder) Open(name string) (fs.File, error) {
	value, there := f.files[name]
	if !there {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	c := newContent(value, f.unread)
	return &opened{c, entry{name, c.size}}, nil
}

// Stat implements fs.StatFS.
func (f folder) Stat(name string) (fs.FileInfo, error) {
	if name == "." {
		return entry{".", 0}, nil
	}
	value, there := f.files[name]
	if !there {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return entry{name, sizeOf(value)}, nil
}

// ReadDir implements fs.ReadDirFS. Names of entries are whole paths, which a walk
// joins to that of the one directory.
func (f folder) ReadDir(string) ([]fs.DirEntry, error) {
	list := make([]fs.DirEntry, 0, len(f.files))
	for name, value := range f.files {
		list = append(list, fs.FileInfoToDirEntry(entry{name, sizeOf(value)}))
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

// opened is an open file.
type opened struct {
	*content
	entry
}

func (o *opened) Stat() (fs.FileInfo, error) { return o.entry, nil }
func (o *opened) Close() error               { return nil }

// entry describes a file, or the directory.
type entry struct {
	path string
	size int64
}

func (e entry) Name() string       { return e.path }
func (e entry) Size() int64        { return e.size }
func (e entry) ModTime() time.Time { return time.Time{} }
func (e entry) IsDir() bool        { return e.path == "." }
func (e entry) Sys() any           { return nil }

func (e entry) Mode() fs.FileMode {
	if e.IsDir() {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

var (
	_ fs.StatFS    = folder{}
	_ fs.ReadDirFS = folder{}
)
