package main

import (
	"os"
	"runtime/debug"
)

// Judging a bundle keeps a little over four times its size alive. Left to
// itself, the collector lets as much again pile up as garbage.
const (
	memoryBase    = 12 << 20
	memoryPerByte = 5
)

// boundMemory has the collector work harder, rather than the process grow, while
// a file is judged: below 32 MiB and six times its size with the program itself.
// It changes nothing for what is no regular file, nor a lower limit that
// GOMEMLIMIT set. The function that it returns puts the old limit back.
func boundMemory(f *os.File) (restore func()) {
	old := debug.SetMemoryLimit(-1)
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		debug.SetMemoryLimit(min(old, memoryBase+memoryPerByte*info.Size()))
	}
	return func() { debug.SetMemoryLimit(old) }
}
