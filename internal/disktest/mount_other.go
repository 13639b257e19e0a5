//go:build !linux

package disktest

import "testing"

// Small skips the test: there is no way here.
func Small(t testing.TB, _ string) (dir string) {
	t.Helper()
	t.Skip("mounting a small file system is done on Linux only")
	return ""
}

// Failing is on Linux only.
type Failing struct{ Dir string }

// NewFailing skips the test.
func NewFailing(t testing.TB) *Failing {
	t.Helper()
	t.Skip("a file system that fails is made on Linux only")
	return nil
}

// Fail is never called.
func (*Failing) Fail(testing.TB) {}

// Repair is never called.
func (*Failing) Repair(testing.TB) {}
