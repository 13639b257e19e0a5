package verifier

import (
	"crypto/ed25519"
	"slices"
	"strings"

	"github.com/chaind/chaind/segments"
)

func sign7(message []byte) []byte { return ed25519.Sign(seed7, message) }

// print writes a parsed value back.
func (v naiveValue) print() string {
	parts := make([]string, len(v.items))
	for i, item := range v.items {
		parts[i] = item.print()
		if v.kind == 'o' {
			parts[i] = string(segments.AppendString(nil, v.names[i])) + ":" + parts[i]
		}
	}
	switch v.kind {
	case 'o':
		return "{" + strings.Join(parts, ",") + "}"
	case 'a':
		return "[" + strings.Join(parts, ",") + "]"
	case 's':
		return string(segments.AppendString(nil, v.text))
	case '0':
		return "null"
	}
	return v.text
}

// mutants gives the text with each member or item, at any depth, replaced by
// each of the values, and left out.
func mutants(v naiveValue, values []string) []string {
	var out []string
	for i, item := range v.items {
		for _, value := range values {
			out = append(out, v.with(i, naiveValue{kind: 'n', text: value}).print())
		}
		without := v
		without.items = slices.Delete(slices.Clone(v.items), i, i+1)
		if v.kind == 'o' {
			without.names = slices.Delete(slices.Clone(v.names), i, i+1)
		}
		out = append(out, without.print())
		for _, inner := range mutants(item, values) {
			out = append(out, v.with(i, naiveValue{kind: 'n', text: inner}).print())
		}
	}
	return out
}

func (v naiveValue) with(i int, item naiveValue) naiveValue {
	v.items = slices.Clone(v.items)
	v.items[i] = item
	return v
}
