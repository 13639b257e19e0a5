package engine

import (
	"slices"
	"unicode"
)

// Lower is the lower case that the format's text rules start from: rune by
// rune, and U+0130 becomes i and U+0307.
func Lower(s string) string {
	out := make([]rune, 0, len(s))
	for _, r := range s {
		if r == '\u0130' {
			out = append(out, 'i', '\u0307')
			continue
		}
		out = append(out, unicode.ToLower(r))
	}
	return string(out)
}

// Normalize maps a text to lower-case ASCII letters and digits and drops
// everything else: lower case, umlauts and ß as two letters, compatibility
// decomposition, combining marks dropped. "Müller & Söhne" is "muellersoehne".
func Normalize(s string) string {
	out := make([]byte, 0, len(s))
	for _, r := range s {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			out = append(out, byte(r))
		case 'A' <= r && r <= 'Z':
			out = append(out, byte(r)+'a'-'A')
		case r >= 0x80:
			out = appendNormal(out, r)
		}
	}
	return string(out)
}

func appendNormal(dst []byte, r rune) []byte {
	i, ok := slices.BinarySearchFunc(normalForms[:], r, func(f normalForm, r rune) int {
		switch {
		case f.last < r:
			return -1
		case f.first > r:
			return 1
		}
		return 0
	})
	if !ok {
		return dst
	}
	f := normalForms[i]
	dst = append(dst, f.text...)
	if f.step {
		dst[len(dst)-1] += byte(r - f.first)
	}
	return dst
}

// normalForm maps a range of code points to a text; with step, its one letter
// or digit goes up with the code point.
type normalForm struct {
	first, last rune
	text        string
	step        bool
}

// Tokens splits a text into the words that retrieval counts: Lower, umlauts
// and ß as two letters, runs of ASCII letters and digits, of two at least,
// without stop words; a run of more than three loses one final s.
func Tokens(s string) []string {
	var out []string
	eachToken(s, func(token []byte) { out = append(out, string(token)) })
	return out
}

// eachToken yields the tokens of a text in a buffer that it uses again.
func eachToken(s string, yield func([]byte)) {
	var run []byte
	flush := func() {
		if len(run) >= 2 && !stopWord(string(run)) {
			if len(run) > 3 && run[len(run)-1] == 's' {
				run = run[:len(run)-1]
			}
			yield(run)
		}
		run = run[:0]
	}
	for _, r := range s {
		var split bool
		if run, split = appendFolded(run, r); split {
			flush()
		}
	}
	flush()
}

// appendFolded appends what a character adds to the run of letters and digits
// that it stands in, and says whether it ends that run.
func appendFolded(run []byte, r rune) ([]byte, bool) {
	lower := unicode.ToLower(r)
	switch {
	case 'a' <= lower && lower <= 'z', '0' <= lower && lower <= '9':
		return append(run, byte(lower)), r == '\u0130' // whose second half is a combining dot
	case lower == 'ä':
		return append(run, "ae"...), false
	case lower == 'ö':
		return append(run, "oe"...), false
	case lower == 'ü':
		return append(run, "ue"...), false
	case lower == 'ß':
		return append(run, "ss"...), false
	}
	return run, true
}

func stopWord(s string) bool {
	switch s {
	case "a", "an", "and", "are", "as", "at", "be", "by", "do", "does", "for", "from", "how", "in", "is", "it", "its",
		"of", "on", "or", "that", "the", "their", "this", "to", "was", "what", "when", "where", "which", "who", "why", "with":
		return true
	}
	return false
}
