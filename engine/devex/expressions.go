package devex

import (
	"strings"

	"github.com/chaind/chaind/engine/text"
)

// findRun finds the first name of a run: R- and three to five digits, or a
// number of eight digits or more; "": there is none.
func findRun(s string) string {
	return firstWord(s, func(rest string) int {
		if n := tagged(rest, "R-"); n > 0 {
			return n
		}
		n, count := number(rest)
		if count < 8 {
			return 0
		}
		return n
	})
}

// findPR finds the first name of a pull request: PR- and three to five digits.
func findPR(s string) string {
	return firstWord(s, func(rest string) int { return tagged(rest, "PR-") })
}

// firstWord finds the first place with a boundary before it where match gives a
// length, and a boundary after that.
func firstWord(s string, match func(rest string) int) string {
	for i := range s {
		if !text.Starts(s, i) {
			continue
		}
		if n := match(s[i:]); n > 0 && text.Ends(s[i:], n) {
			return s[i : i+n]
		}
	}
	return ""
}

// tagged is the length of a tag and three to five digits at the start of s.
func tagged(s, tag string) int {
	rest, ok := strings.CutPrefix(s, tag)
	n, count := number(rest)
	if !ok || count < 3 || count > 5 {
		return 0
	}
	return len(tag) + n
}

// number is the length, in bytes and in digits, of the digits that s starts with.
func number(s string) (size, count int) {
	size = text.Run(s, func(r rune) bool {
		if text.IsDigit(r) {
			count++
			return true
		}
		return false
	})
	return size, count
}

// errorMark and actionsMark begin the error lines of the two kinds of logs.
const (
	errorMark   = "ERROR "
	actionsMark = "##[error]"
)

// namedErrors yields what follows "ERROR x: " in the lines of a log, one in a
// line at most, where x has no space.
func namedErrors(log string) []string {
	var out []string
	for line := range strings.SplitSeq(log, "\n") {
		if message := namedError(line); message != "" {
			out = append(out, message)
		}
	}
	return out
}

func namedError(line string) string {
	for {
		_, after, found := strings.Cut(line, errorMark)
		if !found {
			return ""
		}
		n := text.Run(after, func(r rune) bool { return !text.IsSpace(r) })
		message, spaced := strings.CutPrefix(after[n:], " ")
		if spaced && message != "" && n >= 2 && after[n-1] == ':' {
			return message
		}
		line = after
	}
}

// actionsErrors yields what follows "##[error]" in the lines of a log, without
// the space around it; "" when that is all there is.
func actionsErrors(log string) []string {
	var out []string
	for line := range strings.SplitSeq(log, "\n") {
		if _, message, found := strings.Cut(line, actionsMark); found && message != "" {
			out = append(out, text.Trim(message))
		}
	}
	return out
}

// isTrailer says that an error line only gives an exit code.
func isTrailer(line string) bool {
	code, ok := strings.CutPrefix(line, "Process completed with exit code ")
	if !ok {
		return false
	}
	code = strings.TrimPrefix(code, "-")
	n, _ := number(code)
	return n > 0 && (code[n:] == "" || code[n:] == ".")
}
