package events

import (
	"slices"
	"strconv"
	"strings"

	"github.com/chaind/chaind/segments"
)

// parser reads the values of one payload. What is wrong with names and values
// is noted in the verdict and reading goes on, because a later fault may rank
// lower.
type parser struct {
	cursor
	scratch []byte           // for a string being taken out of its escapes
	strung  *strings.Builder // all strings, one behind the other, within the room that there is
	verdict verdict
	kind    kindFields
}

func (p *parser) reset(text []byte, marks []int) {
	p.cursor.reset(text, marks)
	p.verdict, p.kind = verdict{rank: rankNone}, kindFields{}
}

// object steps into an object. Of any other value it notes that it has the
// wrong shape, and skips it.
func (p *parser) object(member string) bool {
	if p.peek() == '{' {
		p.enter()
		return true
	}
	p.misshapen(p.value(), member, "an object")
	return false
}

func (p *parser) unknown(member string) {
	name := quoted(p.name)
	raw := p.value()
	p.checkIntegers(raw, member)
	p.verdict.add(rankUnknown, "unknown name "+name+" in "+member)
}

// misshapen notes a value of the wrong type or outside its values.
func (p *parser) misshapen(raw []byte, member, want string) {
	p.checkIntegers(raw, member)
	p.verdict.add(rankShape, member+" is not "+want)
}

func (p *parser) checkIntegers(raw []byte, member string) {
	if hasUnsafeInteger(raw) {
		p.verdict.add(rankInteger, "an integer outside 2^53-1 in "+member)
	}
}

// string reads a string value.
func (p *parser) string(member string) (string, bool) {
	raw := p.value()
	if raw[0] != '"' {
		p.misshapen(raw, member, "a string")
		return "", false
	}
	return p.unquote(raw), true
}

// unquote gives the string that was read last. All strings of an event share one
// piece of memory, with those of other events when it is small.
func (p *parser) unquote(raw []byte) string {
	at := p.strung.Len()
	p.strung.Write(p.unescaped(raw))
	return p.strung.String()[at:]
}

// unescaped gives the bytes of the string that was read last, until the next one.
func (p *parser) unescaped(raw []byte) []byte {
	if !p.escaped {
		return raw[1 : len(raw)-1]
	}
	p.scratch = appendUnescaped(p.scratch[:0], raw)
	return p.scratch
}

// strings reads an array of strings into room, which is empty and not nil.
func (p *parser) strings(room []string, member string) []string {
	if p.peek() != '[' {
		p.misshapen(p.value(), member, "an array")
		return nil
	}
	list := room
	for p.pos++; p.item(); {
		s, _ := p.string(member)
		list = append(list, s)
	}
	return slices.Clip(list)
}

// integer reads digits up to limit, which is at most 2^53-1.
func (p *parser) integer(member string, limit uint64) (uint64, bool) {
	raw := p.value()
	n, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil || n > limit {
		p.misshapen(raw, member, "an integer from 0 to "+strconv.FormatUint(limit, 10))
		return 0, false
	}
	return n, true
}

// count reads an integer into a fresh pointer; nil when it is none.
func (p *parser) count(member string) *uint64 { return p.countInto(new(uint64), member) }

// countInto reads an integer into dst and returns it; nil when it is none.
func (p *parser) countInto(dst *uint64, member string) *uint64 {
	n, ok := p.integer(member, maxSafeInteger)
	if !ok {
		return nil
	}
	*dst = n
	return dst
}

func (p *parser) digest(member string) (segments.Digest, bool) {
	raw := p.value()
	if raw[0] == '"' {
		if d, ok := parseDigest(p.unescaped(raw)); ok {
			return d, true
		}
	}
	p.misshapen(raw, member, "64 lower-case hexadecimal digits")
	return segments.Digest{}, false
}

// parseDigest reads 64 lower-case digits in one pass, as most steps need it.
func parseDigest(s []byte) (d segments.Digest, ok bool) {
	if len(s) != 2*len(d) {
		return segments.Digest{}, false
	}
	wrong := byte(0)
	for i := range d {
		high, low := nibbles[s[2*i]]-1, nibbles[s[2*i+1]]-1
		d[i] = high<<4 | low&15
		wrong |= high | low
	}
	if wrong > 15 {
		return segments.Digest{}, false
	}
	return d, true
}

// nibbles has the value of each lower-case hexadecimal digit, and one more; 0 stands
// for bytes that are none.
var nibbles = [256]byte{
	'0': 1, '1': 2, '2': 3, '3': 4, '4': 5, '5': 6, '6': 7, '7': 8, '8': 9, '9': 10,
	'a': 11, 'b': 12, 'c': 13, 'd': 14, 'e': 15, 'f': 16,
}

func (p *parser) bool(member string) (value, ok bool) {
	raw := p.value()
	if raw[0] != 't' && raw[0] != 'f' {
		p.misshapen(raw, member, "true or false")
		return false, false
	}
	return raw[0] == 't', true
}

// pointer gives v an address of its own, so that nothing points into the
// parser.
func pointer[T any](v T) *T { return &v }
