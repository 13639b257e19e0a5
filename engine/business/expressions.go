package business

import (
	"strings"
	"unicode/utf8"

	"github.com/chaind/chaind/engine/text"
)

// renewalDate finds the day and month after the first "renews": the first
// "on D Month" with one or two digits, a capital and small letters; "": none.
// The word before "renews" may run into it, as in "auto-renews".
func renewalDate(s string) string {
	from := 0
	for {
		i := strings.Index(s[from:], "renews")
		if i < 0 {
			return ""
		}
		from += i + len("renews")
		if text.Ends(s, from) {
			break
		}
	}
	for {
		i := strings.Index(s[from:], "on ")
		if i < 0 {
			return ""
		}
		from += i
		date := s[from+len("on "):]
		if n := dayMonth(date); n > 0 && text.Starts(s, from) {
			return date[:n]
		}
		from++
	}
}

// dayMonth is the length of the date that s begins with; 0: it does not.
func dayMonth(s string) int {
	day := digits(s, 2)
	rest := s[day:]
	if day == 0 || len(rest) < 3 || rest[0] != ' ' || !text.IsUpper(rest[1:], 1) {
		return 0
	}
	month := text.Run(rest[2:], func(r rune) bool { return 'a' <= r && r <= 'z' })
	if month == 0 {
		return 0
	}
	return day + 2 + month
}

// digits is the length of the digits, at most limit of them, that s begins with.
func digits(s string, limit int) int {
	n := 0
	return text.Run(s, func(r rune) bool {
		n++
		return n <= limit && text.IsDigit(r)
	})
}

// amount finds the first amount of money: three capitals, a space, digits and
// commas, a point and two digits, with boundaries around.
func amount(s string) (currency, number string) {
	for i := 0; i+4 <= len(s); i++ {
		if !text.IsUpper(s[i:], 3) || s[i+3] != ' ' || !text.Starts(s, i) {
			continue
		}
		number := s[i+4:]
		whole := text.Run(number, func(r rune) bool { return r == ',' || text.IsDigit(r) })
		if whole == 0 || !strings.HasPrefix(number[whole:], ".") {
			continue
		}
		end := whole + 1 + digits(number[whole+1:], 2)
		if utf8.RuneCountInString(number[whole+1:end]) == 2 && text.Ends(number, end) {
			return s[i : i+3], number[:end]
		}
	}
	return "", ""
}

// refusedPair finds the first two currencies of a refusal to add up.
func refusedPair(s string) (first, second string) {
	for {
		_, after, found := strings.Cut(s, "Refused to sum across ")
		if !found {
			return "", ""
		}
		n := text.Run(after, text.IsWord)
		if rest, ok := strings.CutPrefix(after[n:], " and "); ok && n > 0 {
			if m := text.Run(rest, text.IsWord); m > 0 {
				return after[:n], rest[:m]
			}
		}
		s = after
	}
}
