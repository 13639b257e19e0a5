package sha256

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"
)

// sum pads (FIPS 180-4, section 5.1.1) and hashes, giving the blocks in two
// calls that meet anywhere.
func sum(message []byte, first int) [sha256.Size]byte {
	padded := append(bytes.Clone(message), 0x80)
	for len(padded)%64 != 56 {
		padded = append(padded, 0)
	}
	padded = binary.BigEndian.AppendUint64(padded, 8*uint64(len(message)))
	d := Digest{h: [8]uint32{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}}
	first = min(first, len(padded)/64) * 64
	block(&d, padded[:first])
	block(&d, padded[first:])
	var out [sha256.Size]byte
	for i, word := range d.h {
		binary.BigEndian.PutUint32(out[4*i:], word)
	}
	return out
}

// TestEveryLength holds the loop against Go's, for lengths around every seam.
func TestEveryLength(t *testing.T) {
	t.Parallel()
	message := make([]byte, 700)
	for i := range message {
		message[i] = byte(i*131 + i>>3)
	}
	for n := range len(message) + 1 {
		if sum(message[:n], n/128) != sha256.Sum256(message[:n]) {
			t.Fatalf("%d bytes give another digest", n)
		}
	}
}

// TestAnyMessage does so for random ones, of extreme bytes, too.
func TestAnyMessage(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte{0x00, 0xff, 0x80, 0x7f}))
		message := rapid.SliceOfN(content, 0, 1500).Draw(t, "message")
		if sum(message, rapid.IntRange(0, 20).Draw(t, "first")) != sha256.Sum256(message) {
			t.Fatalf("% x gives another digest", message)
		}
	})
}

// TestEveryBit: a digest depends on every bit of a block.
func TestEveryBit(t *testing.T) {
	t.Parallel()
	for bit := range 8 * 64 {
		var message [64]byte
		message[bit/8] = 1 << (bit % 8)
		if sum(message[:], 1) != sha256.Sum256(message[:]) {
			t.Errorf("bit %d gives another digest", bit)
		}
	}
}
