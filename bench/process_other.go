//go:build !unix

package main

import (
	"context"
	"errors"
	"time"
)

var errUnix = errors.New("this needs Unix")

// cpuTime is not known here, and shows as 0.
func cpuTime() time.Duration { return 0 }

func runPeak([]string) error { return errUnix }

func peakOf(context.Context, ...string) (code int, mib float64, err error) { return 0, 0, errUnix }

func openElsewhere(context.Context, string) (sample, error) { return sample{}, errUnix }
