package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"slices"
	"strings"
)

// AppendCanonical appends canon(v). The value must not be absent.
func (v Value) AppendCanonical(dst []byte) []byte {
	v.canonical(func(part string) { dst = append(dst, part...) })
	return dst
}

// WriteCanonical writes canon(v) in parts, so that a large value needs no
// copy of itself.
func (v Value) WriteCanonical(w io.Writer) error {
	var err error
	v.canonical(func(part string) {
		if err == nil {
			_, err = io.WriteString(w, part)
		}
	})
	return err
}

// EqualCanonical says that canon(v) is text.
func (v Value) EqualCanonical(text []byte) bool {
	if v.Kind() == Absent {
		return false
	}
	rest, equal := text, true
	v.canonical(func(part string) {
		if equal = equal && len(rest) >= len(part) && string(rest[:len(part)]) == part; equal {
			rest = rest[len(part):]
		}
	})
	return equal && len(rest) == 0
}

// Digest returns digest(v): "sha256:" and 64 hex digits.
func (v Value) Digest() string { return v.digest(newHasher()) }

func (v Value) digest(h *hasher) string {
	v.canonical(h.write)
	return h.sum()
}

// Digest returns the digest of canonical bytes.
func Digest(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return digestPrefix + hex.EncodeToString(sum[:])
}

const digestPrefix = "sha256:"

// IsDigest says that s is "sha256:" and 64 lower-case hex digits.
func IsDigest(s string) bool {
	rest, ok := strings.CutPrefix(s, digestPrefix)
	return ok && len(rest) == 2*sha256.Size && isLowerHex(rest)
}

func isLowerHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// canonical emits canon(v) in parts. What stands canonically in the text is
// one part.
func (v Value) canonical(emit func(string)) {
	if v.doc.at(v.index).canonical() {
		emit(v.raw())
		return
	}
	switch v.Kind() {
	case String:
		emitString(v.Text(), emit)
	case Array:
		for i, item := range v.Items() {
			emit(separator(i, "[", ","))
			item.canonical(emit)
		}
		emit(closer(v, "[]", "]"))
	case Object:
		for i, m := range v.sortedMembers() {
			emit(separator(i, "{", ","))
			emitString(m.name, emit)
			emit(":")
			m.value.canonical(emit)
		}
		emit(closer(v, "{}", "}"))
	}
}

// emitString emits the canonical form of a string, without a copy when it has
// nothing to escape.
func emitString(s string, emit func(string)) {
	if strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == '"' || r == '\\' }) {
		emit(string(AppendString(nil, s)))
		return
	}
	emit(`"`)
	emit(s)
	emit(`"`)
}

func separator(i int, first, other string) string {
	if i == 0 {
		return first
	}
	return other
}

func closer(v Value, empty, other string) string {
	e := v.doc.at(v.index)
	if e.after() == v.index+1 {
		return empty
	}
	return other
}

type member struct {
	name  string
	value Value
}

func (v Value) sortedMembers() []member {
	all := make([]member, 0, v.Len())
	for name, value := range v.Members() {
		all = append(all, member{name, value})
	}
	slices.SortFunc(all, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return all
}

// hasher computes SHA-256 over strings by way of a small buffer, since a
// string cannot be handed to a hash without a copy.
type hasher struct {
	hash hash.Hash
	buf  [4096]byte
	fill int
	raw  [sha256.Size]byte // scratch of sum
}

func newHasher() *hasher { return &hasher{hash: sha256.New()} }

func (h *hasher) write(s string) {
	for len(s) > 0 {
		n := copy(h.buf[h.fill:], s)
		h.fill += n
		s = s[n:]
		if h.fill == len(h.buf) {
			h.flush()
		}
	}
}

func (h *hasher) writeBytes(b []byte) {
	h.flush()
	h.hash.Write(b)
}

func (h *hasher) flush() {
	h.hash.Write(h.buf[:h.fill])
	h.fill = 0
}

// sum returns the digest of what was written and starts again.
func (h *hasher) sum() string {
	h.flush()
	var out [len(digestPrefix) + 2*sha256.Size]byte
	copy(out[:], digestPrefix)
	hex.Encode(out[len(digestPrefix):], h.hash.Sum(h.raw[:0]))
	h.hash.Reset()
	return string(out[:])
}
