package run_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/run"
)

// TestLargeRun: a run of 30,000 segments is verified in time and memory that
// grow with its bytes. What is counted is all that was ever allocated beside
// the text.
func TestLargeRun(t *testing.T) {
	if testing.Short() {
		t.Skip("seals and verifies tens of megabytes")
	}
	const n = 30_000
	text := write(t, longRun(n), run.QuestionRun, run.DefaultKeep)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	b, err := bundle.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	j, err := engine.Judge(b, known())
	if err != nil || j.Verdict() != engine.Pass {
		t.Fatalf("%v, %s", err, j.Cause())
	}
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	total := after.TotalAlloc - before.TotalAlloc
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("%d bytes, %v, %.2f times allocated, %.2f live", len(text), took, float64(total)/float64(len(text)), float64(after.HeapAlloc-before.HeapAlloc)/float64(len(text)))
	if took > 30*time.Second {
		t.Errorf("%d bytes took %v", len(text), took)
	}
	if limit := uint64(32<<20 + 6*len(text)); total > limit {
		t.Errorf("%d bytes took %d bytes of memory, limit %d", len(text), total, limit)
	}
	runtime.KeepAlive(j)
}
