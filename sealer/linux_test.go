package sealer

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chaind/chaind/sidecar"
)

// TestB05DiskFull is case B05 for evidence: while the disk is full the job waits,
// visibly; with room again it is done, and nothing half-written is left.
func TestB05DiskFull(t *testing.T) {
	root := t.TempDir()
	if err := syscall.Mount("tmpfs", root, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("mount a small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(root, 0); err != nil {
			t.Error(err)
		}
	})
	dir, err := sidecar.OpenDir(root)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	fill(t, root)
	f := newFake()
	key := f.finish("a", 1)
	clock := &fakeClock{now: fixedNow()}
	var s *Sealer
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	full := false
	s = New(Config{Store: f, Sidecars: openSidecars(t, dir), SkipAudit: true, Now: clock.Now,
		OnSealed: func(Sealed) { cancel() },
		After: func(d time.Duration) <-chan time.Time {
			if st := s.Status(); st.Failing == 1 && strings.Contains(st.LastError, syscall.ENOSPC.Error()) && len(clock.waits) == 3 {
				full = true
				if err := os.RemoveAll(filepath.Join(root, "fill")); err != nil {
					t.Error(err)
				}
			}
			return clock.After(d)
		}})
	if err := s.Run(ctx); err != nil || !full {
		t.Fatalf("was full %v, %v, %+v", full, err, s.Status())
	}
	if text := content(t, dir, f.finished[key].Path); uint64(len(text)) != f.finished[key].Bytes {
		t.Errorf("evidence has %d bytes", len(text))
	}
	left, err := fs.Glob(os.DirFS(root), ".chaind-tmp/*")
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// fill writes files until there is no room.
func fill(t *testing.T, root string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(root, "fill"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		if err := os.WriteFile(filepath.Join(root, "fill", fmt.Sprint(i)), bytes.Repeat([]byte("x"), 4096), 0o644); err != nil {
			return
		}
	}
	t.Fatal("the disk does not get full")
}
