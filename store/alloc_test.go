//go:build !race

package store

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/chaind/chaind/events"
)

// Pieces of memory that one step takes on its way from the message to the commit,
// at most. Ours are two to apply it, and less than a half for what is made some at
// a time, what grows with the chain, and what a transaction takes.
// Those of bbolt are the paths to the pages of values, copies of keys, and pages.
const (
	maxOurs = 2.5
	maxAll  = 4
)

// allocEnv makes the test binary the process whose memory is counted. It is one of
// its own, since the profile must take down every allocation from the start.
const allocEnv = "CHAIND_STORE_ALLOCATIONS"

// TestIngestAllocations decodes and appends batches to open chains, as a daemon
// does once it runs, with all that happens now and then.
func TestIngestAllocations(t *testing.T) {
	if os.Getenv(allocEnv) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestIngestAllocations$", "-test.v")
		cmd.Env = append(os.Environ(), allocEnv+"=1", "GODEBUG=memprofilerate=1")
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if err != nil || !strings.Contains(string(out), "1024 events") {
			t.Errorf("in a process of its own: %v", err)
		}
		return
	}
	for _, batch := range []int{256, 1024} {
		ours, all := ingestAllocations(t, batch)
		t.Logf("%.2f allocations an event are ours, of %.2f, in batches of %d events", ours, all, batch)
		if ours > maxOurs || all > maxAll {
			t.Errorf("want %v at most of %v", maxOurs, maxAll)
		}
	}
}

func ingestAllocations(t *testing.T, batch int) (ours, all float64) {
	const chains, total, warm = 64, 10 << 10, 2 << 10
	s, err := Open(Config{Dir: filepath.Join(t.TempDir(), "store")}) // not checked: that would take longer, all counted
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d := events.NewDecoder(events.DefaultLimits)
	messages := make([]events.Message, total)
	for i := range messages {
		messages[i] = ordinaryStep(i, chains)
	}
	given := &events.Batch{Stream: testStream, Events: make([]*events.Event, 0, batch)}
	ingest := func(messages []events.Message) {
		for ; len(messages) > 0; messages = messages[batch:] {
			given.Events = given.Events[:0]
			for _, m := range messages[:batch] {
				given.Events = append(given.Events, d.Decode(m))
			}
			if _, err := s.Append(context.Background(), given); err != nil {
				t.Fatal(err)
			}
		}
	}
	ingest(messages[:warm])
	before := countAllocations(t)
	ingest(messages[warm:])
	after := countAllocations(t)
	return float64(after[0]-before[0]) / (total - warm), float64(after[0]+after[1]-before[0]-before[1]) / (total - warm)
}

// countAllocations counts those of ingestAllocations so far: first ours, then those
// of bbolt and the system below it. What the standard library allocates is counted
// for whoever called it.
func countAllocations(t *testing.T) (n [2]int64) {
	for range 2 {
		runtime.GC() // a profile is as of the last collection but one
	}
	records := make([]runtime.MemProfileRecord, 1<<16)
	found, ok := runtime.MemProfile(records, true)
	if !ok {
		t.Fatalf("%d places that allocate", found)
	}
	for _, r := range records[:found] {
		if owner := ownerOf(r.Stack()); owner >= 0 {
			n[owner] += r.AllocObjects
		}
	}
	return n
}

// ownerOf tells whose allocation it is: 0 ours, 1 others', -1 none of ingestAllocations.
func ownerOf(stack []uintptr) int {
	const ours = "github.com/chaind/chaind/"
	owner := -1
	for frames := runtime.CallersFrames(stack); ; {
		f, more := frames.Next()
		switch {
		case strings.HasPrefix(f.Function, ours+"store.ingestAllocations.func"):
			return max(owner, 0)
		case owner < 0 && strings.HasPrefix(f.Function, ours):
			owner = 0
		case owner < 0 && strings.HasPrefix(f.Function, "go.etcd.io/"):
			owner = 1
		}
		if !more {
			return -1
		}
	}
}
