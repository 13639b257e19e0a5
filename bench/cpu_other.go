//go:build !unix

package main

import "time"

// cpuTime is not known here, and shows as 0.
func cpuTime() time.Duration { return 0 }
