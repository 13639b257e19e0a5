package verifier

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The second implementation, part one: JSON. It keeps everything in memory,
// knows nothing of the format and shares no code with the product.

type naiveValue struct {
	kind    byte // 'o', 'a', 's', 'n', 't', 'f', '0' (null)
	text    string
	items   []naiveValue
	names   []string // of an object, beside items
	doubled bool     // an object in here has a name twice
}

type naiveParser struct {
	in    string
	at    int
	depth int
}

var errNaive = errors.New("not JSON")

func naiveParse(in []byte) (v naiveValue, err error) {
	if !utf8.Valid(in) {
		return v, errNaive
	}
	defer func() {
		if r := recover(); r != nil {
			if r != any(errNaive) {
				panic(r)
			}
			v, err = naiveValue{}, errNaive
		}
	}()
	p := &naiveParser{in: string(in)}
	v = p.value()
	p.space()
	p.want(p.at == len(p.in))
	return v, nil
}

func (p *naiveParser) want(ok bool) {
	if !ok {
		panic(errNaive)
	}
}

func (p *naiveParser) space() {
	for p.at < len(p.in) && strings.ContainsRune(" \t\r\n", rune(p.in[p.at])) {
		p.at++
	}
}

func (p *naiveParser) take(s string) bool {
	if strings.HasPrefix(p.in[p.at:], s) {
		p.at += len(s)
		return true
	}
	return false
}

func (p *naiveParser) value() naiveValue {
	p.space()
	switch {
	case p.take("null"):
		return naiveValue{kind: '0'}
	case p.take("true"):
		return naiveValue{kind: 't'}
	case p.take("false"):
		return naiveValue{kind: 'f'}
	case p.take(`"`):
		return naiveValue{kind: 's', text: p.str()}
	case p.take("["):
		return p.container('a', "]")
	case p.take("{"):
		return p.container('o', "}")
	}
	return p.number()
}

func (p *naiveParser) container(kind byte, end string) naiveValue {
	p.depth++
	p.want(p.depth <= 128)
	v := naiveValue{kind: kind}
	p.space()
	for first := true; !p.take(end); first = false {
		p.want(first || p.take(","))
		if kind == 'o' {
			p.space()
			p.want(p.take(`"`))
			name := p.str()
			for _, other := range v.names {
				v.doubled = v.doubled || other == name
			}
			v.names = append(v.names, name)
			p.space()
			p.want(p.take(":"))
		}
		item := p.value()
		v.doubled = v.doubled || item.doubled
		v.items = append(v.items, item)
		p.space()
	}
	p.depth--
	return v
}

func (p *naiveParser) str() string {
	var b strings.Builder
	for {
		p.want(p.at < len(p.in))
		c := p.in[p.at]
		p.at++
		switch {
		case c == '"':
			return b.String()
		case c < 0x20:
			panic(errNaive)
		case c != '\\':
			b.WriteByte(c)
		default:
			b.WriteRune(p.escape())
		}
	}
}

func (p *naiveParser) escape() rune {
	p.want(p.at < len(p.in))
	c := p.in[p.at]
	p.at++
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		return rune("\"\\/\b\f\n\r\t"[i])
	}
	p.want(c == 'u')
	r := p.unit()
	if !utf16.IsSurrogate(r) {
		return r
	}
	p.want(p.take(`\u`))
	both := utf16.DecodeRune(r, p.unit())
	p.want(both != utf8.RuneError)
	return both
}

func (p *naiveParser) unit() rune {
	p.want(p.at+4 <= len(p.in))
	digits := p.in[p.at : p.at+4]
	n, err := strconv.ParseUint(digits, 16, 16)
	p.want(err == nil && !strings.ContainsAny(digits, "+-_xX"))
	p.at += 4
	return rune(n)
}

func (p *naiveParser) number() naiveValue {
	start := p.at
	p.take("-")
	if !p.take("0") {
		p.digits()
	}
	if p.take(".") {
		p.digits()
	}
	if p.take("e") || p.take("E") {
		_ = p.take("+") || p.take("-")
		p.digits()
	}
	return naiveValue{kind: 'n', text: p.in[start:p.at]}
}

func (p *naiveParser) digits() {
	start := p.at
	for p.at < len(p.in) && p.in[p.at] >= '0' && p.in[p.at] <= '9' {
		p.at++
	}
	p.want(p.at > start)
}
