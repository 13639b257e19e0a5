package sealer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/chaind/chaind/sidecar"
)

// BenchmarkSeal seals runs one after the other and many at once; the limit is
// create, write, fsync, rename, fsync of the directory, of the same bytes,
// taken in turns with the seals so that both meet the same disk. The reported
// ratio is the time of a seal over the time of the limit (goal: at most 2.5 for
// the bundle and its pointers).
func BenchmarkSeal(b *testing.B) {
	for _, runs := range []int{0, 1} {
		for _, workers := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("runs=%d/workers=%d", runs, workers), func(b *testing.B) { benchmarkSeal(b, runs, workers) })
		}
	}
}

func benchmarkSeal(b *testing.B, runs, workers int) {
	dir, err := sidecar.OpenDir(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer dir.Close()
	limitDir := b.TempDir()
	const round = 64 // seals between two looks at the limit
	f := newFake()
	sidecars := openSidecars(b, dir)
	var sealTime, limitTime float64
	chain, bytes := 0, int64(0)
	b.ReportAllocs()
	for b.Loop() {
		var body []byte
		for range round {
			chain++
			var ids []int
			if runs > 0 {
				ids = []int{chain}
			}
			key := f.finish(fmt.Sprint(chain), ids...)
			f.chains[key].preimages = nil
		}
		sealTime += seconds(b, func() error { return sealRound(f, sidecars, workers, round) })
		for _, r := range f.finished {
			bytes += int64(r.Bytes)
			body = make([]byte, r.Bytes)
		}
		clear(f.finished)
		limitTime += seconds(b, func() error {
			for i := range round {
				if err := bareWrite(limitDir, fmt.Sprint(chain, i), body); err != nil {
					return err
				}
			}
			return nil
		})
	}
	b.ReportMetric(sealTime/limitTime, "limit-ratio")
	b.ReportMetric(float64(chain)/sealTime, "seals/s")
	b.ReportMetric(float64(bytes)/float64(chain), "bytes/seal")
}

func seconds(b *testing.B, do func() error) float64 {
	before := b.Elapsed()
	if err := do(); err != nil {
		b.Fatal(err)
	}
	return (b.Elapsed() - before).Seconds()
}

func sealRound(f *fakeStore, sidecars *sidecar.Sidecars, workers, n int) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var sealed atomic.Int32
	cfg := Config{Store: f, Sidecars: sidecars, Workers: workers, SkipAudit: true, OnSealed: func(Sealed) {
		if int(sealed.Add(1)) == n {
			cancel()
		}
	}}
	if err := New(cfg).Run(ctx); err != nil {
		return err
	}
	if int(sealed.Load()) != n {
		return errors.New("not all were sealed")
	}
	return nil
}

func bareWrite(dir, name string, body []byte) error {
	temp := filepath.Join(dir, "temp")
	f, err := os.Create(temp)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(body); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(temp, filepath.Join(dir, name)); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
