package sha256

import "math/bits"

// constants are K of FIPS 180-4, section 4.2.2.
var constants = [4 * 16]uint32{
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
}

// block takes whole blocks of 64 bytes into the state. The names are those of
// FIPS 180-4, section 6.2.2, but that the eight variables change their places in
// the calls instead of being moved.
func block(dig *Digest, p []byte) {
	var w [16]uint32 // the schedule's window: W of this turn's rounds
	for len(p) >= 64 {
		load(&w, (*[64]byte)(p))
		a, b, c, d, e, f, g, h := dig.h[0], dig.h[1], dig.h[2], dig.h[3], dig.h[4], dig.h[5], dig.h[6], dig.h[7]
		for t := 0; ; t += 16 {
			k := (*[16]uint32)(constants[t:])
			d, h = round(a, b, c, d, e, f, g, h, k[0]+w[0])
			c, g = round(h, a, b, c, d, e, f, g, k[1]+w[1])
			b, f = round(g, h, a, b, c, d, e, f, k[2]+w[2])
			a, e = round(f, g, h, a, b, c, d, e, k[3]+w[3])
			h, d = round(e, f, g, h, a, b, c, d, k[4]+w[4])
			g, c = round(d, e, f, g, h, a, b, c, k[5]+w[5])
			f, b = round(c, d, e, f, g, h, a, b, k[6]+w[6])
			e, a = round(b, c, d, e, f, g, h, a, k[7]+w[7])
			d, h = round(a, b, c, d, e, f, g, h, k[8]+w[8])
			c, g = round(h, a, b, c, d, e, f, g, k[9]+w[9])
			b, f = round(g, h, a, b, c, d, e, f, k[10]+w[10])
			a, e = round(f, g, h, a, b, c, d, e, k[11]+w[11])
			h, d = round(e, f, g, h, a, b, c, d, k[12]+w[12])
			g, c = round(d, e, f, g, h, a, b, c, k[13]+w[13])
			f, b = round(c, d, e, f, g, h, a, b, k[14]+w[14])
			e, a = round(b, c, d, e, f, g, h, a, k[15]+w[15])
			if t == 48 {
				break
			}
			w[0] += small1(w[14]) + w[9] + small0(w[1])
			w[1] += small1(w[15]) + w[10] + small0(w[2])
			w[2] += small1(w[0]) + w[11] + small0(w[3])
			w[3] += small1(w[1]) + w[12] + small0(w[4])
			w[4] += small1(w[2]) + w[13] + small0(w[5])
			w[5] += small1(w[3]) + w[14] + small0(w[6])
			w[6] += small1(w[4]) + w[15] + small0(w[7])
			w[7] += small1(w[5]) + w[0] + small0(w[8])
			w[8] += small1(w[6]) + w[1] + small0(w[9])
			w[9] += small1(w[7]) + w[2] + small0(w[10])
			w[10] += small1(w[8]) + w[3] + small0(w[11])
			w[11] += small1(w[9]) + w[4] + small0(w[12])
			w[12] += small1(w[10]) + w[5] + small0(w[13])
			w[13] += small1(w[11]) + w[6] + small0(w[14])
			w[14] += small1(w[12]) + w[7] + small0(w[15])
			w[15] += small1(w[13]) + w[8] + small0(w[0])
		}
		dig.h[0] += a
		dig.h[1] += b
		dig.h[2] += c
		dig.h[3] += d
		dig.h[4] += e
		dig.h[5] += f
		dig.h[6] += g
		dig.h[7] += h
		p = p[64:]
	}
}

// round gives the new values of d and h.
func round(a, b, c, d, e, f, g, h, kw uint32) (uint32, uint32) {
	h += (bits.RotateLeft32(e, -6) ^ bits.RotateLeft32(e, -11) ^ bits.RotateLeft32(e, -25)) + (g ^ e&(f^g)) + kw
	return d + h, h + (bits.RotateLeft32(a, -2) ^ bits.RotateLeft32(a, -13) ^ bits.RotateLeft32(a, -22)) + (a&b | c&(a|b))
}

// load begins the schedule with the block, big-endian.
func load(w *[16]uint32, p *[64]byte) {
	w[0] = word(p[0], p[1], p[2], p[3])
	w[1] = word(p[4], p[5], p[6], p[7])
	w[2] = word(p[8], p[9], p[10], p[11])
	w[3] = word(p[12], p[13], p[14], p[15])
	w[4] = word(p[16], p[17], p[18], p[19])
	w[5] = word(p[20], p[21], p[22], p[23])
	w[6] = word(p[24], p[25], p[26], p[27])
	w[7] = word(p[28], p[29], p[30], p[31])
	w[8] = word(p[32], p[33], p[34], p[35])
	w[9] = word(p[36], p[37], p[38], p[39])
	w[10] = word(p[40], p[41], p[42], p[43])
	w[11] = word(p[44], p[45], p[46], p[47])
	w[12] = word(p[48], p[49], p[50], p[51])
	w[13] = word(p[52], p[53], p[54], p[55])
	w[14] = word(p[56], p[57], p[58], p[59])
	w[15] = word(p[60], p[61], p[62], p[63])
}

func word(a, b, c, d byte) uint32 { return uint32(a)<<24 | uint32(b)<<16 | uint32(c)<<8 | uint32(d) }

func small0(x uint32) uint32 { return bits.RotateLeft32(x, -7) ^ bits.RotateLeft32(x, -18) ^ x>>3 }

func small1(x uint32) uint32 { return bits.RotateLeft32(x, -17) ^ bits.RotateLeft32(x, -19) ^ x>>10 }
