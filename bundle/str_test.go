package bundle

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestStringsEndWhereTheyEnd reads strings with every byte at every place among
// others, whose length is any multiple of what is looked at at once, and none.
func TestStringsEndWhereTheyEnd(t *testing.T) {
	t.Parallel()
	for before := range 20 {
		for c := range 0x80 {
			content := strings.Repeat("a", before) + string(rune(c))
			for _, after := range []string{"", "é", "bbbbbbb\x7f", strings.Repeat("\u0080", 9)} {
				p := parser{text: `"` + content + after + `"`}
				special := c < 0x20 || c == '"' || c == '\\'
				p.pos++
				if more := p.plain(); !more || special && p.pos != 1+before || !special && p.pos != len(p.text)-1 {
					t.Fatalf("character %#02x behind %d others, before %q: read up to %d", c, before, after, p.pos)
				}
			}
		}
	}
}

// TestTextsOfStrings: members and strings are those that were written, with or
// without escapes.
func TestTextsOfStrings(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfNDistinct(rapid.StringN(0, 40, 80), 1, 12, rapid.ID).Draw(t, "words")
		var text []byte
		for i, word := range words {
			text = append(text, separator(i, "{", ",")...)
			text = append(AppendString(text, word), ':')
			text = AppendString(text, word)
		}
		v, err := ParseValue(string(text) + "}")
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range words {
			if got := v.Get(word); got.Kind() != String || got.Text() != word {
				t.Errorf("member %q is %s %q", word, got.Kind(), got.Text())
			}
		}
		if v.Len() != len(words) {
			t.Errorf("%d members, want %d", v.Len(), len(words))
		}
	})
}
