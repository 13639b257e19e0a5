//go:build !unix

package sidecar

import (
	"errors"
	"fmt"
	"os"
)

// takeLock refuses: without a lock two daemons could write one directory.
func takeLock(_ *os.Root, dir string) (*os.File, error) {
	return nil, fmt.Errorf("lock sidecar directory %q: %w", dir, errors.ErrUnsupported)
}
