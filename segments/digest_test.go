package segments_test

import (
	"encoding/hex"
	"testing"

	"github.com/chaind/chaind/segments"
)

// Every byte in every place of a digest, beside every kind of neighbour.
func TestDigestHex(t *testing.T) {
	t.Parallel()
	for _, around := range []byte{0x00, 0x09, 0x0a, 0x90, 0xa0, 0x9a, 0xff} {
		for at := range len(segments.Digest{}) {
			for b := range 256 {
				var d segments.Digest
				for i := range d {
					d[i] = around
				}
				d[at] = byte(b)
				if got, want := string(d.AppendHex([]byte("x"))), "x"+hex.EncodeToString(d[:]); got != want {
					t.Fatalf("%s, want %s", got, want)
				}
			}
		}
	}
}

func BenchmarkDigestHex(b *testing.B) {
	d, room := segments.Sum(nil), make([]byte, 0, 64)
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			room = d.AppendHex(room[:0])
		}
	})
	b.Run("encoding", func(b *testing.B) {
		for b.Loop() {
			room = hex.AppendEncode(room[:0], d[:])
		}
	})
}
