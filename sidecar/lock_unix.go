//go:build unix

package sidecar

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// takeLock locks the lock file for as long as it stays open. The kernel frees
// it when the process ends, however it ends; the process id inside is for the
// error message only.
func takeLock(root *os.Root, dir string) (*os.File, error) {
	f, err := root.OpenFile(lockName, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock sidecar directory: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		holder, _ := io.ReadAll(io.LimitReader(f, 20))
		return nil, errors.Join(&LockedError{Dir: dir, Holder: holderID(holder)}, f.Close())
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock sidecar directory: %w", err), f.Close())
	}
	return f, nil
}

func holderID(text []byte) string {
	id := strings.TrimSpace(string(text))
	if _, err := strconv.ParseUint(id, 10, 32); err != nil {
		return ""
	}
	return id
}
