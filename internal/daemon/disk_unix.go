//go:build linux || darwin || freebsd

package daemon

import "syscall"

// statDisk asks the file system that holds the directory what is free for a
// process without special rights.
func statDisk(dir string) (disk, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return disk{}, err
	}
	size := uint64(s.Bsize)
	return disk{free: uint64(s.Bavail) * size, total: s.Blocks * size}, nil
}
