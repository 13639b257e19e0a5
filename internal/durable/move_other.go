//go:build !linux || !(amd64 || arm64)

package durable

import (
	"os"
	"path"
)

// move renames a file of one open directory to name, replacing what is there; to
// is the directory of name.
func move(root *os.Root, from *folder, base string, to *folder, name string) error {
	return root.Rename(path.Join(from.name, base), name)
}

// moveNew is move for a name that must not exist; fs.ErrExist is in the error
// when it does.
func moveNew(root *os.Root, from *folder, base string, to *folder, name string) error {
	return linkNew(root, from, base, name)
}

func startWriting(*os.File) {}
