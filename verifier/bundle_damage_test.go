package verifier

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"iter"
	"runtime"
	"slices"
	"testing"
	"testing/iotest"
	"time"

	"github.com/chaind/chaind/engine/run"
	"github.com/chaind/chaind/segments"
)

// Every prefix of a bundle is refused, and none is half judged.
func TestEveryPrefixOfABundle(t *testing.T) {
	t.Parallel()
	for path, stride := range map[string]int{e1Path: 1, tesseraDir + "honest.tsb": 20011, runDir + "failed.tsb": 101} {
		text := readFile(t, path)
		for n := 0; n < len(text)-1; n += stride {
			if r := verifyBundle(text[:n], Options{Domains: withDemo()}); r.ExitCode != ExitEnvelope || r.Verdict != Broken || r.Content != nil {
				t.Fatalf("%s: the first %d bytes give %s, exit %d", path, n, r.Verdict, r.ExitCode)
			}
		}
	}
}

// A flipped bit either breaks the file or changes nothing but the spelling of
// its text.
func TestEveryFlippedBitOfABundle(t *testing.T) {
	t.Parallel()
	for path, stride := range map[string]int{e1Path: 5, tesseraDir + "honest.tsb": 60013, runDir + "succeeded.tsb": 1009} {
		text := readFile(t, path)
		if testing.Short() {
			stride *= 7
		}
		honest := verifyBundle(text, Options{Domains: withDemo()}).ExitCode
		if honest != ExitPass {
			t.Fatalf("%s: exit %d", path, honest)
		}
		for bit := 0; bit < 8*len(text); bit += stride {
			flipped := bytes.Clone(text)
			flipped[bit/8] ^= 1 << (bit % 8)
			r := verifyBundle(flipped, Options{Domains: withDemo()})
			consistent(t, path, r)
			if r.ExitCode != ExitEnvelope && !sameContent(text, flipped) {
				t.Fatalf("%s: bit %d of byte %d (%q) gives %s, exit %d", path, bit%8, bit/8, flipped[max(0, bit/8-20):bit/8+1], r.Verdict, r.ExitCode)
			}
		}
	}
}

func TestBundleThatCannotBeRead(t *testing.T) {
	t.Parallel()
	broken := io.MultiReader(bytes.NewReader(readFile(t, e1Path)[:100]), iotest.ErrReader(io.ErrClosedPipe))
	if r := TrustBundle(context.Background(), broken, Options{}); r.ExitCode != ExitEnvelope || r.Errors[0].Code != CodeUnreadable {
		t.Errorf("unreadable: exit %d, %v", r.ExitCode, Codes(r.Errors))
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("enough"))
	if r := TrustBundle(ctx, bytes.NewReader(readFile(t, e1Path)), Options{}); r.ExitCode != ExitNotRun || r.Verdict != NotRun || r.Errors[0].Code != CodeInterrupted {
		t.Errorf("interrupted: exit %d, %v", r.ExitCode, Codes(r.Errors))
	}
}

// longRun is the bundle of a run of n segments, made from evidence alone.
func longRun(tb testing.TB, n uint64) []byte { return runOf(tb, n, nil) }

// runOf is longRun, its chain node saying another head unless that is nil.
func runOf(tb testing.TB, n uint64, head *segments.Digest) []byte {
	tb.Helper()
	whole, _, err := segments.ReadBundle(&endless{n: n})
	if err != nil {
		tb.Fatal(err)
	}
	if head != nil {
		whole.Head = head
	}
	var list iter.Seq2[run.Segment, error] = func(yield func(run.Segment, error) bool) {
		for i := range whole.Segments {
			if !yield(run.Segment{Segment: whole.Segments[i]}, nil) {
				return
			}
		}
	}
	var out bytes.Buffer
	chain := &run.Chain{Facts: run.Facts{Scope: whole.Scope, Outcome: run.Unrecorded, Conformity: run.Conforming, Count: n, Head: whole.Head}, Segments: list}
	if _, _, err := run.Write(&out, chain, run.QuestionRun, run.DefaultKeep, nil); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// TestBundleMemory: no more than 32 MiB and six times the file are in use.
func TestBundleMemory(t *testing.T) {
	n := uint64(20_000)
	if testing.Short() {
		n = 2_000
	}
	text := longRun(t, n)
	runtime.GC()
	var before, stats runtime.MemStats
	runtime.ReadMemStats(&before)
	peak := uint64(0)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				runtime.ReadMemStats(&stats)
				peak = max(peak, stats.HeapInuse)
			}
		}
	}()
	var read []int64
	r := verifyBundle(text, Options{Progress: func(p Progress) { read = append(read, p.Bytes) }})
	close(stop)
	<-done
	if r.ExitCode != ExitDegraded || r.Content.Run.Segments != n {
		t.Fatalf("%s: %s", r.Verdict, r.Summary)
	}
	if len(read) < len(text)>>20-1 || !slices.IsSorted(read) {
		t.Errorf("%d calls of Progress for %d bytes: %v", len(read), len(text), read)
	}
	used, limit := max(peak, before.HeapInuse)-before.HeapInuse, uint64(32<<20+6*len(text))
	t.Logf("%d segments, %.1f MB, %.1f MB more in use, limit %.1f", n, float64(len(text))/1e6, float64(used)/1e6, float64(limit)/1e6)
	if used > limit {
		t.Errorf("%d bytes in use beyond what was before, limit %d", used, limit)
	}
}

// BenchmarkTrustBundle verifies bundles of runs and reports the speed as a share
// of SHA-256 over the same bytes, measured in the same run.
func BenchmarkTrustBundle(b *testing.B) {
	for name, text := range map[string][]byte{"1000": longRun(b, 1000), "10000": longRun(b, 10_000), "brief": readFile(b, tesseraDir+"brief.tsb")} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			hashing := time.Duration(0)
			for b.Loop() {
				if r := verifyBundle(text, Options{}); r.ExitCode != ExitPass && r.ExitCode != ExitDegraded {
					b.Fatal(r.Summary)
				}
				b.StopTimer()
				start := time.Now()
				sha256.Sum256(text)
				hashing += time.Since(start)
				b.StartTimer()
			}
			b.ReportMetric(float64(hashing)/float64(b.Elapsed()), "of-sha256")
		})
	}
}
