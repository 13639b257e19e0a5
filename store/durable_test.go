package store

import (
	"errors"
	"io/fs"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/chaind/chaind/events"
	"go.etcd.io/bbolt"
)

// TestReadersWaitForTheSync: a commit that is written and not synced yet shows
// to nobody: who reads then waits, and has it when it is durable.
func TestReadersWaitForTheSync(t *testing.T) {
	t.Parallel()
	s := openStore(t, testConfig(t))
	give(t, s, testStream, step("c", "a", 1))
	met, written, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
	s.durable.met = func() { close(met) }
	var durable atomic.Bool
	s.testingOnly.commit = func(tx *bbolt.Tx) error {
		err := tx.Commit()
		close(written)
		<-release
		durable.Store(true)
		return err
	}
	appended := make(chan error, 1)
	go func() {
		_, err := s.Append(t.Context(), &events.Batch{Stream: testStream, Events: []*events.Event{step("c", "b", 2)}})
		appended <- err
	}()
	<-written
	type answer struct {
		n       int
		durable bool
		err     error
	}
	read := make(chan answer, 1)
	go func() {
		page, err := s.Epochs()
		read <- answer{len(page), durable.Load(), err}
	}()
	select {
	case <-met:
		close(release)
	case a := <-read:
		close(release)
		t.Errorf("read before the sync: %+v", a)
		read <- a
	}
	if err := <-appended; err != nil {
		t.Fatal(err)
	}
	if a := <-read; a.err != nil || !a.durable || a.n != 1 {
		t.Errorf("%+v", a)
	}
	if got := state(t, s, "c"); got.Segments != 2 {
		t.Errorf("%d segments in the end", got.Segments)
	}
}

// TestNobodyReadsWhatMayNotBeOnDisk: after a sync that failed, reading what was
// to be synced is an error; what was durable before can be read.
func TestNobodyReadsWhatMayNotBeOnDisk(t *testing.T) {
	t.Parallel()
	for name, written := range map[string]bool{"the meta page is written": true, "it is not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openStore(t, testConfig(t))
			give(t, s, testStream, step("c", "a", 1))
			s.testingOnly.commit = func(tx *bbolt.Tx) error {
				if written {
					if err := tx.Commit(); err != nil {
						return err
					}
				}
				return &fs.PathError{Op: "sync", Path: DatabaseFile, Err: syscall.EIO}
			}
			if _, err := s.Append(t.Context(), &events.Batch{Stream: testStream, Events: []*events.Event{step("c", "b", 2)}}); !errors.Is(err, ErrBroken) {
				t.Fatalf("append: %v", err)
			}
			c, err := s.Chain(testKey("c"))
			switch {
			case written && !errors.Is(err, ErrBroken):
				t.Errorf("read what may not be there: %+v, %v", c, err)
			case !written && (err != nil || c.State.Segments != 1):
				t.Errorf("what was durable before cannot be read: %v", err)
			}
		})
	}
}
