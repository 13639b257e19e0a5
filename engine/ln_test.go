package engine

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// bigLn computes ln x with 200 bits: ln x = 2 atanh((x-1)/(x+1)) after x was
// brought near 1 by square roots.
func bigLn(x float64) *big.Float {
	const prec = 300
	v := new(big.Float).SetPrec(prec).SetFloat64(x)
	halvings := 0
	one := big.NewFloat(1).SetPrec(prec)
	for ; halvings < 12; halvings++ {
		v.Sqrt(v)
	}
	s := new(big.Float).Quo(new(big.Float).Sub(v, one), new(big.Float).Add(v, one))
	square := new(big.Float).Mul(s, s)
	sum, power := new(big.Float).SetPrec(prec), s
	for k := int64(0); k < 60; k++ {
		sum.Add(sum, new(big.Float).Quo(power, new(big.Float).SetPrec(prec).SetInt64(2*k+1)))
		power = new(big.Float).Mul(power, square)
	}
	return sum.Mul(sum, new(big.Float).SetPrec(prec).SetInt64(2<<halvings))
}

// TestLnIsCorrectlyRounded: for every argument that retrieval over up to 120
// records can have, and at the ends of the range.
func TestLnIsCorrectlyRounded(t *testing.T) {
	check := func(x float64) {
		want, _ := bigLn(x).Float64()
		if got := ln(x); got != want {
			t.Errorf("ln(%v) = %v, want %v", x, got, want)
		}
	}
	step := 1
	if testing.Short() {
		step = 7
	}
	for n := 1; n <= 120; n += step {
		for df := 0; df <= n; df++ {
			check(1 + ((float64(n)-float64(df))+0.5)/(float64(df)+0.5))
		}
	}
	for _, x := range []float64{1 + 0x1p-52, 2, 3, 10, math.E, 1e300, math.MaxFloat64, 0.5, 0.7071067811865475, 0.7071067811865476, 1 - 0x1p-53, 5e-324, 200001} {
		check(x)
	}
	if ln(1) != 0 {
		t.Errorf("ln(1) = %v", ln(1))
	}
}

// TestLnPinned: bits of the kernel, so that a change of it is noticed.
func TestLnPinned(t *testing.T) {
	for x, want := range map[float64]uint64{2: 0x3fe62e42fefa39ef, 10: 0x40026bb1bbb55516, 1.5: 0x3fd9f323ecbf984c} {
		if got := math.Float64bits(ln(x)); got != want {
			t.Errorf("ln(%v) has the bits %#x, want %#x", x, got, want)
		}
	}
}

func TestLnNearMathLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(0x1p-1000, math.MaxFloat64).Draw(t, "x")
		got, want := ln(x), math.Log(x)
		if math.Abs(got-want) > 4e-16*math.Abs(want)+1e-300 {
			t.Fatalf("ln(%v) = %v, math.Log gives %v", x, got, want)
		}
	})
}
