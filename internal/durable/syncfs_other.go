//go:build !linux || (!amd64 && !arm64)

package durable

import (
	"errors"
	"os"
)

func syncFS(*os.File) error { return errors.ErrUnsupported }

// syncsWhole: not known here, so each write syncs what is its own.
func syncsWhole(*os.File) bool { return false }
