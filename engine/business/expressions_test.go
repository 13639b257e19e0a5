package business_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chaind/chaind/engine/business"
)

// table is what CPython 3.11's re finds: the first amount, refused pair and
// renewal date; and the groups of the comparison, superlative and counts with
// all quoted dates.
type table struct{ Money, Refuse, Renew, Forms [][]json.RawMessage }

func readTable(tb testing.TB) table {
	tb.Helper()
	raw, err := os.ReadFile("testdata/cpython.json")
	if err != nil {
		tb.Fatal(err)
	}
	var out table
	if err := json.Unmarshal(raw, &out); err != nil || min(len(out.Money), len(out.Refuse), len(out.Renew), len(out.Forms)) < 80 {
		tb.Fatalf("table: %v", err)
	}
	return out
}

func decode(tb testing.TB, row []json.RawMessage, into ...any) {
	tb.Helper()
	for i := range into {
		if err := json.Unmarshal(row[i], into[i]); err != nil {
			tb.Fatal(err)
		}
	}
}

func TestScannersAsPython(t *testing.T) {
	tables := readTable(t)
	for _, row := range tables.Money {
		var s string
		var want [2]string
		decode(t, row, &s, &want)
		if currency, number := business.Amount(s); currency != want[0] || number != want[1] {
			t.Errorf("%q: %q %q, want %q", s, currency, number, want)
		}
	}
	for _, row := range tables.Refuse {
		var s string
		var want [2]string
		decode(t, row, &s, &want)
		if first, second := business.RefusedPair(s); first != want[0] || second != want[1] {
			t.Errorf("%q: %q %q, want %q", s, first, second, want)
		}
	}
	for _, row := range tables.Renew {
		var s, want string
		decode(t, row, &s, &want)
		if got := business.RenewalDate(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}

func TestFormsAsPython(t *testing.T) {
	var forms []*regexp.Regexp
	for _, form := range []string{business.CompareForm, business.SuperForm, business.CountsForm} {
		forms = append(forms, regexp.MustCompile(form))
	}
	quoted := regexp.MustCompile(business.QuotedForm)
	for _, row := range readTable(t).Forms {
		var s string
		var want [3][]string
		var dates []string
		decode(t, row, &s, &want[0], &want[1], &want[2], &dates)
		for i, form := range forms {
			var got []string
			if m := form.FindStringSubmatch(s); m != nil {
				got = m[1:]
			}
			if !slices.Equal(got, want[i]) {
				t.Errorf("%q, form %d: %q, want %q", s, i, got, want[i])
			}
		}
		var got []string
		for _, m := range quoted.FindAllStringSubmatch(s, -1) {
			got = append(got, m[1])
		}
		if !slices.Equal(got, dates) {
			t.Errorf("%q: dates %q, want %q", s, got, dates)
		}
	}
}

func FuzzExpressions(f *testing.F) {
	f.Add("The Agreement auto-renews annually on 1 August.")
	f.Add("Net order value: EUR 1,000.00. Refused to sum across EUR and USD")
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "")
		if date := business.RenewalDate(s); !strings.Contains(s, date) || date != "" && business.RenewalDate("renews on "+date) != date {
			t.Errorf("%q: date %q", s, date)
		}
		currency, number := business.Amount(s)
		if !strings.Contains(s, currency+" "+number) && currency != "" {
			t.Errorf("%q: amount %q %q", s, currency, number)
		}
		if first, second := business.RefusedPair(s); first != "" && !strings.Contains(s, "Refused to sum across "+first+" and "+second) {
			t.Errorf("%q: refused %q %q", s, first, second)
		}
	})
}
