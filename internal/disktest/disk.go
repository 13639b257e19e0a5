// Package disktest gives tests disks that run full, fail, or forget what was not
// synced. Full and failing ones need the right to mount; without it, and on systems
// other than Linux, the tests skip.
package disktest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Fill takes all the space that is free in a directory's file system, and
// returns how to give it back.
func Fill(t testing.TB, dir string) (free func()) {
	t.Helper()
	name := filepath.Join(dir, "ballast")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for piece := 1 << 20; piece > 0; {
		_, err := f.Write(make([]byte, piece))
		switch {
		case errors.Is(err, syscall.ENOSPC):
			piece /= 2
		case err != nil:
			t.Fatal(err)
		}
	}
	return func() {
		t.Helper()
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}
