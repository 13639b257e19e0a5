package store

import (
	"io/fs"
	"runtime"
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
