package segments

import (
	"bufio"
	"bytes"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Read decodes a bundle as the reference does (Plasm evidence format, section
// 3), handing each segment to visit in the order of the array; visit may keep
// it, and ends the reading by returning an error, which Read returns as it is.
// Memory does not grow with the chain. The members of a bundle may come in any
// order, so segments may be visited before the scope is read, and a text whose
// fault lies behind them is refused after they were visited.
//
// The deviations tell where the text is not what section 4 would write; a
// strict caller refuses any. They come with an error too, as far as it was
// read; a known member twice is both, and is best called [DuplicateMember].
// Errors: *[DecodeError] when the text is
// not a bundle, one that wraps [ErrTooLarge] beyond the limits, or that of r.
func Read(r io.Reader, visit func(*Segment) error) (*Envelope, []Deviation, error) {
	b := newReader(r, visit, MaxBundleBytes, MaxSegmentBytes)
	err := b.bundle()
	if err != nil {
		return nil, b.deviations.list, err
	}
	return &b.env, b.deviations.list, nil
}

// ReadBundle is [Read] keeping all segments: memory grows with the input.
func ReadBundle(r io.Reader) (*Bundle, []Deviation, error) {
	var list []Segment
	env, found, err := Read(r, func(s *Segment) error {
		list = append(list, *s)
		return nil
	})
	if err != nil {
		return nil, found, err
	}
	return &Bundle{Envelope: *env, Segments: list}, found, nil
}

// bundleReader streams down to the segments with jsontext's tokens; every
// other value, and each segment, is taken as a whole, bounded, and then
// decoded by the cursor.
type bundleReader struct {
	cursor
	dec        *jsontext.Decoder
	in         *meter
	deviations deviations
	visit      func(*Segment) error
	crew       *crew // takes the segments in the place of visit; nil: visit does
	env        Envelope
}

func newReader(r io.Reader, visit func(*Segment) error, maxBytes, maxItem int64) *bundleReader {
	in := &meter{r: bufio.NewReaderSize(r, 16<<10), max: maxBytes, maxItem: maxItem}
	b := &bundleReader{in: in, visit: visit}
	b.dec = jsontext.NewDecoder(in, jsontext.AllowDuplicateNames(true))
	b.found = &b.deviations
	return b
}

// member is a row of the two records that are streamed.
type member struct {
	name string
	need need
	read func() error
}

func (b *bundleReader) bundle() error {
	err := b.record([]member{
		{"scope", required, b.scope},
		{"chain", required, b.chain},
		{"anchors", defaulted, b.anchors},
		{"signature", optional, b.signature},
	})
	if err != nil {
		return err
	}
	b.mark()
	if _, err := b.dec.ReadToken(); err != io.EOF {
		return b.refuse(err, "more follows after the bundle")
	}
	return nil
}

func (b *bundleReader) chain() error {
	return b.record([]member{
		{"segments", required, b.segments},
		{"head", optional, b.head},
	})
}

// record streams an object or array of members; decodeRecord is its twin in
// memory.
func (b *bundleReader) record(members []member) error {
	open, err := b.open("{[", "want an object")
	if err != nil {
		return err
	}
	start, tuple := b.base, open == '['
	if tuple {
		b.report(NotAnObject, 0)
	}
	var seen uint32
	var extra names
	for i := 0; b.more(); i++ {
		at := i
		if !tuple {
			at, err = b.nameOf(members, &seen, &extra)
		} else {
			err = b.place(i, len(members), &seen)
		}
		if err == nil {
			err = b.member(members, at)
		}
		if err != nil {
			return err
		}
		b.pop()
	}
	if err := b.close(); err != nil {
		return err
	}
	b.base = start
	b.claimed -= len(extra)
	return b.missing(seen, members)
}

// nameOf reads a name and returns the index of its member, -1 for none.
func (b *bundleReader) nameOf(members []member, seen *uint32, extra *names) (int, error) {
	if err := b.load(); err != nil {
		return 0, err
	}
	name := b.quoted()
	for i := range members {
		if members[i].name == string(name) {
			b.push(members[i].name)
			return i, b.once(seen, i, 0)
		}
	}
	return -1, b.foreign(extra, name, 0)
}

// place makes room for value i of an array that stands for n members.
func (b *bundleReader) place(i, n int, seen *uint32) error {
	if i == n {
		return b.fail(0, "array has more than %d values", n)
	}
	b.pushIndex(int64(i))
	*seen |= 1 << i
	return nil
}

func (b *bundleReader) member(members []member, at int) error {
	if at < 0 {
		if err := b.load(); err != nil {
			return err
		}
		return b.skip()
	}
	if members[at].need == optional && b.dec.PeekKind() == 'n' {
		if err := b.load(); err != nil {
			return err
		}
		b.report(ExplicitNull, 0)
		return nil
	}
	return members[at].read()
}

func (b *bundleReader) missing(seen uint32, members []member) error {
	for i := range members {
		if members[i].need == required && seen&(1<<i) == 0 {
			return b.fail(0, "member %q is missing", members[i].name)
		}
	}
	return nil
}

func (b *bundleReader) segments() error {
	if _, err := b.open("[", "want an array of segments"); err != nil {
		return err
	}
	err := b.elements()
	if b.crew != nil {
		// A fault in a segment comes before one behind it.
		if early := b.crew.finish(); early != nil {
			return early
		}
	}
	if err != nil {
		return err
	}
	return b.close()
}

func (b *bundleReader) elements() error {
	for i := int64(0); b.more(); i++ {
		b.pushIndex(i)
		if err := b.segment(); err != nil {
			return err
		}
		b.pop()
	}
	return nil
}

func (b *bundleReader) segment() error {
	if err := b.load(); err != nil {
		return err
	}
	if b.crew != nil {
		return b.crew.take(&b.cursor)
	}
	s := new(Segment)
	if err := decodeRecord(&b.cursor, s, segmentFields); err != nil {
		return err
	}
	return b.visit(s)
}

func (b *bundleReader) scope() error {
	if err := b.load(); err != nil {
		return err
	}
	return decodeRecord(&b.cursor, &b.env.Scope, scopeFields)
}

func (b *bundleReader) head() error {
	if err := b.load(); err != nil {
		return err
	}
	return b.optDigest(&b.env.Head)
}

func (b *bundleReader) anchors() error {
	if err := b.load(); err != nil {
		return err
	}
	if isEmptyObject(b.text) {
		b.report(EmptyOptional, 0)
	}
	return decodeRecord(&b.cursor, &b.env.Anchors, anchorFields)
}

func isEmptyObject(value []byte) bool {
	return value[0] == '{' && len(bytes.TrimSpace(value[1:])) == 1
}

func (b *bundleReader) signature() error {
	if err := b.load(); err != nil {
		return err
	}
	b.env.Signature = new(Signature)
	return decodeRecord(&b.cursor, b.env.Signature, signatureFields)
}
