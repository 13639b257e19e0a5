package segments_test

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"testing"
	"time"

	"github.com/chaind/chaind/segments"
)

// benchChain is a chain of 1,000 steps, its preimages joined, and the work of
// hashing those bytes one by one: the limit that the ratios refer to.
func benchChain() (b *segments.Bundle, preimages [][]byte, bytes int64) {
	b = chainOf(honest(1000))
	for i := range b.Segments {
		if _, ok := b.Segments[i].Kind.(*segments.StepExecuted); !ok {
			continue
		}
		s := &b.Segments[i]
		p := segments.AppendPreimage(nil, s.Seq, s.Prev, s.Kind)
		preimages = append(preimages, p)
		bytes += int64(len(p))
	}
	b.Segments = b.Segments[2 : len(b.Segments)-1]
	return b, preimages, bytes
}

// hashTime is what SHA-256 alone takes for the preimages, the best of several
// rounds.
func hashTime(preimages [][]byte) time.Duration {
	best := time.Duration(1 << 62)
	for range 20 {
		start := time.Now()
		for _, p := range preimages {
			sum := sha256.Sum256(p)
			keep(sum[0])
		}
		best = min(best, time.Since(start))
	}
	return best
}

//go:noinline
func keep(byte) {}

func reportRatio(b *testing.B, limit time.Duration, segments int) {
	perOp := b.Elapsed() / time.Duration(b.N)
	b.ReportMetric(float64(limit)/float64(perOp), "of-sha256")
	b.ReportMetric(float64(segments)/perOp.Seconds(), "segments/s")
}

func BenchmarkAppendPreimage(b *testing.B) {
	chain, preimages, n := benchChain()
	limit := hashTime(preimages)
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	b.SetBytes(n)
	for b.Loop() {
		for i := range chain.Segments {
			s := &chain.Segments[i]
			buf = segments.AppendPreimage(buf[:0], s.Seq, s.Prev, s.Kind)
		}
	}
	reportRatio(b, limit, len(preimages))
}

func BenchmarkDigest(b *testing.B) {
	chain, preimages, n := benchChain()
	limit := hashTime(preimages)
	b.ReportAllocs()
	b.SetBytes(n)
	for b.Loop() {
		for i := range chain.Segments {
			d := chain.Segments[i].Digest()
			keep(d[0])
		}
	}
	reportRatio(b, limit, len(preimages))
}

func BenchmarkWalk(b *testing.B) {
	chain, preimages, n := benchChain()
	limit := hashTime(preimages)
	b.ReportAllocs()
	b.SetBytes(n)
	for b.Loop() {
		w := segments.Walk{Head: chain.Segments[0].Prev}
		for i := range chain.Segments {
			if err := w.Step(&chain.Segments[i]); err != nil {
				b.Fatal(err)
			}
		}
	}
	reportRatio(b, limit, len(preimages))
}

// BenchmarkRead decodes a file and walks its chain: all that a verifier does
// for each segment.
func BenchmarkRead(b *testing.B) {
	chain, preimages, _ := benchChain()
	limit := hashTime(preimages)
	text := segments.AppendBundle(nil, chain)
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		w := segments.Walk{Head: chain.Segments[0].Prev}
		if _, _, err := segments.Read(bytes.NewReader(text), w.Step); err != nil {
			b.Fatal(err)
		}
	}
	reportRatio(b, limit, len(preimages))
}

func BenchmarkSortedJSON(b *testing.B) {
	text := []byte(`{"steps":[` + strings.Repeat(`{"b":1.5,"a":"x","c":{"z":null,"y":[1,2,3]}},`, 1000) + `0]}`)
	var buf []byte
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		var err error
		if buf, err = segments.AppendSortedJSON(buf[:0], text); err != nil {
			b.Fatal(err)
		}
	}
}
