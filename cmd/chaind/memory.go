package main

import (
	"io"
	"os"
	"runtime/debug"

	"github.com/chaind/chaind/verifier"
)

// Judging a trust bundle keeps a little over four times its size alive, judging
// evidence a few MiB whatever its size. Left to itself, the collector lets as much
// again pile up as garbage, and more while all cores make some.
const (
	memoryBase     = 12 << 20
	memoryPerByte  = 5
	memoryEvidence = 14 << 20
)

// boundMemory has the collector work harder, rather than the process grow, while
// a file is judged: with the program itself below 32 MiB, and six times its size
// more for a trust bundle.
// It changes nothing for what is no regular file, nor a lower limit that
// GOMEMLIMIT set. The function that it returns puts the old limit back.
func boundMemory(f *os.File) (restore func()) {
	old := debug.SetMemoryLimit(-1)
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		debug.SetMemoryLimit(min(old, memoryFor(f, info.Size())))
	}
	return func() { debug.SetMemoryLimit(old) }
}

func memoryFor(f *os.File, size int64) int64 {
	kind, _, err := verifier.Detect(io.NewSectionReader(f, 0, size))
	if err == nil && kind != verifier.KindTrustBundle {
		return memoryEvidence
	}
	return memoryBase + memoryPerByte*size
}
