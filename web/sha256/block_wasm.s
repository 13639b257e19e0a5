#include "textflag.h"

// The names are those of FIPS 180-4, section 6.2.2, but that the eight variables
// change their places instead of being moved. All values are of 32 bits, in
// registers of 64.

#define A R0
#define B R1
#define C R2
#define D R3
#define E R4
#define F R5
#define G R6
#define H R7
#define W R8       // of this round
#define X R9       // scratch
#define AB R10     // a^b of this round
#define BC R11     // b^c of this round, a^b of the one before
#define DATA R12   // next block
#define LEFT R13   // bytes
#define STATE R14

#define LOAD(r)  Get r; I32WrapI64
#define STORE(r) I64ExtendI32U; Set r

// ROTATED is x turned right by each of three numbers.
#define ROTATED(x, i, j, k) \
	LOAD(x); I32Const $i; I32Rotr; \
	LOAD(x); I32Const $j; I32Rotr; I32Xor; \
	LOAD(x); I32Const $k; I32Rotr; I32Xor

// SHIFTED is x turned right by two numbers and shifted by a third.
#define SHIFTED(x, i, j, k) \
	LOAD(x); I32Const $i; I32Rotr; \
	LOAD(x); I32Const $j; I32Rotr; I32Xor; \
	LOAD(x); I32Const $k; I32ShrU; I32Xor

// ROUND leaves the new e in d and the new a in h. Maj(a, b, c) is b^((a^b)&(b^c)).
#define ROUND(a, b, c, d, e, f, g, h, ab, bc, k) \
	LOAD(h); I64Const $k; I32WrapI64; I32Add; LOAD(W); I32Add; \
	LOAD(g); LOAD(e); LOAD(f); LOAD(g); I32Xor; I32And; I32Xor; I32Add; \
	ROTATED(e, 6, 11, 25); I32Add; STORE(h); \
	LOAD(d); LOAD(h); I32Add; STORE(d); \
	LOAD(a); LOAD(b); I32Xor; STORE(ab); \
	LOAD(h); LOAD(b); LOAD(ab); LOAD(bc); I32And; I32Xor; I32Add; \
	ROTATED(a, 2, 13, 22); I32Add; STORE(h)

// FIRST takes word i of the block, which is big-endian, into the schedule.
#define FIRST(i) \
	LOAD(DATA); I32Load $(4*i); STORE(X); \
	LOAD(X); I32Const $8; I32Rotl; I32Const $0x00ff00ff; I32And; \
	LOAD(X); I32Const $8; I32Rotr; I64Const $0xff00ff00; I32WrapI64; I32And; I32Or; STORE(W); \
	Get SP; LOAD(W); I32Store $(4*i)

// NEXT computes a word of the schedule in the place of the one 16 rounds before.
#define NEXT(i) \
	Get SP; I32Load $(4*((i+1)&15)); STORE(X); \
	SHIFTED(X, 7, 18, 3); \
	Get SP; I32Load $(4*((i+14)&15)); STORE(X); \
	SHIFTED(X, 17, 19, 10); I32Add; \
	Get SP; I32Load $(4*((i+9)&15)); I32Add; \
	Get SP; I32Load $(4*(i&15)); I32Add; STORE(W); \
	Get SP; LOAD(W); I32Store $(4*(i&15))

#define BEGIN(i, r) LOAD(STATE); I32Load $(4*i); STORE(r)
#define END(i, r)   LOAD(STATE); LOAD(r); LOAD(STATE); I32Load $(4*i); I32Add; I32Store $(4*i)

// func block(dig *Digest, p []byte)
TEXT ·block(SB), NOSPLIT, $64-32
	I64Load dig+0(FP)
	Set STATE
	I64Load p_base+8(FP)
	Set DATA
	I64Load p_len+16(FP)
	Set LEFT

	Block
	Loop
	Get LEFT
	I64Const $64
	I64LtU
	BrIf $1

	BEGIN(0, A)
	BEGIN(1, B)
	BEGIN(2, C)
	BEGIN(3, D)
	BEGIN(4, E)
	BEGIN(5, F)
	BEGIN(6, G)
	BEGIN(7, H)
	LOAD(B); LOAD(C); I32Xor; STORE(BC)

	FIRST(0)
	ROUND(A, B, C, D, E, F, G, H, AB, BC, 0x428a2f98)
	FIRST(1)
	ROUND(H, A, B, C, D, E, F, G, BC, AB, 0x71374491)
	FIRST(2)
	ROUND(G, H, A, B, C, D, E, F, AB, BC, 0xb5c0fbcf)
	FIRST(3)
	ROUND(F, G, H, A, B, C, D, E, BC, AB, 0xe9b5dba5)
	FIRST(4)
	ROUND(E, F, G, H, A, B, C, D, AB, BC, 0x3956c25b)
	FIRST(5)
	ROUND(D, E, F, G, H, A, B, C, BC, AB, 0x59f111f1)
	FIRST(6)
	ROUND(C, D, E, F, G, H, A, B, AB, BC, 0x923f82a4)
	FIRST(7)
	ROUND(B, C, D, E, F, G, H, A, BC, AB, 0xab1c5ed5)
	FIRST(8)
	ROUND(A, B, C, D, E, F, G, H, AB, BC, 0xd807aa98)
	FIRST(9)
	ROUND(H, A, B, C, D, E, F, G, BC, AB, 0x12835b01)
	FIRST(10)
	ROUND(G, H, A, B, C, D, E, F, AB, BC, 0x243185be)
	FIRST(11)
	ROUND(F, G, H, A, B, C, D, E, BC, AB, 0x550c7dc3)
	FIRST(12)
	ROUND(E, F, G, H, A, B, C, D, AB, BC, 0x72be5d74)
	FIRST(13)
	ROUND(D, E, F, G, H, A, B, C, BC, AB, 0x80deb1fe)
	FIRST(14)
	ROUND(C, D, E, F, G, H, A, B, AB, BC, 0x9bdc06a7)
	FIRST(15)
	ROUND(B, C, D, E, F, G, H, A, BC, AB, 0xc19bf174)
	NEXT(16)
	ROUND(A, B, C, D, E, F, G, H, AB, BC, 0xe49b69c1)
	NEXT(17)
	ROUND(H, A, B, C, D, E, F, G, BC, AB, 0xefbe4786)
	NEXT(18)
	ROUND(G, H, A, B, C, D, E, F, AB, BC, 0x0fc19dc6)
	NEXT(19)
	ROUND(F, G, H, A, B, C, D, E, BC, AB, 0x240ca1cc)
	NEXT(20)
	ROUND(E, F, G, H, A, B, C, D, AB, BC, 0x2de92c6f)
	NEXT(21)
	ROUND(D, E, F, G, H, A, B, C, BC, AB, 0x4a7484aa)
	NEXT(22)
	ROUND(C, D, E, F, G, H, A, B, AB, BC, 0x5cb0a9dc)
	NEXT(23)
	ROUND(B, C, D, E, F, G, H, A, BC, AB, 0x76f988da)
	NEXT(24)
	ROUND(A, B, C, D, E, F, G, H, AB, BC, 0x983e5152)
	NEXT(25)
	ROUND(H, A, B, C, D, E, F, G, BC, AB, 0xa831c66d)
	NEXT(26)
	ROUND(G, H, A, B, C, D, E, F, AB, BC, 0xb00327c8)
	NEXT(27)
	ROUND(F, G, H, A, B, C, D, E, BC, AB, 0xbf597fc7)
	NEXT(28)
	ROUND(E, F, G, H, A, B, C, D, AB, BC, 0xc6e00bf3)
	NEXT(29)
	ROUND(D, E, F, G, H, A, B, C, BC, AB, 0xd5a79147)
	NEXT(30)
	ROUND(C, D, E, F, G, H, A, B, AB, BC, 0x06ca6351)
	NEXT(31)
	ROUND(B, C, D, E, F, G, H, A, BC, AB, 0x14292967)
	NEXT(32)
	ROUND(A, B, C, D, E, F, G, H, AB, BC, 0x27b70a85)
	NEXT(33)
	ROUND(H, A, B, C, D, E, F, G, BC, AB, 0x2e1b2138)
	NEXT(34)
	ROUND(G, H, A, B, C, D, E, F, AB, BC, 0x4d2c6dfc)
	NEXT(35)
	ROUND(F, G, H, A, B, C, D, E, BC, AB, 0x53380d13)
	NEXT(36)
	ROUND(E, F, G, H, A, B, C, D, AB, BC, 0x650a7354)
	NEXT(37)
	ROUND(D, E, F, G, H, A, B, C, BC, AB, 0x766a0abb)
	NEXT(38)
	ROUND(C, D, E, F, G, H, A, B, AB, BC, 0x81c2c92e)
	NEXT(39)
	ROUND(B, C, D, E, F, G, H, A, BC, AB, 0x92722c85)
	NEXT(40)
	ROUND(A, B, C, D, E, F, G, H, AB, BC, 0xa2bfe8a1)
	NEXT(41)
	ROUND(H, A, B, C, D, E, F, G, BC, AB, 0xa81a664b)
	NEXT(42)
	ROUND(G, H, A, B, C, D, E, F, AB, BC, 0xc24b8b70)
	NEXT(43)
	ROUND(F, G, H, A, B, C, D, E, BC, AB, 0xc76c51a3)
	NEXT(44)
	ROUND(E, F, G, H, A, B, C, D, AB, BC, 0xd192e819)
	NEXT(45)
	ROUND(D, E, F, G, H, A, B, C, BC, AB, 0xd6990624)
	NEXT(46)
	ROUND(C, D, E, F, G, H, A, B, AB, BC, 0xf40e3585)
	NEXT(47)
	ROUND(B, C, D, E, F, G, H, A, BC, AB, 0x106aa070)
	NEXT(48)
	ROUND(A, B, C, D, E, F, G, H, AB, BC, 0x19a4c116)
	NEXT(49)
	ROUND(H, A, B, C, D, E, F, G, BC, AB, 0x1e376c08)
	NEXT(50)
	ROUND(G, H, A, B, C, D, E, F, AB, BC, 0x2748774c)
	NEXT(51)
	ROUND(F, G, H, A, B, C, D, E, BC, AB, 0x34b0bcb5)
	NEXT(52)
	ROUND(E, F, G, H, A, B, C, D, AB, BC, 0x391c0cb3)
	NEXT(53)
	ROUND(D, E, F, G, H, A, B, C, BC, AB, 0x4ed8aa4a)
	NEXT(54)
	ROUND(C, D, E, F, G, H, A, B, AB, BC, 0x5b9cca4f)
	NEXT(55)
	ROUND(B, C, D, E, F, G, H, A, BC, AB, 0x682e6ff3)
	NEXT(56)
	ROUND(A, B, C, D, E, F, G, H, AB, BC, 0x748f82ee)
	NEXT(57)
	ROUND(H, A, B, C, D, E, F, G, BC, AB, 0x78a5636f)
	NEXT(58)
	ROUND(G, H, A, B, C, D, E, F, AB, BC, 0x84c87814)
	NEXT(59)
	ROUND(F, G, H, A, B, C, D, E, BC, AB, 0x8cc70208)
	NEXT(60)
	ROUND(E, F, G, H, A, B, C, D, AB, BC, 0x90befffa)
	NEXT(61)
	ROUND(D, E, F, G, H, A, B, C, BC, AB, 0xa4506ceb)
	NEXT(62)
	ROUND(C, D, E, F, G, H, A, B, AB, BC, 0xbef9a3f7)
	NEXT(63)
	ROUND(B, C, D, E, F, G, H, A, BC, AB, 0xc67178f2)

	END(0, A)
	END(1, B)
	END(2, C)
	END(3, D)
	END(4, E)
	END(5, F)
	END(6, G)
	END(7, H)

	Get DATA
	I64Const $64
	I64Add
	Set DATA
	Get LEFT
	I64Const $64
	I64Sub
	Set LEFT
	Br $0
	End
	End
	RET
