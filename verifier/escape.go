package verifier

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes text from a file safe to print: what could move a cursor, start
// a new line, change colours, hide a link or reorder a line is written as \n,
// \t, \r and so on, \xNN (below U+0080, or a byte that is not UTF-8), \uNNNN or
// \UNNNNNNNN. That is every
// rune that is not graphic (controls of C0 and C1, format characters such as
// bidirectional overrides and zero-width joiners, private use, unassigned), every
// white space but U+0020, what Unicode lets a font leave out (fillers, variation
// selectors, the combining grapheme joiner), and the Braille pattern without dots. Escaping twice changes nothing; it is meant for
// people and cannot be undone.
func Escape(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, `\x%02x`, text[i])
		} else {
			escapeRune(&b, r)
		}
		i += size
	}
	return b.String()
}

func escapeRune(b *strings.Builder, r rune) {
	if printable(r) {
		b.WriteRune(r)
		return
	}
	quoted := strconv.QuoteRuneToASCII(r)
	b.WriteString(quoted[1 : len(quoted)-1])
}

// printable reports whether the rune acts as nothing but a glyph that is seen.
// Combining marks are graphic and stay.
func printable(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= ' ' && r != 0x7f
	}
	return unicode.IsPrint(r) && r != '\u2800' && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// quoted is text from the file for use inside a sentence: escaped, cut to a
// bounded length, in quotation marks.
func quoted(text string) string {
	return `"` + Escape(clip(text)) + `"`
}

// sentence is a sentence that quotes text from the file, escaped and of bounded
// length.
func sentence(text string) string {
	if len(text) > maxSentence {
		text = strings.ToValidUTF8(text[:maxSentence], "") + "…"
	}
	return Escape(text)
}

// clip cuts a text from the file to the length that enters a report.
func clip(text string) string {
	if len(text) <= maxQuoted {
		return text
	}
	cut := maxQuoted
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
