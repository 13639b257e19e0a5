//go:build !linux

package main

import "errors"

type smallDisk struct{}

func mountSmallDisk(string) (*smallDisk, error) { return nil, errors.ErrUnsupported }
func (*smallDisk) unmount() error               { return nil }
func (*smallDisk) fill() error                  { return errors.ErrUnsupported }
func (*smallDisk) free() error                  { return errors.ErrUnsupported }
