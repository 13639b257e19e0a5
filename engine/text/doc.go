// Package text holds the text rules that Tessera's domains are written in:
// character classes, word boundaries and the longest common run. They are
// those of Python 3 over Unicode text, which Go's regexp and unicode packages
// differ from in small ways, so whatever a verdict depends on is scanned here
// by hand.
//
//   - A word character has a general category of L or N, or is U+005F.
//     Combining marks are none.
//   - A digit has category Nd, whatever its script.
//   - Space is U+0009-000D, U+001C-0020, U+0085, U+00A0, U+1680, U+2000-200A,
//     U+2028, U+2029, U+202F, U+205F and U+3000. unicode.IsSpace lacks
//     U+001C-001F.
//   - A word boundary stands between a word character and anything else, the
//     ends of the text included.
//
// Texts are valid UTF-8, and positions are byte offsets of characters.
package text
