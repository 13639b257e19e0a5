package bundle

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// ParseValue reads one JSON text strictly, as the package doc says under
// Reading. It keeps the text. The error is a *FormatError.
func ParseValue(text string) (Value, error) {
	if len(text) > MaxBytes {
		return Value{}, faultf(TooLarge, "", "more than %d bytes", MaxBytes)
	}
	if strings.HasPrefix(text, "\ufeff") {
		return Value{}, faultf(ByteOrderMark, "offset 0", "a byte order mark")
	}
	if !utf8.ValidString(text) {
		return Value{}, faultf(InvalidUTF8, fmt.Sprintf("offset %d", firstInvalid(text)), "not UTF-8")
	}
	p := parser{text: text, doc: &document{text: text}, limit: MaxValues + len(text)/8}
	if err := p.document(); err != nil {
		return Value{}, err
	}
	return Value{doc: p.doc}, nil
}

func firstInvalid(text string) int {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(text)
}

// parser turns a text into a tape. Each of its methods that read a value
// reports whether the text read is canonical as it stands.
type parser struct {
	text  string
	pos   int
	doc   *document
	count int // entries on the tape
	room  int // for entries
	limit int
	names []string // scratch of unique
}

func (p *parser) document() error {
	p.space()
	if _, err := p.value(0); err != nil {
		return err
	}
	p.space()
	if p.pos < len(p.text) {
		return p.fault(TrailingData, "text after the value")
	}
	return nil
}

func (p *parser) fault(code Code, format string, args ...any) error {
	return faultf(code, fmt.Sprintf("offset %d", p.pos), format, args...)
}

// unexpected is the fault of a byte that cannot stand where it does, or of a
// text that ends there.
func (p *parser) unexpected(want string) error {
	if p.pos >= len(p.text) {
		return p.fault(Truncated, "the text ends where %s should be", want)
	}
	return p.fault(Syntax, "want %s, got %q", want, p.text[p.pos])
}

// push opens an entry at the current position and returns its index.
func (p *parser) push() (uint32, error) {
	if p.count >= p.limit {
		return 0, p.fault(TooManyValues, "more than %d values", p.limit)
	}
	i := uint32(p.count)
	if p.count == p.room {
		p.grow()
	}
	p.doc.at(i).start = uint32(p.pos)
	p.count++
	return i, nil
}

// grow makes room for more entries: the first chunk grows to its size, so that a
// small text has a small one.
func (p *parser) grow() {
	switch {
	case p.room == 0:
		p.doc.tape = [][]entry{make([]entry, smallChunk)}
	case p.room < chunkEntries:
		p.doc.tape[0] = append(p.doc.tape[0], make([]entry, p.room)...)
	default:
		p.doc.tape = append(p.doc.tape, make([]entry, chunkEntries))
	}
	last := len(p.doc.tape) - 1
	p.room = last*chunkEntries + len(p.doc.tape[last])
}

// close ends the entry at the current position.
func (p *parser) close(i uint32, kind Kind, canonical bool) {
	e := p.doc.at(i)
	e.end = uint32(p.pos)
	e.next = uint32(p.count) | uint32(kind)<<indexBits
	if canonical {
		e.next |= canonicalBit
	}
}

// space skips white space and reports whether there was none.
func (p *parser) space() bool {
	start := p.pos
	for p.pos < len(p.text) {
		switch p.text[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
			continue
		}
		break
	}
	return p.pos == start
}

// value reads a value inside depth open containers.
func (p *parser) value(depth int) (bool, error) {
	if p.pos >= len(p.text) {
		return false, p.unexpected("a value")
	}
	c := p.text[p.pos]
	if (c == '{' || c == '[') && depth >= MaxDepth {
		return false, p.fault(TooDeep, "more than %d open arrays and objects", MaxDepth)
	}
	i, err := p.push()
	if err != nil {
		return false, err
	}
	canonical, kind := true, Number
	switch {
	case c == '{':
		kind = Object
		canonical, err = p.object(i, depth+1)
	case c == '[':
		kind = Array
		canonical, err = p.array(depth + 1)
	case c == '"':
		kind, canonical, err = p.str()
	case c == '-' || '0' <= c && c <= '9':
		err = p.number()
	default:
		kind, err = p.literal()
	}
	if err != nil {
		return false, err
	}
	p.close(i, kind, canonical)
	return canonical, nil
}

func (p *parser) literal() (Kind, error) {
	rest := p.text[p.pos:]
	for _, word := range [...]string{"null", "true", "false"} {
		if !strings.HasPrefix(rest, word) {
			continue
		}
		p.pos += len(word)
		if word == "null" {
			return Null, nil
		}
		return Bool, nil
	}
	for _, word := range [...]string{"NaN", "Infinity"} {
		if strings.HasPrefix(rest, word) {
			return Absent, p.fault(NumberForm, "%s is not a JSON number", word)
		}
	}
	return Absent, p.unexpected("a value")
}

func (p *parser) array(depth int) (bool, error) {
	p.pos++
	canonical := p.space()
	if p.accept(']') {
		return canonical, nil
	}
	for {
		c, err := p.value(depth)
		if err != nil {
			return false, err
		}
		s := p.space()
		canonical = canonical && c && s
		if p.accept(']') {
			return canonical, nil
		}
		if !p.accept(',') {
			return false, p.unexpected("a comma or a closing bracket")
		}
		canonical = p.space() && canonical
	}
}

func (p *parser) accept(c byte) bool {
	if p.pos < len(p.text) && p.text[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

// object reads the object whose entry is i.
func (p *parser) object(i uint32, depth int) (bool, error) {
	p.pos++
	canonical := p.space()
	if p.accept('}') {
		return canonical, nil
	}
	ascending, previous := true, ""
	for n := 0; ; n++ {
		c, name, err := p.member(depth)
		if err != nil {
			return false, err
		}
		ascending = ascending && (n == 0 || previous < name)
		previous = name
		s := p.space()
		canonical = canonical && c && s
		if p.accept('}') {
			break
		}
		if !p.accept(',') {
			return false, p.unexpected("a comma or a closing brace")
		}
		canonical = p.space() && canonical
	}
	if ascending {
		return canonical, nil
	}
	return false, p.unique(i)
}

// member reads a name, the colon and a value.
func (p *parser) member(depth int) (bool, string, error) {
	if p.pos >= len(p.text) || p.text[p.pos] != '"' {
		return false, "", p.unexpected("a member name")
	}
	i, err := p.push()
	if err != nil {
		return false, "", err
	}
	kind, nameOK, err := p.str()
	if err != nil {
		return false, "", err
	}
	p.close(i, kind, nameOK)
	name := p.doc.string(p.doc.at(i))
	before := p.space()
	if !p.accept(':') {
		return false, "", p.unexpected("a colon")
	}
	after := p.space()
	valueOK, err := p.value(depth)
	return nameOK && before && after && valueOK, name, err
}

// unique refuses a name that the object at entry i has twice. The entry is
// still open, so that its content reaches to the end of the tape.
func (p *parser) unique(i uint32) error {
	p.close(i, Object, false)
	names := p.names[:0]
	for name := range (Value{p.doc, i}).Members() {
		names = append(names, name)
	}
	p.names = names
	slices.Sort(names)
	for n := 1; n < len(names); n++ {
		if names[n] == names[n-1] {
			return p.fault(DuplicateMember, "the object that ends here has two members %s", Quote(names[n]))
		}
	}
	return nil
}
