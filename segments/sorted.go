package segments

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
)

// AppendSortedJSON appends text as the reference's sorted serde JSON (Plasm
// evidence format, section 9): names in the order of their UTF-8 bytes, of a
// repeated name the last value, integers within i64 and u64 kept ("-0" reads
// as -0.0), other numbers as the shortest binary64 in Rust's spelling with
// exponents like 1e+16. On error nothing is appended.
//
// text must be one strict RFC 8259 value, at most [MaxDepth] deep; a number
// beyond binary64 (1e400) is refused, one too small (1e-400) reads as 0.0 and
// so shares its digest with zero, as in the reference. Errors are
// *[DecodeError]. The time is O(n log n) in the length of the text.
func AppendSortedJSON(dst, text []byte) ([]byte, error) {
	return appendSorted(dst, text, whole, false)
}

// AppendSortedJSONOlder is [AppendSortedJSON] with exponents like 1e16, as
// serde_json wrote them before 1.0.147. The two differ only for floats of
// magnitude 1e16 and above; a verifier tries both before it reports a mismatch.
func AppendSortedJSONOlder(dst, text []byte) ([]byte, error) {
	return appendSorted(dst, text, whole, true)
}

// shape says what a value is when a plan is reduced to its committed members;
// everything else is whole.
type shape uint8

const (
	whole shape = iota
	comp        // only version, steps, bind and return count
	steps       // step id to step
	step        // its body is a comp when it is a map body
)

// sorter rewrites the text under its cursor.
type sorter struct {
	cursor
	older   bool
	scratch []byte
}

func appendSorted(dst, text []byte, as shape, older bool) ([]byte, error) {
	value, offset, err := checkText(text)
	if err != nil {
		return dst, err
	}
	s := sorter{cursor: cursor{text: value, base: offset, found: new(deviations)}, older: older}
	out, err := s.value(dst, as)
	if err != nil {
		return dst, err
	}
	return out, nil
}

func (s *sorter) value(dst []byte, as shape) ([]byte, error) {
	switch s.peek() {
	case '{':
		return s.object(dst, as)
	case '[':
		return s.array(dst)
	case '"':
		return AppendString(dst, string(s.quoted())), nil
	case 't', 'f', 'n':
		return append(dst, s.lexeme()...), nil
	}
	return s.number(dst)
}

func (s *sorter) array(dst []byte) ([]byte, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	dst = append(dst, '[')
	for open := len(dst); s.next(); {
		var err error
		if dst, err = s.value(separate(dst, open), whole); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

// entry is a member as written, dst[start:end].
type entry struct {
	name       string
	start, end int
}

// object writes the members in the order of the text and then arranges them.
func (s *sorter) object(dst []byte, as shape) ([]byte, error) {
	mapBody := as == step && s.isMapBody()
	if err := s.enter(); err != nil {
		return nil, err
	}
	dst = append(dst, '{')
	open := len(dst)
	var members []entry
	for s.next() {
		name := string(s.name())
		mark := len(dst)
		dst = separate(dst, open)
		start := len(dst)
		var err error
		if dst, err = s.value(append(AppendString(dst, name), ':'), inner(as, name, mapBody)); err != nil {
			return nil, err
		}
		if as == comp && !isCommitted(name) {
			dst = dst[:mark]
			continue
		}
		members = append(members, entry{name, start, len(dst)})
	}
	return append(s.arrange(dst, open, members), '}'), nil
}

// inner is the shape of a member's value in an object of shape as.
func inner(as shape, name string, mapBody bool) shape {
	switch {
	case as == comp && name == "steps":
		return steps
	case as == steps:
		return step
	case mapBody && name == "body":
		return comp
	}
	return whole
}

func isCommitted(name string) bool {
	return name == "version" || name == "steps" || name == "bind" || name == "return"
}

// isMapBody reports whether the object at pos has "kind":"map_body", of
// several the last; it does not move.
func (s *sorter) isMapBody() bool {
	look := s.cursor
	look.pos++
	found := false
	for look.next() {
		isKind := string(look.name()) == "kind"
		start := look.pos
		look.peek()
		look.pass()
		if isKind {
			value := cursor{text: look.text, pos: start}
			found = value.peek() == '"' && string(value.quoted()) == "map_body"
		}
	}
	return found
}

// arrange sorts the members written since open and drops repeated names but
// the last. Members that already are in order stay where they are.
func (s *sorter) arrange(dst []byte, open int, members []entry) []byte {
	if isAscending(members) {
		return dst
	}
	slices.SortStableFunc(members, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	s.scratch = append(s.scratch[:0], dst[open:]...)
	dst = dst[:open]
	for i, m := range members {
		if i+1 < len(members) && members[i+1].name == m.name {
			continue
		}
		dst = append(separate(dst, open), s.scratch[m.start-open:m.end-open]...)
	}
	return dst
}

func isAscending(members []entry) bool {
	for i := 1; i < len(members); i++ {
		if members[i-1].name >= members[i].name {
			return false
		}
	}
	return true
}

func (s *sorter) number(dst []byte) ([]byte, error) {
	start := s.pos
	lexeme := s.lexeme()
	if isInteger(lexeme) {
		return append(dst, lexeme...), nil
	}
	x, err := strconv.ParseFloat(string(lexeme), 64)
	if err != nil && math.IsInf(x, 0) {
		return nil, s.fail(start, "number is out of the range of binary64")
	}
	return appendRustFloat(dst, x, s.older), nil
}

// isInteger reports whether lexeme is an integer within i64 or u64, which
// serde keeps as such; -0 is not.
func isInteger(lexeme []byte) bool {
	if bytes.ContainsAny(lexeme, ".eE") || string(lexeme) == "-0" {
		return false
	}
	var err error
	if lexeme[0] == '-' {
		_, err = strconv.ParseInt(string(lexeme), 10, 64)
	} else {
		_, err = strconv.ParseUint(string(lexeme), 10, 64)
	}
	return err == nil
}

// appendRustFloat prints x with the fewest digits d that read back as x,
// value 0.d × 10^point, in the layout of serde_json.
func appendRustFloat(dst []byte, x float64, older bool) []byte {
	var room [32]byte
	text := strconv.AppendFloat(room[:0], math.Abs(x), 'e', -1, 64)
	mantissa, exponent, _ := bytes.Cut(text, []byte("e"))
	digits := bytes.Replace(mantissa, []byte("."), nil, 1)
	exp, _ := strconv.Atoi(string(exponent))
	point := exp + 1
	if math.Signbit(x) {
		dst = append(dst, '-')
	}
	switch {
	case x == 0:
		return append(dst, "0.0"...)
	case len(digits) <= point && point <= 16:
		dst = append(dst, digits...)
		return append(appendZeros(dst, point-len(digits)), ".0"...)
	case 0 < point && point <= 16:
		return append(append(append(dst, digits[:point]...), '.'), digits[point:]...)
	case -5 < point && point <= 0:
		return append(appendZeros(append(dst, "0."...), -point), digits...)
	}
	dst = append(append(dst, mantissa...), 'e')
	if exp > 0 && !older {
		dst = append(dst, '+')
	}
	return strconv.AppendInt(dst, int64(exp), 10)
}

func appendZeros(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}
