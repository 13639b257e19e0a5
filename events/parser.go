package events

import (
	"bytes"
	"io"
	"strconv"

	"github.com/chaind/chaind/segments"
	"github.com/go-json-experiment/json/jsontext"
)

// parser walks one payload once. The first error of the text stops it; what
// is wrong with names and values is noted in the verdict and reading goes on,
// because a later fault may rank lower.
type parser struct {
	dec     jsontext.Decoder
	buf     bytes.Buffer
	text    []byte // the whole payload
	copied  string // the payload once more, for the strings cut from it
	err     error
	verdict verdict
	name    []byte // name of the current member, unescaped
	scratch []byte
	kind    kindFields
}

func (p *parser) reset(text []byte) {
	p.buf = *bytes.NewBuffer(text)
	p.dec.Reset(&p.buf)
	p.text, p.copied, p.err = text, "", nil
	p.verdict = verdict{rank: rankNone}
	p.kind = kindFields{}
}

// value reads the next value and gives its text, aliasing the payload; nil
// after an error.
func (p *parser) value() []byte {
	if p.err != nil {
		return nil
	}
	v, err := p.dec.ReadValue()
	if err != nil {
		p.err = err
		return nil
	}
	end := int(p.dec.InputOffset())
	return p.text[end-len(v) : end]
}

func (p *parser) token() jsontext.Kind {
	if p.err != nil {
		return 0
	}
	t, err := p.dec.ReadToken()
	if err != nil {
		p.err = err
		return 0
	}
	return t.Kind()
}

// enter reads the opening of an object or array. Of any other value it notes
// that it has the wrong shape, and skips it.
func (p *parser) enter(opening jsontext.Kind, member string) bool {
	if p.err == nil && p.dec.PeekKind() == opening {
		return p.token() == opening
	}
	want := "an object"
	if opening == '[' {
		want = "an array"
	}
	p.misshapen(p.value(), member, want)
	return false
}

// next reads the next name of the object just entered into p.name; false at
// its end, which it consumes.
func (p *parser) next() bool {
	if p.err != nil {
		return false
	}
	if p.dec.PeekKind() == '}' {
		p.token()
		return false
	}
	raw := p.value()
	if p.err != nil {
		return false
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		p.name = raw[1 : len(raw)-1]
		return true
	}
	p.scratch, _ = jsontext.AppendUnquote(p.scratch[:0], raw)
	p.name = p.scratch
	return true
}

// end checks that nothing follows the text.
func (p *parser) end() {
	if p.err != nil {
		return
	}
	switch _, err := p.dec.ReadToken(); err {
	case io.EOF:
	case nil:
		p.err = errTrailing
	default:
		p.err = err
	}
}

func (p *parser) unknown(member string) {
	name := quoted(p.name)
	raw := p.value()
	if p.err != nil {
		return
	}
	p.checkIntegers(raw, member)
	p.verdict.add(rankUnknown, "unknown name "+name+" in "+member)
}

// misshapen notes a value of the wrong type or outside its values.
func (p *parser) misshapen(raw []byte, member, want string) {
	if p.err != nil {
		return
	}
	p.checkIntegers(raw, member)
	p.verdict.add(rankShape, member+" is not "+want)
}

func (p *parser) checkIntegers(raw []byte, member string) {
	if hasUnsafeInteger(raw) {
		p.verdict.add(rankInteger, "an integer outside 2^53-1 in "+member)
	}
}

// string reads a string value. Strings without escapes share one copy of the
// payload.
func (p *parser) string(member string) (string, bool) {
	raw := p.value()
	if p.err != nil {
		return "", false
	}
	if raw[0] != '"' {
		p.misshapen(raw, member, "a string")
		return "", false
	}
	return p.unquote(raw), true
}

func (p *parser) unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') >= 0 {
		s, _ := jsontext.AppendUnquote(nil, raw)
		return string(s)
	}
	if p.copied == "" {
		p.copied = string(p.text)
	}
	end := int(p.dec.InputOffset())
	return p.copied[end-len(raw)+1 : end-1]
}

// strings reads an array of strings; never nil when it is one.
func (p *parser) strings(member string) ([]string, bool) {
	if !p.enter('[', member) {
		return nil, false
	}
	list, ok := []string{}, true
	for p.err == nil && p.dec.PeekKind() != ']' {
		s, is := p.string(member)
		list, ok = append(list, s), ok && is
	}
	p.token()
	return list, ok && p.err == nil
}

// integer reads digits up to limit, which is at most 2^53-1.
func (p *parser) integer(member string, limit uint64) (uint64, bool) {
	raw := p.value()
	if p.err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil || n > limit {
		p.misshapen(raw, member, "an integer from 0 to "+strconv.FormatUint(limit, 10))
		return 0, false
	}
	return n, true
}

// count reads an integer into a fresh pointer; nil when it is none.
func (p *parser) count(member string) *uint64 {
	n, ok := p.integer(member, maxSafeInteger)
	if !ok {
		return nil
	}
	return pointer(n)
}

func (p *parser) digest(member string) (segments.Digest, bool) {
	raw := p.value()
	if p.err != nil {
		return segments.Digest{}, false
	}
	if raw[0] == '"' {
		if d, err := segments.ParseDigest(p.unquote(raw)); err == nil {
			return d, true
		}
	}
	p.misshapen(raw, member, "64 lower-case hexadecimal digits")
	return segments.Digest{}, false
}

func (p *parser) bool(member string) (value, ok bool) {
	raw := p.value()
	if p.err != nil {
		return false, false
	}
	if raw[0] != 't' && raw[0] != 'f' {
		p.misshapen(raw, member, "true or false")
		return false, false
	}
	return raw[0] == 't', true
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// pointer gives v an address of its own, so that nothing points into the
// parser.
func pointer[T any](v T) *T { return &v }
