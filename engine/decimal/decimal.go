// Package decimal holds the amounts of money that claims state and evidence
// packages: decimal numbers as Python's decimal module reads, adds, compares
// and prints them in its default context.
//
//   - Parse takes what Decimal(text) takes: white space around, an optional
//     sign, digits of any script with at most one point, an optional exponent;
//     underscores are ignored. Infinity and NaN are refused, as are numbers
//     that need more than MaxDigits digits to be written out.
//   - Add is exact up to Precision significant digits, and rounds half to even
//     beyond.
//   - Money rounds half to even to two places and groups thousands by commas.
//     The sign of a number that rounds to zero stays: -0.001 is "-0.00".
package decimal

import (
	"cmp"
	"errors"
	"math/big"
	"strconv"
	"strings"

	"github.com/chaind/chaind/engine/text"
)

const (
	// Precision is the number of significant digits that Add keeps.
	Precision = 28

	// MaxDigits bounds the places that a number may reach to the left and to the
	// right of its point, so that a short text cannot demand a long number.
	MaxDigits = 1000

	bitsOfPrecision = 93 // what has fewer has no more than Precision digits
)

// ErrSyntax says that a text is no number, or one out of bounds.
var ErrSyntax = errors.New("not a decimal number")

// Decimal is a decimal number, coefficient × 10^exponent. The zero value is 0.
// Values share nothing that changes.
type Decimal struct {
	negative bool
	coef     *big.Int // not negative; nil: 0
	exponent int      // -MaxDigits to MaxDigits
}

var (
	ten     = big.NewInt(10)
	hundred = big.NewInt(100)
)

// Parse reads a number. The error is ErrSyntax.
func Parse(s string) (Decimal, error) {
	s = text.ASCIIDigits(strings.ReplaceAll(text.Trim(s), "_", ""))
	var d Decimal
	if s != "" && (s[0] == '-' || s[0] == '+') {
		d.negative = s[0] == '-'
		s = s[1:]
	}
	mantissa, exponent, hasExponent := cutAny(s, "eE")
	if hasExponent {
		var err error
		if d.exponent, err = strconv.Atoi(exponent); err != nil {
			return Decimal{}, ErrSyntax
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	if digits == "" || !onlyDigits(digits) {
		return Decimal{}, ErrSyntax
	}
	d.exponent -= len(fraction)
	digits = strings.TrimLeft(digits, "0")
	if digits == "" {
		return Decimal{negative: d.negative}, nil
	}
	if d.exponent < -MaxDigits || d.exponent > MaxDigits-len(digits) {
		return Decimal{}, ErrSyntax
	}
	d.coef, _ = new(big.Int).SetString(digits, 10)
	return d, nil
}

func cutAny(s, chars string) (before, after string, found bool) {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

func onlyDigits(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }) < 0
}

// sign is -1, 0 or 1.
func (d Decimal) sign() int {
	switch {
	case d.coef == nil || d.coef.Sign() == 0:
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// at returns the signed coefficient of d for an exponent no higher than its own.
func (d Decimal) at(exponent int) *big.Int {
	n := new(big.Int)
	if d.coef == nil {
		return n
	}
	n.Set(d.coef)
	if d.exponent > exponent {
		n.Mul(n, power(d.exponent-exponent))
	}
	if d.negative {
		n.Neg(n)
	}
	return n
}

func power(n int) *big.Int { return new(big.Int).Exp(ten, big.NewInt(int64(n)), nil) }

// Add returns d + e.
func (d Decimal) Add(e Decimal) Decimal {
	exponent := min(d.exponent, e.exponent)
	sum := new(big.Int).Add(d.at(exponent), e.at(exponent))
	out := Decimal{negative: sum.Sign() < 0, exponent: exponent}
	if sum.Sign() == 0 {
		out.negative = d.negative && e.negative
	}
	out.coef = sum.Abs(sum)
	if out.coef.BitLen() < bitsOfPrecision {
		return out
	}
	if excess := len(out.coef.String()) - Precision; excess > 0 {
		out = out.rescale(exponent + excess)
	}
	return out
}

// rescale rounds half to even to a higher exponent. A coefficient that grows by
// one digit on the way, to 10^n, stands for the same number as with one less.
func (d Decimal) rescale(exponent int) Decimal {
	divisor := power(exponent - d.exponent)
	quotient, rest := new(big.Int).QuoRem(d.coef, divisor, new(big.Int))
	half := rest.Lsh(rest, 1).Cmp(divisor)
	if half > 0 || half == 0 && quotient.Bit(0) == 1 {
		quotient.Add(quotient, big.NewInt(1))
	}
	return Decimal{negative: d.negative, coef: quotient, exponent: exponent}
}

// Cmp is -1, 0 or 1 as d is less than, equal to or greater than e: 1.0 equals 1.
func (d Decimal) Cmp(e Decimal) int {
	if d.sign() != e.sign() {
		return cmp.Compare(d.sign(), e.sign())
	}
	exponent := min(d.exponent, e.exponent)
	return d.at(exponent).Cmp(e.at(exponent))
}

// Money is the number with two places and a comma before every three digits.
func (d Decimal) Money() string {
	if d.coef == nil {
		d.coef = new(big.Int)
	}
	if d.exponent < -2 {
		d = d.rescale(-2)
	}
	cents := new(big.Int).Mul(d.coef, power(d.exponent+2))
	whole, rest := new(big.Int).QuoRem(cents, hundred, new(big.Int))
	var b strings.Builder
	if d.negative {
		b.WriteByte('-')
	}
	digits := whole.String()
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(digits[i])
	}
	b.WriteByte('.')
	if rest.Cmp(ten) < 0 {
		b.WriteByte('0')
	}
	b.WriteString(rest.String())
	return b.String()
}
