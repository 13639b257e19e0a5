package bundle

import (
	"crypto/sha256"
	"os"
	"testing"
	"time"
)

func readFile(tb testing.TB, name string) string {
	tb.Helper()
	b, err := os.ReadFile("../testdata/tessera/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

// perByte measures SHA-256 over the same bytes in the same run.
func sumTime(b *testing.B, text []byte) time.Duration {
	b.Helper()
	start := time.Now()
	n := 0
	for ; time.Since(start) < 50*time.Millisecond; n++ {
		sha256.Sum256(text)
	}
	return time.Since(start) / time.Duration(n)
}

func BenchmarkParse(b *testing.B) {
	text := readFile(b, "brief.tsb")
	sum := sumTime(b, []byte(text))
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := Parse(text); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(sum.Seconds()*float64(b.N)/b.Elapsed().Seconds(), "of-sha256")
}

// BenchmarkVerifyEnvelope is everything that integrity and signature need,
// from the text on.
func BenchmarkVerifyEnvelope(b *testing.B) {
	text := readFile(b, "honest.tsb")
	sum := sumTime(b, []byte(text))
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		bundle, err := Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		check, err := bundle.CheckIntegrity()
		if err != nil || len(check.Findings) > 0 {
			b.Fatal(err, check.Findings)
		}
	}
	b.ReportMetric(sum.Seconds()*float64(b.N)/b.Elapsed().Seconds(), "of-sha256")
}
