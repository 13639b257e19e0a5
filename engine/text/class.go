package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsWord says that r is a word character.
func IsWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }

// IsDigit says that r is a decimal digit of some script.
func IsDigit(r rune) bool { return unicode.Is(unicode.Nd, r) }

// IsSpace says that r is white space.
func IsSpace(r rune) bool { return unicode.IsSpace(r) || '\x1c' <= r && r <= '\x1f' }

// Trim drops white space at both ends.
func Trim(s string) string { return strings.TrimFunc(s, IsSpace) }

// Run is the length in bytes of the longest prefix of s whose characters are
// all of a class.
func Run(s string, class func(rune) bool) int {
	end := strings.IndexFunc(s, func(r rune) bool { return !class(r) })
	if end < 0 {
		return len(s)
	}
	return end
}

// Starts says that no word character stands before position i.
func Starts(s string, i int) bool {
	r, size := utf8.DecodeLastRuneInString(s[:i])
	return size == 0 || !IsWord(r)
}

// Ends says that no word character stands at position i.
func Ends(s string, i int) bool {
	r, size := utf8.DecodeRuneInString(s[i:])
	return size == 0 || !IsWord(r)
}

// HasWord says that a word stands in s with a boundary on both sides. The word
// is not empty.
func HasWord(s, word string) bool {
	for i := 0; ; i++ {
		at := strings.Index(s[i:], word)
		if at < 0 {
			return false
		}
		i += at
		if Starts(s, i) && Ends(s, i+len(word)) {
			return true
		}
	}
}

// ASCIIDigits replaces every decimal digit by the ASCII digit of its value.
func ASCIIDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf || !IsDigit(r) {
			return r
		}
		return '0' + digitValue(r)
	}, s)
}

// digitValue relies on the digits of every script being ten neighbours that
// start a range of the table, or a whole number of tens after such a start.
func digitValue(r rune) rune {
	for _, t := range unicode.Nd.R16 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return (r - rune(t.Lo)) % 10
		}
	}
	for _, t := range unicode.Nd.R32 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return (r - rune(t.Lo)) % 10
		}
	}
	return 0
}

// IsUpper says that s begins with n ASCII capitals.
func IsUpper(s string, n int) bool {
	if len(s) < n {
		return false
	}
	for i := range n {
		if s[i] < 'A' || s[i] > 'Z' {
			return false
		}
	}
	return true
}

// Capitals yields the words of exactly three ASCII capitals, left to right, the
// way an expression of three capitals between boundaries finds them: position
// after position, three on after a hit.
func Capitals(s string) []string {
	var out []string
	for i := 0; i+3 <= len(s); i++ {
		if IsUpper(s[i:], 3) && Starts(s, i) && Ends(s, i+3) {
			out = append(out, s[i:i+3])
			i += 2
		}
	}
	return out
}
