package events

import (
	"bytes"
	"math"
	"strconv"
)

// extent is the deepest nesting and the fullest object of a text, told from
// its punctuation alone; for a text that is not JSON it may be wrong.
type extent struct{ depth, members int }

func measure(text []byte) extent {
	var most extent
	var colons []int
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = skipString(text, i)
		case '{', '[':
			colons = append(colons, 0)
			most.depth = max(most.depth, len(colons))
		case '}', ']':
			if len(colons) > 0 {
				colons = colons[:len(colons)-1]
			}
		case ':':
			if n := len(colons); n > 0 {
				colons[n-1]++
				most.members = max(most.members, colons[n-1])
			}
		}
	}
	return most
}

// skipString gives the index of the quote that closes the string at i, or the
// length of the text.
func skipString(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return len(text)
}

// eachNumber hands the number lexemes of a valid JSON text to visit until it
// returns false.
func eachNumber(text []byte, visit func(lexeme []byte) bool) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			i = skipString(text, i)
		case c == '-' || '0' <= c && c <= '9':
			end := i + 1
			for end < len(text) && isNumberByte(text[end]) {
				end++
			}
			if !visit(text[i:end]) {
				return
			}
			i = end - 1
		}
	}
}

func isNumberByte(c byte) bool {
	return '0' <= c && c <= '9' || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-'
}

// hasUnsafeInteger reports an integer lexeme outside ±(2^53-1) in a valid text.
func hasUnsafeInteger(text []byte) bool {
	found := false
	eachNumber(text, func(lexeme []byte) bool {
		found = unsafeInteger(lexeme)
		return !found
	})
	return found
}

// unsafeInteger looks at the spelling: a lexeme with a fraction or an exponent
// is not an integer.
func unsafeInteger(lexeme []byte) bool {
	digits := bytes.TrimPrefix(lexeme, []byte{'-'})
	if len(digits) < 16 || bytes.ContainsAny(digits, ".eE") {
		return false
	}
	n, err := strconv.ParseUint(string(digits), 10, 64)
	return err != nil || n > maxSafeInteger
}

// outOfRange reports a number of a valid text that binary64 cannot hold: it
// overflows, or is not zero and reads as zero, so that two different texts
// would share one canonical form.
func outOfRange(text []byte) bool {
	found := false
	eachNumber(text, func(lexeme []byte) bool {
		found = !finite(lexeme)
		return !found
	})
	return found
}

func finite(lexeme []byte) bool {
	exponent := bytes.IndexAny(lexeme, "eE")
	if exponent < 0 && len(lexeme) < minOverflowDigits {
		return true
	}
	f, err := strconv.ParseFloat(string(lexeme), 64)
	if err != nil || math.IsInf(f, 0) {
		return false
	}
	mantissa := lexeme
	if exponent >= 0 {
		mantissa = lexeme[:exponent]
	}
	return f != 0 || !bytes.ContainsAny(mantissa, "123456789")
}
