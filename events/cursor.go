package events

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// cursor walks over an object that has been proven to be one strict JSON
// text, which is why its moves need no error checks. Only names standing twice
// are its own business: it sees every name of every object, without escapes.
type cursor struct {
	text     []byte
	pos      int
	name     []byte // of the current member
	escaped  bool   // the string read last has escapes
	repeated bool   // some object has a name twice
	marks    []int  // of the strings to come, as a prover left them; none when another proved the text

	open  []object
	names [][]byte // of the open objects, outermost first
}

// object is an object being read: where its names begin, and, when they are
// many, all of them.
type object struct {
	base int
	many map[string]struct{}
}

// fewNames are compared one by one.
const fewNames = 32

func (c *cursor) reset(text []byte, marks []int) {
	clear(c.names)
	*c = cursor{text: text, marks: marks, open: c.open[:0], names: c.names[:0]}
}

// peek moves to the next token and gives its first byte.
func (c *cursor) peek() byte {
	for {
		switch b := c.text[c.pos]; b {
		case ' ', '\n', '\r', '\t':
			c.pos++
		default:
			return b
		}
	}
}

// enter steps into the object at pos.
func (c *cursor) enter() {
	c.pos++
	c.open = append(c.open, object{base: len(c.names)})
}

// next reads the next name of the object entered last, leaving pos before the
// value; false at the object's end, which it leaves.
func (c *cursor) next() bool {
	switch c.peek() {
	case '}':
		c.pos++
		last := len(c.open) - 1
		c.names = c.names[:c.open[last].base]
		c.open = c.open[:last]
		return false
	case ',':
		c.pos++
		c.peek()
	}
	c.name = c.plain(c.quoted())
	c.peek() // the colon
	c.pos++
	c.remember()
	return true
}

// plain takes quotes and escapes off the string read last.
func (c *cursor) plain(quoted []byte) []byte {
	if !c.escaped {
		return quoted[1 : len(quoted)-1]
	}
	s, _ := jsontext.AppendUnquote(nil, quoted) // valid: checked before
	return s
}

// remember adds the current name to its object's.
func (c *cursor) remember() {
	o := &c.open[len(c.open)-1]
	own := c.names[o.base:]
	switch {
	case o.many != nil:
		_, known := o.many[string(c.name)]
		c.repeated = c.repeated || known
		o.many[string(c.name)] = struct{}{}
		return
	case len(own) >= fewNames:
		o.many = make(map[string]struct{}, 2*fewNames)
		for _, name := range own {
			o.many[string(name)] = struct{}{}
		}
		c.remember()
		return
	}
	for _, name := range own {
		if string(name) == string(c.name) {
			c.repeated = true
		}
	}
	c.names = append(c.names, c.name)
}

// item moves to the next element of the array entered by pos++; false at its
// end, which it leaves.
func (c *cursor) item() bool {
	switch c.peek() {
	case ']':
		c.pos++
		return false
	case ',':
		c.pos++
		c.peek()
	}
	return true
}

// value reads the value at pos and gives its text, without white space around
// it.
func (c *cursor) value() []byte {
	switch c.peek() {
	case '"':
		return c.quoted()
	case '{', '[':
		start := c.pos
		c.inner()
		return c.text[start:c.pos]
	}
	start := c.pos
	for !endsLexeme(c.text[c.pos]) {
		c.pos++
	}
	return c.text[start:c.pos]
}

// inner walks through an object or array for the names in it.
func (c *cursor) inner() {
	if c.text[c.pos] == '[' {
		for c.pos++; c.item(); {
			c.value()
		}
		return
	}
	for c.enter(); c.next(); {
		c.value()
	}
}

func endsLexeme(b byte) bool {
	switch b {
	case ',', ']', '}', ' ', '\n', '\r', '\t':
		return true
	}
	return false
}

// quoted reads the string at pos, with its quotes. Each string of the text is
// read once, and in the order of the text, so the next mark is its own.
func (c *cursor) quoted() []byte {
	start := c.pos
	if len(c.marks) > 0 {
		mark := c.marks[0]
		c.marks = c.marks[1:]
		c.pos, c.escaped = mark/2, mark%2 == 1
		return c.text[start:c.pos]
	}
	rest := c.text[start+1:]
	end := bytes.IndexByte(rest, '"')
	if c.escaped = bytes.IndexByte(rest[:end], '\\') >= 0; c.escaped {
		c.pos = skipString(c.text, start) + 1
	} else {
		c.pos = start + end + 2
	}
	return c.text[start:c.pos]
}
