package events

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// appendUnescaped appends what a quoted string with escapes stands for. What lies
// between escapes is copied in one piece.
//
// It is safe because the text is proven before: quoted is one strict JSON string, so
// escapes are whole and surrogates stand in pairs. Those are left to jsontext, against
// which a test and a fuzz target hold all else.
func appendUnescaped(dst, quoted []byte) []byte {
	rest := quoted[1 : len(quoted)-1]
	for {
		at := bytes.IndexByte(rest, '\\')
		if at < 0 {
			return append(dst, rest...)
		}
		dst = append(dst, rest[:at]...)
		rest = rest[at:]
		if c := rest[1]; c != 'u' {
			dst = append(dst, escapes[c])
			rest = rest[2:]
			continue
		}
		var unit [2]byte
		_, _ = hex.Decode(unit[:], rest[2:6]) // valid: checked before
		if r := rune(binary.BigEndian.Uint16(unit[:])); utf8.ValidRune(r) {
			dst = utf8.AppendRune(dst, r)
			rest = rest[6:]
			continue
		}
		dst, _ = jsontext.AppendUnquote(dst, []byte(`"`+string(rest[:12])+`"`)) // valid: checked before
		rest = rest[12:]
	}
}

var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
