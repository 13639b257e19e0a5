package segments

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// literalByByte is what literal is to find.
func literalByByte(s string, i int) int {
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

// Every byte at every place of a word, in front of every other, and whatever is
// around it.
func TestLiteral(t *testing.T) {
	t.Parallel()
	for at := range 16 {
		for c := range 256 {
			for _, around := range []string{"a", "\x80", "\xff", "\x1f", " ", "!", "#", "[", "]", "\x00", "\""} {
				b := []byte(strings.Repeat(around, 17))
				b[at] = byte(c)
				for from := range 3 {
					if got, want := literal(string(b), from), literalByByte(string(b), from); got != want {
						t.Fatalf("%q from %d: %d, want %d", b, from, got, want)
					}
				}
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes"))
		from := rapid.IntRange(0, len(s)).Draw(t, "from")
		if got, want := literal(s, from), literalByByte(s, from); got != want {
			t.Fatalf("%q from %d: %d, want %d", s, from, got, want)
		}
	})
}

func BenchmarkAppendString(b *testing.B) {
	for name, s := range map[string]string{"digest": strings.Repeat("ab", 32), "line": "x = issues.list(state: open)", "long": strings.Repeat("source text, ", 1<<10)} {
		b.Run(name, func(b *testing.B) {
			var out []byte
			b.SetBytes(int64(len(s)))
			b.ReportAllocs()
			for b.Loop() {
				out = AppendString(out[:0], s)
			}
		})
	}
}
