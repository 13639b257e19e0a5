//go:build !unix

package main

import (
	"context"
	"errors"
	"os"
	"time"
)

// cpuTime is not known here, and shows as 0.
func cpuTime() time.Duration { return 0 }

// peakMiB is not known here.
func peakMiB(*os.ProcessState) float64 { return 0 }

func openElsewhere(context.Context, string) (sample, error) {
	return sample{}, errors.New("the row start needs Unix")
}
