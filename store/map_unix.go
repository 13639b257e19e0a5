//go:build unix

package store

import (
	"os"
	"syscall"
)

// canMap tells whether the system maps n bytes of address space to the file.
func canMap(f *os.File, n int64) bool {
	b, err := syscall.Mmap(int(f.Fd()), 0, int(n), syscall.PROT_READ, syscall.MAP_SHARED)
	return err == nil && syscall.Munmap(b) == nil
}
