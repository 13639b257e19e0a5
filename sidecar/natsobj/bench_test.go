package natsobj

import (
	"fmt"
	"testing"

	"github.com/chaind/chaind/sidecar"
)

// BenchmarkPutOnce writes bundles of a common size, against bare publishes of
// the same bytes with an acknowledgement each.
func BenchmarkPutOnce(b *testing.B) {
	bucket := startBroker(b).bucket("b")
	body := sidecar.Bytes(random(4096))
	n := 0
	b.Run("bucket", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(4096)
		for b.Loop() {
			n++
			if err := bucket.PutOnce(b.Context(), fmt.Sprintf("x%d", n), body); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("publish", func(b *testing.B) {
		b.SetBytes(4096)
		for b.Loop() {
			if _, err := bucket.js.Publish(b.Context(), bucket.pieceSubject("bare"), random(4096)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkList lists one directory of a bucket in which much else lies.
func BenchmarkList(b *testing.B) {
	bucket := startBroker(b).bucket("b")
	for n := range 10_000 {
		if _, err := bucket.js.PublishAsync(bucket.infoSubject(fmt.Sprintf("execute/%064d/%032d/evidence/heads/x", n, n)), []byte("{}")); err != nil {
			b.Fatal(err)
		}
	}
	<-bucket.js.PublishAsyncComplete()
	for b.Loop() {
		if err := bucket.List(b.Context(), "execute/none/", func(string) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10_000, "ns/object")
}
