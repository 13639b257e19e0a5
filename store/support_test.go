package store

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

func pathError(op string, err error) error {
	return &fs.PathError{Op: op, Path: DatabaseFile, Err: err}
}

// waitFor waits until the condition holds, which it must within ten seconds.
func waitFor(t testing.TB, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !cond(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the condition was not met in time")
		}
	}
}

func nowSeconds() float64 { return float64(time.Now().UnixNano()) / 1e9 }

// writtenBytes is what this process has handed to write calls so far, on Linux.
func writtenBytes() (n int64) {
	b, _ := os.ReadFile("/proc/self/io")
	for line := range strings.Lines(string(b)) {
		fmt.Sscanf(line, "wchar: %d", &n)
	}
	return n
}
