package sha256

import (
	"bytes"
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"hash"
	"testing"

	"pgregory.net/rapid"
)

// constants are K of FIPS 180-4, section 4.2.2.
var constants = [64]uint32{
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
}

// naive is SHA-256 by the letter of FIPS 180-4, with nothing of Go's: where the
// loop of this package has taken the place of Go's, that is no measure for it.
func naive(message []byte) (out [32]byte) {
	padded := append(bytes.Clone(message), 0x80)
	for len(padded)%64 != 56 {
		padded = append(padded, 0)
	}
	padded = binary.BigEndian.AppendUint64(padded, 8*uint64(len(message)))
	h := [8]uint32{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}
	for ; len(padded) > 0; padded = padded[64:] {
		naiveBlock(&h, padded[:64])
	}
	for i, word := range h {
		binary.BigEndian.PutUint32(out[4*i:], word)
	}
	return out
}

func naiveBlock(h *[8]uint32, p []byte) {
	right := func(x uint32, n int) uint32 { return x>>n | x<<(32-n) }
	var w [64]uint32
	for t := range w {
		if t < 16 {
			w[t] = binary.BigEndian.Uint32(p[4*t:])
			continue
		}
		s0 := right(w[t-15], 7) ^ right(w[t-15], 18) ^ w[t-15]>>3
		s1 := right(w[t-2], 17) ^ right(w[t-2], 19) ^ w[t-2]>>10
		w[t] = s1 + w[t-7] + s0 + w[t-16]
	}
	v := *h
	for t := range w {
		a, b, c, e, f, g := v[0], v[1], v[2], v[4], v[5], v[6]
		t1 := v[7] + (right(e, 6) ^ right(e, 11) ^ right(e, 25)) + (e&f ^ ^e&g) + constants[t] + w[t]
		t2 := (right(a, 2) ^ right(a, 13) ^ right(a, 22)) + (a&b ^ a&c ^ b&c)
		copy(v[1:], v[:7])
		v[4] += t1
		v[0] = t1 + t2
	}
	for i := range h {
		h[i] += v[i]
	}
}

// TestPiecesAndStates: crypto/sha256, in which the loop may be ours, gives the
// digest by the letter for every length, from any offset of memory, in any pieces,
// and when its state is written and read midway.
func TestPiecesAndStates(t *testing.T) {
	t.Parallel()
	memory := make([]byte, 1100)
	for i := range memory {
		memory[i] = byte(i*167 + i>>5)
	}
	for n := range 1024 {
		message := memory[n%9 : n%9+n]
		if sha256.Sum256(message) != naive(message) {
			t.Fatalf("%d bytes from offset %d give another digest", n, n%9)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		message := rapid.SliceOfN(rapid.Byte(), 0, 1500).Draw(t, "message")
		d, want := sha256.New(), naive(message)
		for rest := message; len(rest) > 0; {
			n := rapid.IntRange(0, len(rest)).Draw(t, "piece")
			d.Write(rest[:n])
			if rest = rest[n:]; rapid.Bool().Draw(t, "moved") {
				d = moved(t, d)
			}
			if n == 0 {
				d.Write(rest)
				break
			}
		}
		if got := d.Sum(nil); !bytes.Equal(got, want[:]) {
			t.Fatalf("% x gives % x, want % x", message, got, want)
		}
	})
}

// moved is a digest with the state of another.
func moved(t *rapid.T, d hash.Hash) hash.Hash {
	state, err := d.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	fresh := sha256.New()
	if err := fresh.(encoding.BinaryUnmarshaler).UnmarshalBinary(state); err != nil {
		t.Fatal(err)
	}
	return fresh
}
