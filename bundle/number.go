package bundle

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// AppendFloat appends the one text that a finite double has in canonical
// bytes. It panics for NaN and the infinities, which have none.
func AppendFloat(dst []byte, f float64) []byte {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		panic("bundle: a number that is not finite has no canonical form")
	}
	var buf [32]byte
	short := strconv.AppendFloat(buf[:0], f, 'e', -1, 64) // [-]d[.ddd]e±dd
	if short[0] == '-' {
		dst = append(dst, '-')
		short = short[1:]
	}
	e := bytes.IndexByte(short, 'e')
	exponent, err := strconv.Atoi(string(short[e+1:]))
	if err != nil {
		panic("bundle: strconv wrote an exponent that it cannot read")
	}
	if exponent < -4 || exponent > 15 {
		return append(dst, short...)
	}
	digits := append(short[:1:1], short[min(2, e):e]...)
	return appendPositional(dst, digits, exponent)
}

// appendPositional writes d.ddd × 10^exponent without an exponent.
func appendPositional(dst, digits []byte, exponent int) []byte {
	if exponent < 0 {
		dst = append(dst, "0."...)
		dst = append(dst, "000"[:-exponent-1]...)
		return append(dst, digits...)
	}
	for i := 0; i <= exponent; i++ {
		if i < len(digits) {
			dst = append(dst, digits[i])
		} else {
			dst = append(dst, '0')
		}
	}
	dst = append(dst, '.')
	if len(digits) <= exponent+1 {
		return append(dst, '0')
	}
	return append(dst, digits[exponent+1:]...)
}

// number reads the number at the current position and refuses a text that is
// not the canonical one of its value.
func (p *parser) number() error {
	start := p.pos
	integer, err := p.numberGrammar()
	if err != nil {
		return err
	}
	token := p.text[start:p.pos]
	if integer && token != "-0" && len(strings.TrimPrefix(token, "-")) <= MaxDigits {
		return nil
	}
	if !integer && canonicalFloat(token) {
		return nil
	}
	p.pos = start
	return p.fault(NumberForm, "the number %s is not in canonical form", excerpt(token))
}

// canonicalFloat says that the token is the text AppendFloat would write.
func canonicalFloat(token string) bool {
	f, err := strconv.ParseFloat(token, 64)
	if err != nil { // out of range
		return false
	}
	var buf [40]byte
	return string(AppendFloat(buf[:0], f)) == token
}

// numberGrammar moves over a JSON number and says whether it has neither
// fraction nor exponent.
func (p *parser) numberGrammar() (integer bool, err error) {
	p.accept('-')
	if strings.HasPrefix(p.text[p.pos:], "Infinity") {
		return false, p.fault(NumberForm, "-Infinity is not a JSON number")
	}
	if !p.accept('0') && !p.digits() {
		return false, p.unexpected("a digit")
	}
	integer = true
	if p.accept('.') {
		integer = false
		if !p.digits() {
			return false, p.unexpected("a digit after the point")
		}
	}
	if p.accept('e') || p.accept('E') {
		integer = false
		if !p.accept('+') {
			p.accept('-')
		}
		if !p.digits() {
			return false, p.unexpected("a digit of the exponent")
		}
	}
	return integer, nil
}

func (p *parser) digits() bool {
	start := p.pos
	for p.pos < len(p.text) && '0' <= p.text[p.pos] && p.text[p.pos] <= '9' {
		p.pos++
	}
	return p.pos > start
}

// excerpt shortens a long token for an error text.
func excerpt(s string) string {
	if len(s) <= 40 {
		return s
	}
	return s[:32] + "… (" + strconv.Itoa(len(s)) + " bytes)"
}
