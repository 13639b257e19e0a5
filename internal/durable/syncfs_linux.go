//go:build linux && (amd64 || arm64)

package durable

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"
)

// sysSyncFS is the number of syncfs(2), which package syscall lacks.
var sysSyncFS = map[string]uintptr{"amd64": 306, "arm64": 267}[runtime.GOARCH]

func syncFS(f *os.File) error {
	for {
		_, _, errno := syscall.Syscall(sysSyncFS, f.Fd(), 0, 0)
		switch errno {
		case 0:
			return nil
		case syscall.EINTR:
		default:
			return os.NewSyscallError("syncfs", errno)
		}
	}
}

// Magic numbers of file systems (statfs(2)) on which a syncfs waits for data and
// names alike and reports lost writes. An overlay is none of them: what is lost
// below it is not reported above.
var wholeSyncing = []int64{0xEF53, 0x58465342, 0x9123683E} // ext4, xfs, btrfs

// syncsWhole tells whether a syncfs on f does for all files what an fsync of
// each would.
func syncsWhole(f *os.File) bool {
	var fs syscall.Statfs_t
	if err := syscall.Fstatfs(int(f.Fd()), &fs); err != nil || !slices.Contains(wholeSyncing, int64(fs.Type)) {
		return false
	}
	return kernelAtLeast(5, 8)
}

func kernelAtLeast(major, minor int) bool {
	var u syscall.Utsname
	if syscall.Uname(&u) != nil {
		return false
	}
	release := make([]byte, 0, len(u.Release))
	for _, c := range u.Release {
		if c == 0 {
			break
		}
		release = append(release, byte(c))
	}
	var a, b int
	if _, err := fmt.Sscanf(string(release), "%d.%d", &a, &b); err != nil {
		return false
	}
	return a > major || a == major && b >= minor
}
