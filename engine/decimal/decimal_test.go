package decimal_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaind/chaind/engine/decimal"
)

func mustParse(tb testing.TB, s string) decimal.Decimal {
	tb.Helper()
	d, err := decimal.Parse(s)
	if err != nil {
		tb.Fatalf("parse %q: %v", s, err)
	}
	return d
}

// table is what CPython 3.11 gives: texts with their money form, null for a
// refused one; lists of numbers with their sum from Decimal(0) and its money.
type table struct {
	Parse [][2]*string
	Sum   [][3]json.RawMessage
}

func readTable(tb testing.TB) table {
	tb.Helper()
	raw, err := os.ReadFile("testdata/cpython.json")
	if err != nil {
		tb.Fatal(err)
	}
	var out table
	if err := json.Unmarshal(raw, &out); err != nil || len(out.Parse) < 100 || len(out.Sum) < 100 {
		tb.Fatalf("table of %d and %d cases: %v", len(out.Parse), len(out.Sum), err)
	}
	return out
}

func TestParseAndMoneyAsPython(t *testing.T) {
	for _, c := range readTable(t).Parse {
		d, err := decimal.Parse(*c[0])
		switch {
		case c[1] == nil:
			if !errors.Is(err, decimal.ErrSyntax) || d != (decimal.Decimal{}) {
				t.Errorf("%q: accepted", *c[0])
			}
		case err != nil || d.Money() != *c[1]:
			t.Errorf("%q: %q, %v; want %q", *c[0], d.Money(), err, *c[1])
		}
	}
}

func TestSumAsPython(t *testing.T) {
	for _, c := range readTable(t).Sum {
		var list []string
		var want, money string
		for i, out := range []any{&list, &want, &money} {
			if err := json.Unmarshal(c[i], out); err != nil {
				t.Fatal(err)
			}
		}
		var sum decimal.Decimal
		for _, s := range list {
			sum = sum.Add(mustParse(t, s))
		}
		if sum.Cmp(mustParse(t, want)) != 0 || sum.Money() != money {
			t.Errorf("sum of %q is %s, want %s, %s", list, sum.Money(), want, money)
		}
	}
}

func TestParseBounds(t *testing.T) {
	for s, ok := range map[string]bool{
		strings.Repeat("9", decimal.MaxDigits):   true,
		strings.Repeat("9", decimal.MaxDigits+1): false,
		"1e999":                                  true,
		"1e1000":                                 false,
		"1e-1000":                                true,
		"1e-1001":                                false,
		"1e99999999999999999999":                 false,
		"0." + strings.Repeat("0", 100_000):      true,
		strings.Repeat("0", 100_000) + "1":       true,
		"NaN":                                    false,
		"-Infinity":                              false,
		"sNaN":                                   false,
		"0e1000000":                              true,
		"1" + strings.Repeat("_", 100_000) + "2e-10": true,
	} {
		if d, err := decimal.Parse(s); (err == nil) != ok || !ok && d != (decimal.Decimal{}) {
			t.Errorf("%.40q: %v", s, err)
		}
	}
	var zero decimal.Decimal
	if zero.Money() != "0.00" || zero.Cmp(mustParse(t, "-0.0")) != 0 || zero.Add(zero).Money() != "0.00" {
		t.Error("the zero value is not 0")
	}
}

// TestArithmeticProperties: small numbers are exact, so big.Rat must agree.
func TestArithmeticProperties(t *testing.T) {
	number := rapid.StringMatching(`[+-]?[0-9]{1,9}(\.[0-9]{0,6})?(e[+-]?[0-5])?`)
	rapid.Check(t, func(t *rapid.T) {
		x, y := number.Draw(t, "x"), number.Draw(t, "y")
		a, errA := decimal.Parse(x)
		b, errB := decimal.Parse(y)
		if errA != nil || errB != nil {
			t.Fatalf("%v, %v", errA, errB)
		}
		p, _ := new(big.Rat).SetString(strings.Replace(x, ".e", "e", 1))
		q, _ := new(big.Rat).SetString(strings.Replace(y, ".e", "e", 1))
		if p == nil || q == nil {
			t.Fatalf("big.Rat does not take %s or %s", x, y)
		}
		if a.Cmp(b) != p.Cmp(q) || b.Cmp(a) != q.Cmp(p) {
			t.Fatalf("%s and %s compare as %d", x, y, a.Cmp(b))
		}
		sum, err := decimal.Parse(new(big.Rat).Add(p, q).FloatString(20))
		if err != nil || a.Add(b).Cmp(sum) != 0 || b.Add(a).Cmp(sum) != 0 {
			t.Fatalf("%s + %s = %s", x, y, a.Add(b).Money())
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"0", "-1_000.50", " ٣.١٤e-2 ", "1e999", "1.e+", "inf", "\x1c5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := decimal.Parse(s)
		if err != nil {
			if !errors.Is(err, decimal.ErrSyntax) || d != (decimal.Decimal{}) {
				t.Errorf("%q: %v with a value", s, err)
			}
			return
		}
		money := d.Money()
		back, err := decimal.Parse(strings.ReplaceAll(money, ",", ""))
		if err != nil && len(money) < decimal.MaxDigits || err == nil && back.Money() != money {
			t.Errorf("%q prints %q, which reads back as %q, %v", s, money, back.Money(), err)
		}
		if d.Cmp(d) != 0 || d.Add(d).Cmp(d) != d.Cmp(decimal.Decimal{}) {
			t.Errorf("%q: doubling does not agree with the sign", s)
		}
	})
}

func TestSeedsExist(t *testing.T) {
	if seeds, err := os.ReadDir("testdata/fuzz/FuzzParse"); err != nil || len(seeds) == 0 {
		t.Errorf("no seeds: %v", err)
	}
}
