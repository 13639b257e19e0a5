package durable

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
)

// gate is a shared sync that waits to be let through, with an outcome.
type gate struct {
	begun chan struct{}
	let   chan error
}

// crowdedDir is a Dir whose writers share a sync of the test's, as many of them
// as it wants to be a crowd being under way already.
func crowdedDir(t *testing.T, sync func(*os.File) error) *Dir {
	t.Helper()
	d, err := Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	if d.shared.whole == nil { // the test's own sync works anywhere
		if d.shared.whole, err = d.root.Open("."); err != nil {
			t.Fatal(err)
		}
	}
	d.shared.sync = sync
	d.shared.underWay = crowd
	return d
}

func TestCrowdSharesSyncs(t *testing.T) {
	t.Parallel()
	g := gate{make(chan struct{}, 1000), make(chan error)}
	d := crowdedDir(t, func(*os.File) error { g.begun <- struct{}{}; return <-g.let })
	const writers = 40
	ended := make(chan error, writers)
	for i := range writers {
		go func() { ended <- d.Write(fmt.Sprint("f", i), Bytes([]byte("x"))) }()
	}
	syncs := 0
	for left := writers; left > 0; {
		select {
		case <-g.begun:
			syncs++
			settle(t, d, left)
			g.let <- nil
		case err := <-ended:
			left--
			if err != nil {
				t.Error(err)
			}
		}
	}
	// Each of them needs two. The first comes alone; the others stage together
	// and rename together, but for those that are late.
	if syncs > writers/2 {
		t.Errorf("%d writers took %d syncs", writers, syncs)
	}
}

// settle gives those who are not in the running sync the time to wait for the next.
func settle(t *testing.T, d *Dir, left int) {
	t.Helper()
	for range 20_000 {
		d.shared.mu.Lock()
		n := len(d.shared.waiting)
		d.shared.mu.Unlock()
		if n > 0 && n >= left-1 || left == 1 {
			return
		}
		runtime.Gosched()
	}
}

// TestLostWriteFailsAllUnderWay: a report does not say whose write was lost, so
// it fails who shared the sync and who had only begun; who begins afterwards is
// safe.
func TestLostWriteFailsAllUnderWay(t *testing.T) {
	t.Parallel()
	lost := errors.New("input/output error")
	outcomes := []error{lost, nil, nil, nil, nil, nil}
	var mu sync.Mutex
	d := crowdedDir(t, func(*os.File) error {
		mu.Lock()
		defer mu.Unlock()
		err := outcomes[0]
		outcomes = outcomes[1:]
		return err
	})
	early := d.shared.begin(1) // has written, and has not come to its sync
	if err := d.Write("a", Bytes([]byte("x"))); !errors.Is(err, lost) {
		t.Errorf("a write whose sync failed: %v", err)
	}
	if _, err := d.root.Stat("a"); err == nil {
		t.Error("a write whose sync failed took its name")
	}
	if err := d.shared.end(early, 1); !errors.Is(err, errOthers) {
		t.Errorf("a write that was under way at the report: %v", err)
	}
	if err := d.Write("a", Bytes([]byte("x"))); err != nil {
		t.Errorf("a write after the report: %v", err)
	}
}

// TestReportBetweenSyncs: a write whose own two syncs went well fails when a
// report came between them, for somebody else's sync.
func TestReportBetweenSyncs(t *testing.T) {
	t.Parallel()
	var d *Dir
	calls := 0
	d = crowdedDir(t, func(*os.File) error {
		if calls++; calls == 1 {
			d.shared.mu.Lock()
			d.shared.reports++
			d.shared.mu.Unlock()
		}
		return nil
	})
	if err := d.Write("a", Bytes([]byte("x"))); !errors.Is(err, errOthers) {
		t.Errorf("the write says %v", err)
	}
	if err := d.Write("a", Bytes([]byte("y"))); err != nil {
		t.Error(err)
	}
}

// TestReportBetweenSyncsOfGroup: a report for somebody else's sync, after the n-th
// of a group, keeps what comes after it from its name.
func TestReportBetweenSyncsOfGroup(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{1: 0, 2: 2, 3: 5} {
		var d *Dir
		calls := 0
		d = crowdedDir(t, func(*os.File) error {
			if calls++; calls == n {
				d.shared.mu.Lock()
				d.shared.reports++
				d.shared.mu.Unlock()
			}
			return nil
		})
		files := groupFiles(0)
		if err := d.WriteGroup(files[:2], files[2:], nil); !errors.Is(err, errOthers) {
			t.Errorf("report after sync %d: the group says %v", n, err)
		}
		named := 0
		for _, f := range files {
			if content(t, d.root.Name(), f.Name) != "absent" {
				named++
			}
		}
		if named != want {
			t.Errorf("report after sync %d: %d files have their names, not %d", n, named, want)
		}
		checkNoTemp(t, d.root.Name())
	}
}

func TestFewWritersSyncTheirOwn(t *testing.T) {
	t.Parallel()
	d := crowdedDir(t, func(*os.File) error { t.Error("shared sync"); return nil })
	d.shared.underWay = crowd - 1
	if err := d.Write("a", Bytes([]byte("x"))); err != nil {
		t.Error(err)
	}
}

func TestSyncFSWhereItCounts(t *testing.T) {
	t.Parallel()
	d, err := Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.shared.whole == nil {
		t.Skip("not on this file system")
	}
	d.shared.underWay = crowd
	if err := d.Write("a/b", Bytes([]byte("x"))); err != nil {
		t.Error(err)
	}
}
