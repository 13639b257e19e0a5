package engine_test

import (
	"crypto/sha256"
	"strconv"
	"testing"
	"time"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
)

// sumTime measures SHA-256 of the same bytes in the same run.
func sumTime(b *testing.B, text string) time.Duration {
	b.Helper()
	bytes := []byte(text)
	n := 0
	start := time.Now()
	for ; time.Since(start) < 50*time.Millisecond; n++ {
		sha256.Sum256(bytes)
	}
	return time.Since(start) / time.Duration(n)
}

// benchVerify parses and judges a file, and reports the time of SHA-256 over
// its bytes as a part of that.
func benchVerify(b *testing.B, text string, registry engine.Registry, want engine.Verdict) {
	sum := sumTime(b, text)
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		file, err := bundle.Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		j, err := engine.Judge(file, registry)
		if err != nil || j.Verdict() != want {
			b.Fatal(j.Cause(), err)
		}
	}
	b.ReportMetric(sum.Seconds()*float64(b.N)/b.Elapsed().Seconds(), "of-sha256")
}

func BenchmarkVerifyToy(b *testing.B) {
	for _, n := range []int{100, 1000, 10000, 100000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			g, kb := largeToy(n)
			benchVerify(b, seal(b, toy(), "Which item is the heaviest?", g, kb), known(), engine.Pass)
		})
	}
}

// BenchmarkVerifyChain judges the published chain; its upstreams cannot be
// re-derived without their domains.
func BenchmarkVerifyChain(b *testing.B) {
	benchVerify(b, readFile(b, vectors+"brief.tsb"), known(), engine.Fail)
}

func BenchmarkSeal(b *testing.B) {
	g, kb := largeToy(10000)
	b.ReportAllocs()
	for b.Loop() {
		draft, _, err := engine.NewDraft(toy(), "Which item is the heaviest?", g, kb)
		if err != nil {
			b.Fatal(err)
		}
		var out sink
		if _, err := bundle.Write(&out, draft, nil); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(out))
	}
}

type sink int64

func (s *sink) Write(p []byte) (int, error) {
	*s += sink(len(p))
	return len(p), nil
}

func BenchmarkRetrieve(b *testing.B) {
	_, kb := largeToy(10000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := engine.Retrieve("find the red serial X77770", kb, 5); err != nil {
			b.Fatal(err)
		}
	}
}
