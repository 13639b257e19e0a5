package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// groupLog is the limit that appends are measured against: a plain log file
// where whoever comes while an fsync runs shares the next one.
type groupLog struct {
	f     *os.File
	mu    sync.Mutex
	buf   []byte
	waits []chan error
	token chan struct{}
}

func newGroupLog(tb testing.TB) *groupLog {
	f, err := os.Create(filepath.Join(tb.TempDir(), "log"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { f.Close() })
	return &groupLog{f: f, token: make(chan struct{}, 1)}
}

func (l *groupLog) append(records [][]byte) error {
	done := make(chan error, 1)
	l.mu.Lock()
	for _, r := range records {
		l.buf = append(l.buf, r...)
	}
	l.waits = append(l.waits, done)
	l.mu.Unlock()
	select {
	case err := <-done:
		return err
	case l.token <- struct{}{}:
	}
	l.mu.Lock()
	buf, waits := l.buf, l.waits
	l.buf, l.waits = nil, nil
	l.mu.Unlock()
	if len(waits) > 0 {
		_, err := l.f.Write(buf)
		if err == nil {
			err = l.f.Sync()
		}
		for _, w := range waits {
			w <- err
		}
	}
	<-l.token
	return <-done
}

// intake is what the daemon does with a stream: it takes whatever has come,
// gives it to the store as one batch, and then answers.
type intake struct {
	s    *Store
	in   chan delivery
	done chan error
}

type delivery struct {
	e    *events.Event
	done chan error
}

func (k *intake) run() {
	const most = 1024
	seq := uint64(0)
	for d := range k.in {
		batch := events.Batch{Stream: testStream}
		var answers []chan error
		for more := true; more; {
			seq++
			d.e.StreamSeq = seq
			batch.Events, answers = append(batch.Events, d.e), append(answers, d.done)
			if more = len(answers) < most; more {
				select {
				case d, more = <-k.in:
				default:
					more = false
				}
			}
		}
		_, err := k.s.Append(context.Background(), &batch)
		for _, done := range answers {
			done <- err
		}
	}
	close(k.done)
}

// BenchmarkAppend has 1, 64 and 1024 producers, each with a chain of its own and
// one event at a time on the way, decoded before. ratio is the rate over that of
// the group log with the same payloads in the same run.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 64, 1024} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			k := &intake{s: openStore(b, Config{Dir: filepath.Join(b.TempDir(), "store")}), in: make(chan delivery, n), done: make(chan error)}
			go k.run()
			per := max(b.N/n, 1)
			load := make([][]*events.Event, n)
			for i := range load {
				for j := range per {
					load[i] = append(load[i], step(fmt.Sprint("c", i), fmt.Sprintf("%d-%d", i, j), 1))
				}
			}
			b.SetBytes(int64(len(load[0][0].Payload)))
			b.ReportAllocs()
			b.ResetTimer()
			concurrently(b, n, func(i int) error {
				done := make(chan error, 1)
				for _, e := range load[i] {
					k.in <- delivery{e, done}
					if err := <-done; err != nil {
						return err
					}
				}
				return nil
			})
			b.StopTimer()
			close(k.in)
			<-k.done
			ours := float64(n*per) / b.Elapsed().Seconds()
			b.ReportMetric(ours, "events/s")
			log := newGroupLog(b)
			start := nowSeconds()
			concurrently(b, n, func(i int) error {
				for _, e := range load[i] {
					if err := log.append([][]byte{e.Payload}); err != nil {
						return err
					}
				}
				return nil
			})
			b.ReportMetric(ours*(nowSeconds()-start)/float64(n*per), "ratio")
		})
	}
}

func concurrently(b *testing.B, n int, fn func(i int) error) {
	var failed atomic.Value
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if err := fn(i); err != nil {
				failed.Store(err)
			}
		})
	}
	wg.Wait()
	if err, ok := failed.Load().(error); ok {
		b.Fatal(err)
	}
}

// BenchmarkAppendBatches is what the intake does: batches of one stream that
// touch many chains.
func BenchmarkAppendBatches(b *testing.B) {
	const size = 1024
	for _, chains := range []int{1, 64, 1024, 100000} {
		b.Run(fmt.Sprint(chains), func(b *testing.B) {
			s := openStore(b, Config{Dir: filepath.Join(b.TempDir(), "store")})
			log := newGroupLog(b)
			seq := uint64(0)
			var ours, limit float64
			var bytes, total int64
			written := writtenBytes()
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				batch := &events.Batch{Stream: testStream}
				var records [][]byte
				for range size {
					seq++
					e := step(fmt.Sprint("c", seq%uint64(chains)), fmt.Sprint(seq), seq)
					batch.Events = append(batch.Events, e)
					records = append(records, e.Payload)
					bytes += int64(len(e.Payload))
				}
				b.StartTimer()
				start := nowSeconds()
				if _, err := s.Append(context.Background(), batch); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				ours += nowSeconds() - start
				start = nowSeconds()
				if err := log.append(records); err != nil {
					b.Fatal(err)
				}
				limit += nowSeconds() - start
				total++
				b.StartTimer()
			}
			b.SetBytes(bytes / total)
			b.ReportMetric(float64(total*size)/ours, "events/s")
			b.ReportMetric(limit/ours, "ratio")
			st, err := s.Stats()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(st.FileBytes)/float64(bytes), "file/value")
			b.ReportMetric(float64(writtenBytes()-written-bytes)/float64(bytes), "written/value")
		})
	}
}

// BenchmarkOpen opens a store whose journal is a full tail ahead of the chains'
// states: the longest way to readiness.
func BenchmarkOpen(b *testing.B) {
	cfg := Config{Dir: filepath.Join(b.TempDir(), "store")}
	s, err := Open(cfg)
	if err != nil {
		b.Fatal(err)
	}
	s.flush = flushLimits{tail: 1 << 30, pending: 1 << 20} // nothing is flushed
	for seq := uint64(1); seq < defaultFlush.tail; seq += 4096 {
		batch := &events.Batch{Stream: testStream}
		for i := range uint64(4096) {
			batch.Events = append(batch.Events, step(fmt.Sprint("c", (seq+i)%1000), fmt.Sprint(seq+i), seq+i))
		}
		if _, err := s.Append(context.Background(), batch); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s, err := Open(cfg)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(s.n.arrivals-s.n.tail), "entries")
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWalk reads a chain of 100,000 segments in pages and hashes it again,
// against the SHA-256 of the same preimages.
func BenchmarkWalk(b *testing.B) {
	s := openStore(b, Config{Dir: filepath.Join(b.TempDir(), "store")})
	const total = 100_000
	for seq := uint64(1); seq <= total; seq += 4000 {
		if _, err := s.Append(context.Background(), batchOf("c", seq, 4000)); err != nil {
			b.Fatal(err)
		}
	}
	var preimages [][]byte
	for from := uint64(0); from < total; {
		page, err := s.Segments(testKey("c"), from, MaxPage)
		if err != nil {
			b.Fatal(err)
		}
		for i := range page {
			g := &page[i].Segment
			preimages = append(preimages, segments.AppendPreimage(nil, g.Seq, g.Prev, g.Kind))
		}
		from += uint64(len(page))
	}
	start := nowSeconds()
	bytes := 0
	for _, p := range preimages {
		segments.Sum(p)
		bytes += len(p)
	}
	limit := nowSeconds() - start
	b.SetBytes(int64(bytes))
	b.ReportAllocs()
	for b.Loop() {
		if err := walkAll(s, testKey("c")); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(limit*float64(b.N)/b.Elapsed().Seconds(), "ratio")
}
