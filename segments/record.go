package segments

// need says whether a member must be there, and what null means.
type need uint8

const (
	required  need = iota // must be there, null is an error
	optional              // may be absent, null counts as absent
	defaulted             // may be absent, null is an error
	ignored               // may be anything, absent or repeated
)

// field is a member of a record: one row of a table of section 2.
type field[T any] struct {
	name string
	need need
	read func(*cursor, *T) error
}

// decodeRecord reads an object, or an array of its members' values in order
// (section 3, rule 8), into dst.
func decodeRecord[T any](c *cursor, dst *T, fields []field[T]) error {
	switch c.peek() {
	case '{':
		return decodeObject(c, dst, fields)
	case '[':
		c.report(NotAnObject, c.pos)
		return decodeTuple(c, dst, fields)
	}
	return c.fail(c.pos, "want an object")
}

func decodeObject[T any](c *cursor, dst *T, fields []field[T]) error {
	start := c.pos
	if err := c.enter(); err != nil {
		return err
	}
	var seen uint32
	var extra names
	for hint := 0; c.next(); hint++ {
		at := c.pos
		name := c.name()
		i := find(fields, name, hint)
		err := error(nil)
		if i < 0 {
			err = c.foreign(&extra, name, at)
		} else {
			hint = i
			c.push(fields[i].name)
			if fields[i].need != ignored {
				err = c.once(&seen, i, at)
			}
		}
		if err == nil {
			err = decodeMember(c, dst, fields, i)
		}
		if err != nil {
			return err
		}
		c.pop()
	}
	c.claimed -= len(extra)
	return checkMissing(c, seen, fields, start)
}

// find looks a name up, first where the written order has it.
func find[T any](fields []field[T], name []byte, hint int) int {
	if hint < len(fields) && fields[hint].name == string(name) {
		return hint
	}
	for i := range fields {
		if fields[i].name == string(name) {
			return i
		}
	}
	return -1
}

// once marks known member i as seen; a second time is an error (rule 3).
func (c *cursor) once(seen *uint32, i, pos int) error {
	if *seen&(1<<i) != 0 {
		c.report(DuplicateMember, pos)
		return c.fail(pos, "member is there twice")
	}
	*seen |= 1 << i
	return nil
}

// foreign notes a member that the record does not have (rule 4) and adds it
// to the path; its value comes next.
func (c *cursor) foreign(extra *names, name []byte, pos int) error {
	c.push(string(name))
	c.report(UnknownMember, pos)
	return c.claim(extra, name, pos)
}

// decodeMember reads the value of member i; -1 stands for an unknown one.
func decodeMember[T any](c *cursor, dst *T, fields []field[T], i int) error {
	if i < 0 {
		return c.skip()
	}
	f := &fields[i]
	if f.need == optional && c.peek() == 'n' {
		c.report(ExplicitNull, c.pos)
		c.lexeme()
		return nil
	}
	return f.read(c, dst)
}

func checkMissing[T any](c *cursor, seen uint32, fields []field[T], pos int) error {
	for i := range fields {
		if fields[i].need == required && seen&(1<<i) == 0 {
			return c.fail(pos, "member %q is missing", fields[i].name)
		}
	}
	return nil
}

func decodeTuple[T any](c *cursor, dst *T, fields []field[T]) error {
	start := c.pos
	if err := c.enter(); err != nil {
		return err
	}
	var seen uint32
	for i := 0; c.next(); i++ {
		if i == len(fields) {
			return c.fail(c.pos, "array has more than %d values", len(fields))
		}
		c.pushIndex(int64(i))
		seen |= 1 << i
		if err := decodeMember(c, dst, fields, i); err != nil {
			return err
		}
		c.pop()
	}
	return checkMissing(c, seen, fields, start)
}
