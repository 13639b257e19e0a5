package domains_test

import (
	"testing"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/domains"
	"github.com/chaind/chaind/engine/enginetest"
)

// BenchmarkVerify is everything a verifier does with a published bundle: parse,
// check the envelope, re-derive. brief.tsb embeds the other two.
func BenchmarkVerify(b *testing.B) {
	for _, name := range []string{"honest.tsb", "rca.tsb", "brief.tsb"} {
		text := enginetest.Read(b, name)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				doc, err := bundle.Parse(text)
				if err != nil {
					b.Fatal(err)
				}
				j, err := engine.Judge(doc, domains.All())
				if err != nil || j.Verdict() != engine.Pass {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRederive is the re-derivation of honest.tsb alone.
func BenchmarkRederive(b *testing.B) {
	text := enginetest.Read(b, "honest.tsb")
	doc := enginetest.Parse(b, text)
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if r, err := engine.Rederive(doc, domains.All()); err != nil || r.Failed() || r.Degraded() {
			b.Fatal(err)
		}
	}
}
