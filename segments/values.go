package segments

import (
	"bytes"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
)

// The readers of single values, by the rules of section 3 of the format.

func (c *cursor) stringBytes() ([]byte, error) {
	if c.peek() != '"' {
		return nil, c.fail(c.pos, "want a string")
	}
	return c.quoted(), nil
}

func (c *cursor) str(dst *string) error {
	c.space()
	start := c.pos + 1
	b, err := c.stringBytes()
	if err != nil {
		return err
	}
	// An escape is longer than what it stands for: equal lengths, no escapes.
	if end := c.pos - 1; c.keep != "" && end-start == len(b) {
		*dst = c.keep[start:end]
	} else {
		*dst = string(b)
	}
	return nil
}

func (c *cursor) optStr(dst **string) error {
	*dst = new(string)
	return c.str(*dst)
}

func (c *cursor) strs(dst *[]string) error {
	if c.peek() != '[' {
		return c.fail(c.pos, "want an array of strings")
	}
	if err := c.enter(); err != nil {
		return err
	}
	list := (*dst)[:0]
	if list == nil {
		list = []string{}
	}
	for c.next() {
		c.pushIndex(int64(len(list)))
		if len(list) == manyStrings {
			list = slices.Grow(list, c.remaining())
		}
		var s string
		if err := c.str(&s); err != nil {
			return err
		}
		list = append(list, s)
		c.pop()
	}
	*dst = list
	return nil
}

// manyStrings is the length from which an array of strings is counted before
// the rest of it is read, so that it takes as much memory as it needs.
const manyStrings = 256

// remaining counts the elements of the array from the one at pos on, without
// moving.
func (c *cursor) remaining() (n int) {
	for look := *c; ; n++ {
		look.pass()
		if !look.next() {
			return n + 1
		}
	}
}

// uint reads an integer: digits only, no sign, point or exponent.
func (c *cursor) uint(max uint64) (uint64, error) {
	c.space()
	start := c.pos
	n, err := strconv.ParseUint(string(c.lexeme()), 10, 64)
	if err != nil || n > max {
		return 0, c.fail(start, "want an integer from 0 to %d, digits only", max)
	}
	if n > MaxSafeInteger {
		c.report(UnsafeInteger, start)
	}
	return n, nil
}

func (c *cursor) u32(dst *uint32) error {
	n, err := c.uint(math.MaxUint32)
	*dst = uint32(n)
	return err
}

func (c *cursor) u64(dst *uint64) (err error) {
	*dst, err = c.uint(math.MaxUint64)
	return err
}

func (c *cursor) optU64(dst **uint64) error {
	*dst = new(uint64)
	return c.u64(*dst)
}

// digest reads digest text: trimmed, of either case (section 5).
func (c *cursor) digest(dst *Digest) error {
	c.space()
	start := c.pos
	b, err := c.stringBytes()
	if err != nil {
		return err
	}
	digits := bytes.TrimSpace(b)
	if len(digits) != 2*len(dst) {
		return c.fail(start, "want a digest of %d hexadecimal digits", 2*len(dst))
	}
	if _, err := hex.Decode(dst[:], digits); err != nil {
		return c.fail(start, "want a digest of %d hexadecimal digits", 2*len(dst))
	}
	if len(b) != len(digits) || hasUpper(digits) {
		c.report(NoncanonicalHex, start)
	}
	return nil
}

// hasUpper reports whether hexadecimal digits have one of A to F: alone among
// them these lack bit 5.
func hasUpper(digits []byte) bool {
	all := byte(0xff)
	for _, c := range digits {
		all &= c
	}
	return all&0x20 == 0
}

func (c *cursor) optDigest(dst **Digest) error {
	*dst = new(Digest)
	return c.digest(*dst)
}

// hexText reads a string that should be lower-case hex, and keeps it anyway.
func (c *cursor) hexText(dst *string, digits int) error {
	c.space()
	start := c.pos
	if err := c.str(dst); err != nil {
		return err
	}
	if len(*dst) != digits || !isLowerHex([]byte(*dst)) {
		c.report(NoncanonicalHex, start)
	}
	return nil
}

// uuid reads the four forms of a UUID and yields the hyphenated one.
func (c *cursor) uuid(dst **string) error {
	c.space()
	start := c.pos
	b, err := c.stringBytes()
	if err != nil {
		return err
	}
	u, ok := parseUUID(b)
	if !ok {
		return c.fail(start, "want a UUID")
	}
	if u != string(b) {
		c.report(NoncanonicalUUID, start)
	}
	*dst = &u
	return nil
}

const urnUUID = "urn:uuid:"

// parseUUID reads hyphenated, simple, braced and URN forms of any case.
func parseUUID(b []byte) (string, bool) {
	b = bytes.ToLower(b)
	switch len(b) {
	case 38:
		if b[0] != '{' || b[37] != '}' {
			return "", false
		}
		b = b[1:37]
	case 36 + len(urnUUID):
		if !bytes.HasPrefix(b, []byte(urnUUID)) {
			return "", false
		}
		b = b[len(urnUUID):]
	case 32:
		b = hyphenate(b)
	}
	return string(b), isUUID(b)
}

func hyphenate(b []byte) []byte {
	parts := [][]byte{b[:8], b[8:12], b[12:16], b[16:20], b[20:]}
	return bytes.Join(parts, []byte("-"))
}

func isUUID(b []byte) bool {
	if len(b) != 36 {
		return false
	}
	for i, ch := range b {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if ch != '-' {
				return false
			}
		} else if !isLowerHex(b[i : i+1]) {
			return false
		}
	}
	return true
}
