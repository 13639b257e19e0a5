package events

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

// checkUnescape holds what a string stands for against jsontext's word, which
// the string must have passed.
func checkUnescape(t interface{ Fatalf(string, ...any) }, quoted []byte) {
	want, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil || len(quoted) < 2 || quoted[0] != '"' {
		return
	}
	if got := appendUnescaped(nil, quoted); string(got) != string(want) {
		t.Fatalf("%q stands for %q, jsontext says %q", quoted, got, want)
	}
}

// FuzzUnescape holds the quick way out of escapes against jsontext.
func FuzzUnescape(f *testing.F) {
	f.Fuzz(func(t *testing.T, quoted []byte) { checkUnescape(t, quoted) })
}

// TestUnescapeSeeds fails when the corpus is gone; -update writes it.
func TestUnescapeSeeds(t *testing.T) {
	for i, s := range escapedStrings() {
		if *update {
			writeSeed(t, "FuzzUnescape", i, fmt.Sprintf("[]byte(%q)\n", s))
		}
		if _, err := jsontext.AppendUnquote(nil, s); err != nil {
			t.Errorf("%q is no string: %v", s, err)
		}
		checkUnescape(t, []byte(s))
	}
	if seeds, err := filepath.Glob("testdata/fuzz/FuzzUnescape/*"); err != nil || len(seeds) < len(escapedStrings()) {
		t.Errorf("FuzzUnescape has %d seeds (%v)", len(seeds), err)
	}
}

func escapedStrings() []string {
	return []string{
		`""`, `"plain"`, `"\""`, `"\\"`, `"\\\\\""`, `"\/\b\f\n\r\t"`, `"a\nb\nc"`, `"\u0000\u001f\u003c\u007f\u0080\u07ff\u0800"`,
		`"\ud7ff\ue000\ufffd\uffff"`, `"\uD7FF\uE000\uFFFD\uFfFf\uaBcD"`, `"\ud83d\ude00"`, `"x\uD83D\uDE00y\udbff\udfffz"`,
		"\"é\\né€\\t😀\\u00e9\"", `"\\u0041"`, `"\\\u0041\\"`,
	}
}

// Every code unit that is no surrogate, in each case of its digits, every pair at
// the ends of the ranges, and whatever comes of putting pieces together.
func TestUnescape(t *testing.T) {
	t.Parallel()
	const lower, upper = "0123456789abcdef", "0123456789ABCDEF"
	for unit := range 1 << 16 {
		if unit>>11 == 0xd800>>11 {
			continue
		}
		for _, digits := range []string{lower, upper} {
			checkUnescape(t, []byte{'"', '\\', 'u', digits[unit>>12], digits[unit>>8&15], digits[unit>>4&15], digits[unit&15], '"'})
		}
	}
	pieces := []string{"a", "plain text", `\n`, `\"`, `\\`, `\/`, `\u0000`, `\u00e9`, `\uFFFF`, `\ud800\udc00`, `\uDBFF\uDFFF`, `\ud83d\ude00`, "é", "😀", "\x7f"}
	rapid.Check(t, func(t *rapid.T) {
		checkUnescape(t, []byte(`"`+strings.Join(rapid.SliceOf(rapid.SampledFrom(pieces)).Draw(t, "pieces"), "")+`"`))
	})
}
