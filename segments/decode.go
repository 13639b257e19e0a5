package segments

// The functions of this file decode single parts by the rules of [Read]. They
// take one strict JSON text, whose size is the caller's to bound; paths and
// offsets refer to it.

// DecodeScope reads one scope.
func DecodeScope(text []byte) (*Scope, []Deviation, error) {
	return decodePart(text, scopeFields)
}

// DecodeSegment reads one segment.
func DecodeSegment(text []byte) (*Segment, []Deviation, error) {
	return decodePart(text, segmentFields)
}

func decodePart[T any](text []byte, fields []field[T]) (*T, []Deviation, error) {
	c, err := newCursor(text)
	if err != nil {
		return nil, nil, err
	}
	v := new(T)
	if err := decodeRecord(c, v, fields); err != nil {
		return nil, c.found.list, err
	}
	return v, c.found.list, nil
}

// DecodeKind reads one kind, whatever the order of its members.
func DecodeKind(text []byte) (Kind, []Deviation, error) {
	c, err := newCursor(text)
	if err != nil {
		return nil, nil, err
	}
	k, err := decodeKind(c)
	if err != nil {
		return nil, c.found.list, err
	}
	return k, c.found.list, nil
}

// DecodeKindText is [DecodeKind] for a text that is a string: the strings of the
// kind are parts of it where they have no escapes.
func DecodeKindText(text string) (Kind, []Deviation, error) {
	c, err := newCursor([]byte(text))
	if err != nil {
		return nil, nil, err
	}
	c.keep = text[c.base : c.base+int64(len(c.text))]
	k, err := decodeKind(c)
	if err != nil {
		return nil, c.found.list, err
	}
	return k, c.found.list, nil
}

func newCursor(text []byte) (*cursor, error) {
	value, offset, err := checkText(text)
	if err != nil {
		return nil, err
	}
	c := &struct {
		cursor
		found deviations
	}{cursor: cursor{text: value, base: offset}}
	c.cursor.found = &c.found
	return &c.cursor, nil
}
