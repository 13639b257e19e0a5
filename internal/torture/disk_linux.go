package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const (
	diskBytes    = 512 << 20
	ballastPiece = 1 << 20
)

// smallDisk is a tmpfs that can be filled.
type smallDisk struct{ dir string }

func mountSmallDisk(dir string) (*smallDisk, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", diskBytes)); err != nil {
		return nil, fmt.Errorf("mount tmpfs: %w", err)
	}
	return &smallDisk{dir}, nil
}

func (d *smallDisk) unmount() error { return syscall.Unmount(d.dir, syscall.MNT_DETACH) }

func (d *smallDisk) ballast() string { return filepath.Join(d.dir, "ballast") }

// fill takes all that is free.
func (d *smallDisk) fill() error {
	f, err := os.Create(d.ballast())
	if err != nil {
		return err
	}
	defer f.Close()
	for piece := ballastPiece; piece > 0; {
		_, err := f.Write(make([]byte, piece))
		switch {
		case errors.Is(err, syscall.ENOSPC):
			piece /= 2
		case err != nil:
			return err
		}
	}
	return nil
}

func (d *smallDisk) free() error { return os.Remove(d.ballast()) }
