//go:build unix

package store

import (
	"errors"
	"os"
	"syscall"
	"time"
)

const lockRetry = 20 * time.Millisecond

// lockFile takes bbolt's own lock, on the descriptor that bbolt will use, so
// that bbolt finds it held by itself. Closing the file releases it.
func lockFile(f *os.File, exclusive bool, timeout time.Duration) error {
	how := syscall.LOCK_SH
	if exclusive {
		how = syscall.LOCK_EX
	}
	for deadline := time.Now().Add(timeout); ; time.Sleep(lockRetry) {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		if time.Now().After(deadline) {
			return ErrLocked
		}
	}
}
