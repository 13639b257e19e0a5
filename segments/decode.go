package segments

func newCursor(text []byte) (*cursor, error) {
	value, offset, err := checkText(text)
	if err != nil {
		return nil, err
	}
	return &cursor{text: value, base: offset, found: new(deviations)}, nil
}

// DecodeScope reads one scope by the rules of [Read].
func DecodeScope(text []byte) (*Scope, []Deviation, error) {
	return decodePart(text, scopeFields)
}

// DecodeSegment reads one segment by the rules of [Read].
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

// DecodeKind reads one kind by the rules of [Read], in written or canonical
// order of members.
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
