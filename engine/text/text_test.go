package text_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/chaind/chaind/engine/text"
)

// table is what CPython 3.11 (Unicode 14) gives: ranges of the characters of
// each class; block sizes of difflib; and for texts whether \btop\b is in
// them, with the words of three capitals of their upper-case form.
type table struct {
	Space, Word, Digit [][2]rune
	Runs, Words        [][3]json.RawMessage
}

func readTable(tb testing.TB) table {
	tb.Helper()
	raw, err := os.ReadFile("testdata/cpython.json")
	if err != nil {
		tb.Fatal(err)
	}
	var out table
	if err := json.Unmarshal(raw, &out); err != nil || len(out.Runs) < 100 || len(out.Words) < 100 {
		tb.Fatalf("table: %v", err)
	}
	return out
}

func decode(tb testing.TB, raw [3]json.RawMessage, into ...any) {
	tb.Helper()
	for i := range into {
		if err := json.Unmarshal(raw[i], into[i]); err != nil {
			tb.Fatal(err)
		}
	}
}

// TestClassesAsPython compares the classes of every character that Unicode 14
// assigned. A later Unicode may only add.
func TestClassesAsPython(t *testing.T) {
	tables := readTable(t)
	for name, c := range map[string]struct {
		ranges [][2]rune
		class  func(rune) bool
	}{"space": {tables.Space, text.IsSpace}, "word": {tables.Word, text.IsWord}, "digit": {tables.Digit, text.IsDigit}} {
		var next rune
		for _, r := range c.ranges {
			for ; next <= r[1]; next++ {
				want := next >= r[0]
				if got := c.class(next); got != want && (want || next < 0x300) {
					t.Errorf("%s: %U is %v", name, next, got)
				}
			}
		}
	}
	for r := range rune(unicode.MaxRune) {
		if text.IsDigit(r) && text.ASCIIDigits(string(r)) == string(r) && r > '9' {
			t.Errorf("%U has no value", r)
		}
	}
	if got := text.ASCIIDigits("٠١٢ ५६ ９ 𝟗𝟘𝟙𝟫 x½"); got != "012 56 9 9019 x½" {
		t.Errorf("digits: %q", got)
	}
}

func TestLongestRunAsPython(t *testing.T) {
	for _, c := range readTable(t).Runs {
		var a, b string
		var want int
		decode(t, c, &a, &b, &want)
		if got, err := text.LongestRun(a, b); err != nil || got != want {
			t.Errorf("%q, %q: %d, %v; want %d", a, b, got, err, want)
		}
	}
}

func TestWordsAsPython(t *testing.T) {
	hits := 0
	for _, c := range readTable(t).Words {
		var s string
		var want bool
		var capitals []string
		decode(t, c, &s, &want, &capitals)
		if got := text.HasWord(s, "top"); got != want {
			t.Errorf("%q: %v", s, got)
		}
		if got := text.Capitals(strings.ToUpper(s)); !slices.Equal(got, capitals) {
			t.Errorf("%q: %q, want %q", strings.ToUpper(s), got, capitals)
		}
		hits += len(capitals)
	}
	if hits < 15 {
		t.Errorf("only %d capital words", hits)
	}
}

func TestScanners(t *testing.T) {
	if got := text.Trim("\x1c \u2029a\u00a0b\u3000\x1f"); got != "a\u00a0b" {
		t.Errorf("trim: %q", got)
	}
	for s, want := range map[string]int{"": 0, "12x": 2, "٣٤": 4, "x": 0, "１2½": 4} {
		if got := text.Run(s, text.IsDigit); got != want {
			t.Errorf("run of digits in %q: %d", s, got)
		}
	}
	for s, want := range map[string]bool{"EU": false, "EUR": true, "EURO": true, "EUr": false, "": false, "EÜR": false} {
		if got := text.IsUpper(s, 3); got != want {
			t.Errorf("three capitals in %q: %v", s, got)
		}
	}
	for s, want := range map[string]bool{"almost": false, "most": true, "a-most!": true, "_most": false, "mosté": false, "most\u0301": true, "x most_ most": true} {
		if got := text.HasWord(s, "most"); got != want {
			t.Errorf("most in %q: %v", s, got)
		}
	}
	if got := text.Capitals("EURO ASK EUR,USD \u00e9CHF GBP\u0301 AB CADx JPY"); !slices.Equal(got, []string{"ASK", "EUR", "USD", "GBP", "JPY"}) {
		t.Errorf("capitals: %q", got)
	}
}

// TestLongestRunNaively: below 200 characters it is the longest common
// substring.
func TestLongestRunNaively(t *testing.T) {
	short := rapid.StringMatching(`[abc]{0,30}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := short.Draw(t, "a"), short.Draw(t, "b")
		want := 0
		for i := range len(b) {
			for j := i + 1; j <= len(b); j++ {
				if strings.Contains(a, b[i:j]) {
					want = max(want, j-i)
				}
			}
		}
		if got, err := text.LongestRun(a, b); err != nil || got != want {
			t.Fatalf("%d, %v; want %d", got, err, want)
		}
	})
}

func TestLongestRunIsBounded(t *testing.T) {
	long := strings.Repeat("a", 1<<15)
	if n, err := text.LongestRun(long, long); !errors.Is(err, text.ErrTooLong) || n != 0 {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := text.LongestRun(long+"b", "b"); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
}

func FuzzLongestRun(f *testing.F) {
	f.Add("muellerlogistik", "nordwindlogistikgmbh")
	f.Add("qaaaaa", strings.Repeat("a", 130)+"q"+strings.Repeat("a", 130))
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a)*len(b) > 1<<16 {
			return
		}
		n, err := text.LongestRun(a, b)
		if err != nil || n < 0 || n > min(len(a), len(b)) {
			t.Fatalf("%d, %v", n, err)
		}
		found := n == 0
		for i := 0; i+n <= len(b) && !found; i++ {
			found = strings.Contains(a, b[i:i+n])
		}
		if !found {
			t.Errorf("no common run of %d in %q and %q", n, a, b)
		}
		if self, _ := text.LongestRun(a, a); len(a) < 200 && self != len(a) {
			t.Errorf("%q has only %d in common with itself", a, self)
		}
	})
}

func FuzzWords(f *testing.F) {
	f.Add("Is Müller the top customer in EUR?")
	f.Add("_TOP\u0301 ÀBC ABC")
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "")
		for _, w := range text.Capitals(s) {
			if len(w) != 3 || !text.HasWord(s, w) {
				t.Errorf("%q is no word of %q", w, s)
			}
		}
		if strings.IndexFunc(text.ASCIIDigits(s), func(r rune) bool { return r > '9' && text.IsDigit(r) }) >= 0 {
			t.Errorf("%q keeps a digit", s)
		}
	})
}

func TestSeedsExist(t *testing.T) {
	for _, target := range []string{"FuzzLongestRun", "FuzzWords"} {
		if seeds, err := os.ReadDir(filepath.Join("testdata/fuzz", target)); err != nil || len(seeds) == 0 {
			t.Errorf("%s has no seeds: %v", target, err)
		}
	}
}
