package segments

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// DecodeError says why a JSON text is not a value of the evidence format.
type DecodeError struct {
	Path   string // JSON pointer to the place, "" for the whole text
	Offset int64  // of the place in the input, in bytes
	Reason string
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("decode %s at offset %d: %s", cmp.Or(e.Path, "text"), e.Offset, e.Reason)
}

// checkText makes jsontext prove that text is one strict RFC 8259 value
// (duplicate names are the cursor's business) and returns it without the
// whitespace around it.
func checkText(text []byte) (value []byte, offset int64, err error) {
	if shallow := Shallow(text); len(shallow) < len(text) {
		return nil, 0, deep("", int64(len(shallow)))
	}
	if jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true)) {
		value = bytes.TrimLeft(text, " \n\r\t")
		return bytes.TrimRight(value, " \n\r\t"), int64(len(text) - len(value)), nil
	}
	// What is wrong, and where, takes a decoder of its own.
	dec := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))
	value, err = dec.ReadValue()
	if err != nil {
		return nil, 0, syntaxError(err, dec.InputOffset())
	}
	offset = dec.InputOffset() - int64(len(value))
	if _, err = dec.ReadToken(); err != io.EOF {
		return nil, 0, &DecodeError{Offset: offset + int64(len(value)), Reason: "more follows after the JSON value"}
	}
	return value, offset, nil
}

func syntaxError(err error, offset int64) *DecodeError {
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		return &DecodeError{Offset: syntactic.ByteOffset, Reason: "not strict JSON: " + syntactic.Err.Error()}
	}
	return &DecodeError{Offset: offset, Reason: "not strict JSON: the text ends too early"}
}

// cursor walks over JSON text that jsontext has found valid, which is why its
// moves need no error checks of their own.
type cursor struct {
	text    []byte
	pos     int
	base    int64  // offset of text in the input
	depth   int    // objects and arrays open at pos
	path    []part // names and indexes that lead to pos
	found   *deviations
	claimed int    // names in the sets of the objects that are open
	plain   []byte // the last string with escapes, without them

	keep string // text again, for decoded strings to share; "": each is a copy
	room *room  // memory to decode a segment into; nil: new one
}

// part is one reference token of a path: a name, or an index when at >= 0.
type part struct {
	name string
	at   int64
}

func (c *cursor) push(name string)   { c.path = append(c.path, part{name, -1}) }
func (c *cursor) pushIndex(at int64) { c.path = append(c.path, part{"", at}) }
func (c *cursor) pop()               { c.path = c.path[:len(c.path)-1] }

func (c *cursor) pointer() string {
	var b strings.Builder
	for _, p := range c.path {
		b.WriteByte('/')
		if p.at >= 0 {
			b.WriteString(strconv.FormatInt(p.at, 10))
			continue
		}
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(shorten(p.name)))
	}
	return b.String()
}

func shorten(name string) string {
	if len(name) <= maxPathName {
		return name
	}
	n := maxPathName
	for n > 0 && !utf8.RuneStart(name[n]) {
		n--
	}
	return name[:n] + "…"
}

// report notes a deviation of the value or member that starts at pos.
func (c *cursor) report(code string, pos int) {
	if !c.found.full(code) {
		c.found.add(Deviation{code, c.pointer(), c.base + int64(pos)})
	}
}

func (c *cursor) fail(pos int, format string, args ...any) error {
	return &DecodeError{c.pointer(), c.base + int64(pos), fmt.Sprintf(format, args...)}
}

// peek moves to the next token and returns its first byte.
func (c *cursor) peek() byte {
	c.space()
	return c.text[c.pos]
}

func (c *cursor) space() {
	for c.pos < len(c.text) && isSpace(c.text[c.pos]) {
		c.pos++
	}
}

func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\r' || b == '\t' }

// enter steps into the object or array at pos.
func (c *cursor) enter() error {
	if c.depth >= MaxDepth {
		return deep(c.pointer(), c.base+int64(c.pos))
	}
	c.depth++
	c.pos++
	return nil
}

// next moves to the next element or member of the container entered last, or
// leaves it and returns false.
func (c *cursor) next() bool {
	switch c.peek() {
	case '}', ']':
		c.pos++
		c.depth--
		return false
	case ',':
		c.pos++
		c.space()
	}
	return true
}

// name reads a member name and the colon after it. The bytes are valid until
// the next string is read.
func (c *cursor) name() []byte {
	name := c.quoted()
	c.peek() // the colon
	c.pos++
	return name
}

// quoted reads the string at pos and returns it without escapes, valid until the
// next one is read.
func (c *cursor) quoted() []byte {
	c.pos++
	rest := c.text[c.pos:]
	plain := rest[:bytes.IndexByte(rest, '"')]
	if bytes.IndexByte(plain, '\\') >= 0 {
		return c.unescaped()
	}
	c.pos += len(plain) + 1
	return plain
}

// unescaped reads the string whose first character is at pos.
func (c *cursor) unescaped() []byte {
	start := c.pos - 1
	for ; c.text[c.pos] != '"'; c.pos++ {
		if c.text[c.pos] == '\\' {
			c.pos++
		}
	}
	c.pos++
	c.plain, _ = jsontext.AppendUnquote(c.plain[:0], c.text[start:c.pos]) // valid: checked before
	return c.plain
}

// lexeme reads the number or literal at pos.
func (c *cursor) lexeme() []byte {
	start := c.pos
	for c.pos < len(c.text) && !endsLexeme(c.text[c.pos]) {
		c.pos++
	}
	return c.text[start:c.pos]
}

func endsLexeme(b byte) bool { return b == ',' || b == ']' || b == '}' || isSpace(b) }

// pass moves behind the value at pos without looking into it.
func (c *cursor) pass() {
	for open := 0; ; {
		switch c.peek() {
		case '"':
			c.quoted()
		case '{', '[':
			c.pos++
			open++
		case '}', ']':
			c.pos++
			open--
		case ',', ':':
			c.pos++
		default:
			c.lexeme()
		}
		if open == 0 {
			return
		}
	}
}

// skip moves behind the value at pos, checking depth and names on the way.
func (c *cursor) skip() error {
	switch c.peek() {
	case '{':
		return c.skipObject()
	case '[':
		return c.skipArray()
	case '"':
		c.quoted()
	default:
		c.lexeme()
	}
	return nil
}

func (c *cursor) skipObject() error {
	if err := c.enter(); err != nil {
		return err
	}
	var seen names
	for c.next() {
		start := c.pos
		name := c.name()
		c.push(string(name))
		if err := c.claim(&seen, name, start); err != nil {
			return err
		}
		if err := c.skip(); err != nil {
			return err
		}
		c.pop()
	}
	c.claimed -= len(seen)
	return nil
}

func (c *cursor) skipArray() error {
	if err := c.enter(); err != nil {
		return err
	}
	for i := int64(0); c.next(); i++ {
		c.pushIndex(i)
		if err := c.skip(); err != nil {
			return err
		}
		c.pop()
	}
	return nil
}

// names is a set of member names of one object. An entry takes the same room
// whatever the length of its name: a file may have long ones without end.
type names map[nameKey]struct{}

// nameKey is a name as it is when it is short, and else its SHA-256.
type nameKey struct {
	size int
	text Digest
}

func keyOf(name []byte) nameKey {
	k := nameKey{size: len(name)}
	if len(name) > len(k.text) {
		k.text = Sum(name)
	} else {
		copy(k.text[:], name)
	}
	return k
}

// claim puts a name into the set; it is a deviation when it is there already.
// The limit is on the sets of all objects that are open, one within the other.
func (c *cursor) claim(seen *names, name []byte, pos int) error {
	key := keyOf(name)
	if _, twice := (*seen)[key]; twice {
		c.report(DuplicateMember, pos)
		return nil
	}
	if c.claimed == MaxMembers {
		return fmt.Errorf("object %s and those around it have more than %d members: %w", c.pointer(), MaxMembers, ErrTooLarge)
	}
	if *seen == nil {
		*seen = make(names)
	}
	(*seen)[key] = struct{}{}
	c.claimed++
	return nil
}
