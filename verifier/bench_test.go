package verifier

import (
	"crypto/sha256"
	"io"
	"testing"
	"time"
)

// BenchmarkEvidence verifies a run of 1,000 segments and reports its speed as a
// share of SHA-256 over the same bytes, measured in the same run.
func BenchmarkEvidence(b *testing.B) {
	text, err := io.ReadAll(&endless{n: 1000})
	if err != nil {
		b.Fatal(err)
	}
	for _, mode := range []Mode{Strict, Reference} {
		b.Run(string(mode), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			hashing := time.Duration(0)
			for b.Loop() {
				if r := verifyBytes(text, Options{Mode: mode}); r.ExitCode != ExitPass {
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

// BenchmarkEvidenceSmall verifies a signed run of six segments.
func BenchmarkEvidenceSmall(b *testing.B) {
	v := loadVector(b, "p02-full-run-signed")
	o := v.options(b, Strict)
	b.ReportAllocs()
	b.SetBytes(int64(len(v.bundle)))
	for b.Loop() {
		if got := verifyBytes(v.bundle, o); got.ExitCode != ExitPass {
			b.Fatal(got.Summary)
		}
	}
}
