package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chaind/chaind/events"
)

type stuckWriter struct{ free, begun chan struct{} }

func (w *stuckWriter) Write(p []byte) (int, error) {
	select {
	case <-w.begun:
	default:
		close(w.begun)
	}
	<-w.free
	return len(p), nil
}

// A backup whose writer takes no bytes holds its transaction for as long: that stops
// neither intake nor readers, though the file grows to many times what it was.
func TestSlowBackupStopsNobody(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	s := openStore(t, cfg)
	give(t, s, testStream, step("c", "a", 1))
	before := inode(t, s).Size()
	w := &stuckWriter{make(chan struct{}), make(chan struct{})}
	backup := make(chan error, 1)
	go func() { _, err := s.Backup(t.Context(), w); backup <- err }()
	<-w.begun
	done := make(chan error, 1)
	go func() {
		seq := uint64(1)
		for range 20 {
			var b events.Batch
			for b.Stream = testStream; len(b.Events) < 200; {
				seq++
				b.Events = append(b.Events, step("c", fmt.Sprint("s", seq), seq))
			}
			if _, err := s.Append(t.Context(), &b); err != nil {
				done <- err
				return
			}
			if _, err := s.Chain(testKey("c")); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
		close(w.free)
	case <-time.After(30 * time.Second):
		t.Error("intake and readers wait for the backup")
		close(w.free)
		<-done
	}
	if err := <-backup; err != nil {
		t.Error(err)
	}
	if after := inode(t, s).Size(); after < 8*before || after > 8<<20 {
		t.Errorf("the file had %d bytes, and has %d", before, after)
	}
}

// What is mapped is more than the file by far, and gentle where that cannot be had.
func TestMapSize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ size, gives, want int64 }{
		{1 << 15, 1 << 62, 64 << 30},
		{1 << 40, 1 << 62, 4 << 40},
		{1 << 40, 3 << 40, 2 << 40},
		{1 << 15, 20 << 30, 64 << 20},
		{1 << 15, 1 << 20, 0},
		{1 << 30, 1 << 31, 1 << 31},
		{1 << 30, 1<<31 - 1, 0},
		{1 << 15, 0, 0},
	} {
		if got := mappable(c.size, func(n int64) bool { return n <= c.gives }); got != c.want {
			t.Errorf("%d bytes where %d can be had: %d", c.size, c.gives, got)
		}
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if canMap(f, 1<<60) {
		t.Error("more is mapped than there are addresses")
	}
}
