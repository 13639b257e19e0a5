//go:build linux && (amd64 || arm64)

package durable

import (
	"errors"
	"os"
	"path"
	"runtime"
	"syscall"
	"unsafe"
)

// sysRenameAt2 is the number of renameat2(2), which package syscall lacks.
var sysRenameAt2 = map[string]uintptr{"amd64": 316, "arm64": 276}[runtime.GOARCH]

const noReplace = 1 // RENAME_NOREPLACE

// move renames a file of one open directory to the last part of name in another,
// replacing what is there.
func move(_ *os.Root, from *folder, base string, to *folder, name string) error {
	return renameAt(from, base, to, name, 0)
}

// moveNew is move for a name that must not exist; fs.ErrExist is in the error
// when it does. Where the file system cannot do that in one step, it is done by a
// link.
func moveNew(root *os.Root, from *folder, base string, to *folder, name string) error {
	err := renameAt(from, base, to, name, noReplace)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOSYS) {
		return linkNew(root, from, base, name)
	}
	return err
}

func renameAt(from *folder, base string, to *folder, name string, flags uintptr) error {
	for _, f := range []*folder{from, to} {
		if _, err := f.file(); err != nil {
			return err
		}
	}
	old, err := syscall.BytePtrFromString(base)
	if err != nil {
		return err
	}
	last, err := syscall.BytePtrFromString(path.Base(name))
	if err != nil {
		return err
	}
	for {
		_, _, errno := syscall.Syscall6(sysRenameAt2, from.fd, uintptr(unsafe.Pointer(old)), to.fd, uintptr(unsafe.Pointer(last)), flags, 0)
		switch errno {
		case 0:
			return nil
		case syscall.EINTR:
		default:
			return &os.LinkError{Op: "renameat2", Old: path.Join(from.name, base), New: name, Err: errno}
		}
	}
}

// startWriting has the kernel begin to write what a file holds, so that a sync
// that follows waits less. Whether it does is only a matter of time.
func startWriting(f *os.File) {
	const write = 2 // SYNC_FILE_RANGE_WRITE
	_ = syscall.SyncFileRange(int(f.Fd()), 0, 0, write)
}
