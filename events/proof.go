package events

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// proofDepth is how deep a text may nest to be proven: one bit a level.
const proofDepth = 64

// prover is the quick way past the general reader: it says that a text is one
// strict JSON object within the limits on depth and members, names standing
// twice aside. It is safe because it only ever answers for that reader in one
// direction: no means "not told here" (a fault, a surrogate escape, deep
// nesting, many members), and the general reader, which words all faults, then
// decides. A fuzz target holds every yes against it.
//
// A prover stands before a value or, with behind set, behind one.
type prover struct {
	text                   []byte
	pos                    int
	depth                  int    // containers open
	objects                uint64 // bit 0: the innermost container is an object, and so on outwards
	depthLeft, membersLeft int
	behind                 bool

	marks []int // of the strings so far, in the order of the text: 2 × the end, + 1 with escapes
}

func (p *prover) reset(text []byte) { *p = prover{text: text, marks: p.marks[:0]} }

func (p *prover) prove(lim Limits) bool {
	p.depthLeft, p.membersLeft = min(lim.MaxDepth, proofDepth), lim.MaxMembers
	p.space()
	if p.at() != '{' || !p.open() {
		return false
	}
	for p.depth > 0 {
		if !p.step() {
			return false
		}
	}
	p.space()
	return p.pos == len(p.text)
}

// at is the byte at pos; 0, which no token begins with, at the end.
func (p *prover) at() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

func (p *prover) space() {
	for p.pos < len(p.text) {
		switch p.text[p.pos] {
		case ' ', '\n', '\r', '\t':
			p.pos++
		default:
			return
		}
	}
}

// open enters the container at pos and whatever stands first in it.
func (p *prover) open() bool {
	if p.depthLeft == 0 {
		return false
	}
	p.depthLeft--
	p.depth++
	p.objects <<= 1
	closing := byte(']')
	if p.text[p.pos] == '{' {
		p.objects |= 1
		closing = '}'
	}
	p.pos++
	p.space()
	if p.at() == closing {
		p.close()
		return true
	}
	p.behind = false
	return p.objects&1 == 0 || p.name()
}

func (p *prover) close() {
	p.pos++
	p.depthLeft++
	p.depth--
	p.objects >>= 1
	p.behind = true
}

// step reads one value, or what stands behind one.
func (p *prover) step() bool {
	p.space()
	if !p.behind {
		return p.value()
	}
	switch c := p.at(); {
	case c == ',':
		p.pos++
		p.space()
		p.behind = false
		return p.objects&1 == 0 || p.name()
	case c == '}' && p.objects&1 == 1, c == ']' && p.objects&1 == 0:
		p.close()
		return true
	}
	return false
}

func (p *prover) value() bool {
	p.behind = true
	switch c := p.at(); {
	case c == '"':
		return p.string()
	case c == '{' || c == '[':
		return p.open()
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	}
	return p.literal("true") || p.literal("false") || p.literal("null")
}

func (p *prover) literal(word string) bool {
	if len(p.text)-p.pos < len(word) || string(p.text[p.pos:p.pos+len(word)]) != word {
		return false
	}
	p.pos += len(word)
	return true
}

// name reads a name and its colon.
func (p *prover) name() bool {
	if p.membersLeft == 0 || p.at() != '"' || !p.string() {
		return false
	}
	p.membersLeft--
	p.space()
	if p.at() != ':' {
		return false
	}
	p.pos++
	return true
}

// number reads a number of RFC 8259, section 6.
func (p *prover) number() bool {
	if p.at() == '-' {
		p.pos++
	}
	if p.at() == '0' {
		p.pos++
	} else if !p.digits() {
		return false
	}
	if p.at() == '.' {
		p.pos++
		if !p.digits() {
			return false
		}
	}
	if p.at()|0x20 != 'e' {
		return true
	}
	p.pos++
	if c := p.at(); c == '+' || c == '-' {
		p.pos++
	}
	return p.digits()
}

// digits reads one or more.
func (p *prover) digits() bool {
	start := p.pos
	for c := p.at(); '0' <= c && c <= '9'; c = p.at() {
		p.pos++
	}
	return p.pos > start
}

// string reads the string at pos.
func (p *prover) string() bool {
	p.pos++
	escaped := 0
	for {
		p.pos = plainEnd(p.text, p.pos)
		switch c := p.at(); {
		case c == '"':
			p.pos++
			p.marks = append(p.marks, 2*p.pos+escaped)
			return true
		case c == '\\':
			escaped = 1
			if !p.escape() {
				return false
			}
		case c < ' ': // the end of the text, too
			return false
		default:
			r, size := utf8.DecodeRune(p.text[p.pos:])
			if r == utf8.RuneError && size == 1 {
				return false
			}
			p.pos += size
		}
	}
}

// plainEnd is the place, from pos on, of the first byte that is a quote, a
// backslash, a control character or not ASCII, or the length of the text. Eight
// bytes are looked at together: a borrow can only mark a byte behind the first
// one that counts.
func plainEnd(text []byte, pos int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; len(text)-pos >= 8; pos += 8 {
		word := binary.LittleEndian.Uint64(text[pos : pos+8])
		quotes, slashes := word^(ones*'"'), word^(ones*'\\')
		special := ((quotes-ones)&^quotes | (slashes-ones)&^slashes | (word - ones*' ') | word) & tops
		if special != 0 {
			return pos + bits.TrailingZeros64(special)/8
		}
	}
	for ; pos < len(text); pos++ {
		if c := text[pos]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			break
		}
	}
	return pos
}

// escape reads an escape; one of half a surrogate pair is left to the general
// reader.
func (p *prover) escape() bool {
	p.pos++
	switch p.at() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		p.pos++
		return true
	case 'u':
	default:
		return false
	}
	if len(p.text)-p.pos < 5 {
		return false
	}
	digits := p.text[p.pos+1 : p.pos+5]
	for _, c := range digits {
		if !isHexByte(c) && (c < 'A' || c > 'F') {
			return false
		}
	}
	if digits[0]|0x20 == 'd' && digits[1] >= '8' {
		return false
	}
	p.pos += 5
	return true
}
