//go:build !race

package store

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/chaind/chaind/events"
)

// maxAllocations bounds the pieces of memory that one step takes from the
// message to the commit. Ours are six: two to decode and one for a string with
// escapes, three to apply. The rest is bbolt's: the paths to the pages of the
// transaction's values, copies of their keys, and the pages.
const maxAllocations = 8

// TestIngestAllocations decodes and appends batches to open chains, as a daemon
// does once it runs, with all that happens now and then.
func TestIngestAllocations(t *testing.T) {
	const chains, batch, batches = 64, 1024, 24
	s := openStore(t, Config{Dir: filepath.Join(t.TempDir(), "store")})
	d := events.NewDecoder(events.DefaultLimits)
	messages := make([]events.Message, batch*batches)
	for i := range messages {
		e := step(fmt.Sprint("c", i%chains), fmt.Sprint("e", i), uint64(i+1))
		messages[i] = e.Message
	}
	round := func(n int) {
		b := &events.Batch{Stream: testStream}
		for _, m := range messages[n*batch : (n+1)*batch] {
			b.Events = append(b.Events, d.Decode(m))
		}
		if _, err := s.Append(context.Background(), b); err != nil {
			t.Fatal(err)
		}
	}
	const warm = 4
	for n := range warm {
		round(n)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for n := warm; n < batches; n++ {
		round(n)
	}
	runtime.ReadMemStats(&after)
	per := float64(after.Mallocs-before.Mallocs) / float64(batch*(batches-warm))
	t.Logf("%.2f allocations an event", per)
	if per > maxAllocations {
		t.Errorf("%.2f allocations an event, want %d at most", per, maxAllocations)
	}
}
