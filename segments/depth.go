package segments

import (
	"bytes"
	"fmt"
)

// maxNested bounds what jsontext gets to see. It calls itself for each level of a
// value, up to ten thousand, and where a stack ends at a fixed place, as in a
// browser, that ends the program. Below, the cursor refuses what is nested deeper
// than MaxDepth and says where.
const maxNested = 512 // four times MaxDepth

// nesting follows a JSON text, given in pieces, as far as its depth goes. Of a
// text that is no JSON it may be wrong, but never below what a decoder enters
// before it sees that.
type nesting struct {
	depth           int
	quoted, escaped bool // in a string; behind a reverse solidus in it
}

// tooDeep returns where in the next piece the bracket is that opens one level too
// many, or -1.
func (n *nesting) tooDeep(piece []byte) int {
	for i := 0; i < len(piece); {
		if n.quoted {
			i += n.string(piece[i:])
			continue
		}
		switch piece[i] {
		case '"':
			n.quoted = true
		case '[', '{':
			if n.depth++; n.depth > maxNested {
				return i
			}
		case ']', '}':
			n.depth--
		}
		i++
	}
	return -1
}

// string passes what of the piece belongs to a string, and returns its length.
func (n *nesting) string(piece []byte) int {
	if n.escaped {
		n.escaped = false
		return 1
	}
	end := bytes.IndexByte(piece, '"')
	if end < 0 {
		end = len(piece)
	}
	if at := bytes.IndexByte(piece[:end], '\\'); at >= 0 {
		n.escaped = true
		return at + 1
	}
	n.quoted = end == len(piece)
	return min(end+1, len(piece))
}

// Shallow returns as much of a JSON text as may be given to a decoder that calls
// itself for each level: all of it, unless it is nested far deeper than
// [MaxDepth].
func Shallow(text []byte) []byte {
	if bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) <= maxNested {
		return text
	}
	var n nesting
	if at := n.tooDeep(text); at >= 0 {
		return text[:at]
	}
	return text
}

// deep is the error for a bracket at an offset that nests too deep.
func deep(path string, offset int64) *DecodeError {
	return &DecodeError{path, offset, fmt.Sprintf("nested deeper than %d", MaxDepth)}
}
