package engine

import "math"

// ln is the natural logarithm of a finite positive double, computed with about
// 100 bits and rounded once. math.Log is assembly on some machines and differs
// between them; every step here is an exact or a correctly rounded operation
// in a fixed order, with explicit conversions where a compiler might fuse, so
// that a ranking is the same everywhere.
//
// x = m × 2^e with m near 1; ln x = 2 atanh((m-1)/(m+1)) + e ln 2.
func ln(x float64) float64 {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m *= 2
		e--
	}
	s := divide(double{m - 1, 0}, twoSum(m, 1))
	square := multiply(s, s)
	var sum double
	for k := lnTerms; k >= 0; k-- {
		odd := float64(2*k + 1)
		sum = add(multiply(sum, square), divide(double{1, 0}, double{odd, 0}))
	}
	sum = multiply(sum, double{2 * s.hi, 2 * s.lo})
	out := add(multiply(double{float64(e), 0}, double{0x1.62e42fefa39efp-01, 0x1.abc9e3b39803fp-56}), sum)
	return out.hi + out.lo
}

// lnTerms is enough for 100 bits: (m-1)²/(m+1)² < 0.0295.
const lnTerms = 22

// double is the unevaluated sum of two doubles, lo less than half a unit in
// the last place of hi.
type double struct{ hi, lo float64 }

func twoSum(a, b float64) double {
	s := a + b
	v := s - a
	return double{s, (a - (s - v)) + (b - v)}
}

func fastTwoSum(a, b float64) double {
	s := a + b
	return double{s, b - (s - a)}
}

func add(a, b double) double {
	s := twoSum(a.hi, b.hi)
	return fastTwoSum(s.hi, s.lo+(a.lo+b.lo))
}

func multiply(a, b double) double {
	p := float64(a.hi * b.hi)
	err := math.FMA(a.hi, b.hi, -p)
	cross := float64(a.hi*b.lo) + float64(a.lo*b.hi)
	return fastTwoSum(p, err+cross)
}

func divide(a, b double) double {
	q := float64(a.hi / b.hi)
	rest := math.FMA(-q, b.hi, a.hi)
	rest = rest + (a.lo - float64(q*b.lo))
	return fastTwoSum(q, float64(rest/b.hi))
}
