package bundle

import (
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// escapeOf gives the letter of the short escapes; zero: there is none.
func escapeOf(c byte) byte {
	switch c {
	case '"', '\\':
		return c
	case '\b':
		return 'b'
	case '\t':
		return 't'
	case '\n':
		return 'n'
	case '\f':
		return 'f'
	case '\r':
		return 'r'
	}
	return 0
}

// AppendString appends the canonical form of a string, quotes included. It
// must be valid UTF-8.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	plain := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[plain:i]...)
		plain = i + 1
		if short := escapeOf(c); short != 0 {
			dst = append(dst, '\\', short)
		} else {
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	dst = append(dst, s[plain:]...)
	return append(dst, '"')
}

// str reads the string at the current position. Its kind is String or escaped.
func (p *parser) str() (kind Kind, canonical bool, err error) {
	start := p.pos
	p.pos++
	kind, canonical = String, true
	for p.plain() {
		switch c := p.text[p.pos]; c {
		case '"':
			p.pos++
			return kind, canonical, nil
		case '\\':
			ok, err := p.escape()
			if err != nil {
				return Absent, false, err
			}
			kind, canonical = escaped, canonical && ok
		default:
			return Absent, false, p.fault(ControlChar, "control character U+%04X inside a string", c)
		}
	}
	p.pos = start
	return Absent, false, p.fault(Truncated, "the text ends inside this string")
}

// plain moves over characters that stand for themselves, and reports whether
// there is another.
func (p *parser) plain() bool {
	i := p.pos
	for rest := p.text[i:]; len(rest) >= 8; rest = rest[8:] {
		if found := special(eight(rest)); found != 0 {
			p.pos = i + bits.TrailingZeros64(found)/8
			return true
		}
		i += 8
	}
	for i < len(p.text) && p.text[i] >= 0x20 && p.text[i] != '"' && p.text[i] != '\\' {
		i++
	}
	p.pos = i
	return i < len(p.text)
}

// eight takes the first eight bytes of a text as one word, the first lowest.
func eight(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// special has the top bit of the first byte of w that is a control character, a
// quote or a backslash as its lowest bit, and is 0 when there is none: so has each
// of the three terms, whose borrows reach only bytes after such a one.
func special(w uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	quote, backslash := w^ones*'"', w^ones*'\\'
	return ((w-ones*0x20)&^w | (quote-ones)&^quote | (backslash-ones)&^backslash) & tops
}

// escape reads an escape sequence and reports whether its canonical form is
// this very sequence.
func (p *parser) escape() (bool, error) {
	rest := p.text[p.pos:]
	if len(rest) < 2 {
		return false, p.fault(Truncated, "the text ends inside an escape")
	}
	switch rest[1] {
	case '"', '\\', 'b', 't', 'n', 'f', 'r':
		p.pos += 2
		return true, nil
	case '/':
		p.pos += 2
		return false, nil
	case 'u':
		return p.unicodeEscape(rest)
	}
	return false, p.fault(Syntax, "unknown escape \\%c", rest[1])
}

func (p *parser) unicodeEscape(rest string) (bool, error) {
	r, ok := hex4(rest[2:])
	if !ok {
		return false, p.fault(Syntax, "want four hex digits after \\u")
	}
	if !utf16.IsSurrogate(r) {
		canonical := r < 0x20 && escapeOf(byte(r)) == 0 && strings.ToLower(rest[:6]) == rest[:6]
		p.pos += 6
		return canonical, nil
	}
	if len(rest) >= 12 && rest[6] == '\\' && rest[7] == 'u' {
		low, ok := hex4(rest[8:])
		if ok && utf16.DecodeRune(r, low) != utf8.RuneError {
			p.pos += 12
			return false, nil
		}
	}
	return false, p.fault(LoneSurrogate, "the escape %s is half a character", rest[:6])
}

// hex4 reads four hex digits of either case.
func hex4(s string) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	var r rune
	for i := range 4 {
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// unquote gives the characters of a string literal that the parser accepted.
func unquote(raw string) string {
	s := raw[1 : len(raw)-1]
	i := strings.IndexByte(s, '\\')
	if i < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i >= 0 {
		out = append(out, s[:i]...)
		n := 0
		out, n = appendEscape(out, s[i:])
		s = s[i+n:]
		i = strings.IndexByte(s, '\\')
	}
	return string(append(out, s...))
}

// appendEscape appends the character of the escape at the start of s, and
// returns the length of the escape.
func appendEscape(dst []byte, s string) ([]byte, int) {
	switch s[1] {
	case 'u':
		r, _ := hex4(s[2:])
		if utf16.IsSurrogate(r) {
			low, _ := hex4(s[8:])
			return utf8.AppendRune(dst, utf16.DecodeRune(r, low)), 12
		}
		return utf8.AppendRune(dst, r), 6
	case 'b':
		return append(dst, '\b'), 2
	case 't':
		return append(dst, '\t'), 2
	case 'n':
		return append(dst, '\n'), 2
	case 'f':
		return append(dst, '\f'), 2
	case 'r':
		return append(dst, '\r'), 2
	}
	return append(dst, s[1]), 2
}
