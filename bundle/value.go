package bundle

import (
	"iter"
)

// Kind is the JSON type of a Value.
type Kind uint8

// The kinds. Absent is the kind of the zero Value: no such member.
const (
	Absent Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// String gives the kind with its article, as in "want a string, got an array".
func (k Kind) String() string {
	return [...]string{"nothing", "null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// Value is a view of one JSON value in a text that has been read strictly. It
// copies nothing and is good for as long as the caller keeps it; it is safe
// for concurrent use. The zero Value is absent.
type Value struct {
	doc   *document
	index uint32
}

// document is a text and its values in order, names of members included: a
// container is followed by its content.
type document struct {
	text string
	tape [][]entry // chunks of chunkEntries, so that growing never copies
}

// entry is the place of one value: the half-open byte range of its text, and
// the index of the entry after it. The top bits of next say what the value is,
// and that the range is canonical as it stands.
type entry struct {
	start, end, next uint32
}

const (
	chunkEntries = 1 << 12
	smallChunk   = 1 << 4 // entries that the first has at first
	indexBits    = 28     // of next
	kindBits     = 3
	canonicalBit = 1 << 31
)

// A text has no more values than there are indexes.
const _ uint = 1<<indexBits - 1 - (MaxValues + MaxBytes/8)

// escaped is the kind on the tape of a string with escapes, whose characters are
// not those of its text.
const escaped = Object + 1

func (d *document) at(i uint32) *entry { return &d.tape[i/chunkEntries][i%chunkEntries] }

func (e *entry) canonical() bool { return e.next&canonicalBit != 0 }
func (e *entry) after() uint32   { return e.next & (1<<indexBits - 1) }
func (e *entry) kind() Kind      { return Kind(e.next >> indexBits & (1<<kindBits - 1)) }

// string gives the characters of the string at an entry.
func (d *document) string(e *entry) string {
	if e.kind() == escaped {
		return unquote(d.text[e.start:e.end])
	}
	return d.text[e.start+1 : e.end-1]
}

// Kind returns the JSON type.
func (v Value) Kind() Kind {
	if v.doc == nil {
		return Absent
	}
	if k := v.doc.at(v.index).kind(); k != escaped {
		return k
	}
	return String
}

// raw is the text of the value as it stands in the file.
func (v Value) raw() string {
	e := v.doc.at(v.index)
	return v.doc.text[e.start:e.end]
}

// Text returns the characters of a string, or the digits of a number as they
// stand in the file; "" for other kinds. It is a part of the text read unless
// the string has escapes.
func (v Value) Text() string {
	switch v.Kind() {
	case String:
		return v.doc.string(v.doc.at(v.index))
	case Number:
		return v.raw()
	}
	return ""
}

// True says that the value is the literal true.
func (v Value) True() bool { return v.Kind() == Bool && v.raw() == "true" }

// Get returns the member of an object, or the absent value. It looks at the
// members one by one.
func (v Value) Get(name string) Value {
	if v.Kind() != Object {
		return Value{}
	}
	end := v.doc.at(v.index).after()
	for i := v.index + 1; i < end; i = v.doc.at(i + 1).after() {
		e := v.doc.at(i)
		if (int(e.end-e.start) == len(name)+2 || e.kind() == escaped) && v.doc.string(e) == name {
			return Value{v.doc, i + 1}
		}
	}
	return Value{}
}

// Members yields name and value of each member of an object in file order;
// nothing for other kinds.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if v.Kind() != Object {
			return
		}
		end := v.doc.at(v.index).after()
		for i := v.index + 1; i < end; i = v.doc.at(i + 1).after() { // a name is one entry
			if !yield(v.doc.string(v.doc.at(i)), Value{v.doc, i + 1}) {
				return
			}
		}
	}
}

// Items yields position and value of each item of an array; nothing for other
// kinds.
func (v Value) Items() iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		if v.Kind() != Array {
			return
		}
		end := v.doc.at(v.index).after()
		n := 0
		for i := v.index + 1; i < end; i = v.doc.at(i).after() {
			if !yield(n, Value{v.doc, i}) {
				return
			}
			n++
		}
	}
}

// Size is the length of the value in the text, in bytes; its canonical form has
// no more. The absent value has none.
func (v Value) Size() int {
	if v.doc == nil {
		return 0
	}
	e := v.doc.at(v.index)
	return int(e.end - e.start)
}

// Len counts the items of an array or the members of an object.
func (v Value) Len() int {
	n, name := 0, uint32(0)
	switch v.Kind() {
	case Object:
		name = 1
	case Array:
	default:
		return 0
	}
	end := v.doc.at(v.index).after()
	for i := v.index + 1; i < end; i = v.doc.at(i + name).after() {
		n++
	}
	return n
}
