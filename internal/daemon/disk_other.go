//go:build !linux && !darwin && !freebsd

package daemon

import "errors"

func statDisk(string) (disk, error) { return disk{}, errors.ErrUnsupported }
