package export

import (
	"archive/zip"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// Parts of a ZIP file, after PKWARE's APPNOTE.TXT, section 4.3: their first
// bytes and, where it is fixed, their length.
const (
	localHeader    = "PK\x03\x04" // one before each file
	localBytes     = 30
	centralHeader  = "PK\x01\x02" // one for each file, in the directory
	centralBytes   = 46
	endRecord      = "PK\x05\x06" // of the directory, the last of all
	endBytes       = 22
	end64Record    = "PK\x06\x06" // before it in large files
	end64Bytes     = 56
	end64Locator   = "PK\x06\x07"
	end64Locates   = 20
	descriptorSign = "PK\x07\x08" // behind a file that was written as a stream; may be absent
	streamed       = 0x8          // flag: sizes follow the file
	in64           = 1<<32 - 1    // the value is in the zip64 extra field
)

// layout says what in a ZIP file belongs to no entry, and where the header in
// front of a file contradicts the directory. Without a fault the entries fill
// the file from its first byte to the directory, and that to the end, so that
// readers that go by the one and by the other see the same.
func layout(r io.ReaderAt, size int64, files []*zip.File) []fault {
	p := &plan{r: r}
	begin, end, ok := p.directory(size)
	for _, f := range files {
		end -= centralLength(f)
	}
	switch {
	case !ok:
		p.fault("", "has bytes or a comment behind its directory")
		return p.faults
	case begin != end:
		p.fault("", "has bytes in front of its entries or around its directory")
		return p.faults
	}
	spans := make([]span, len(files))
	for i, f := range files {
		spans[i] = p.entry(f, end)
		end += centralLength(f)
	}
	p.tile(spans, begin)
	return p.faults
}

func centralLength(f *zip.File) int64 {
	return centralBytes + int64(len(f.Name)+len(f.Extra)+len(f.Comment))
}

// plan is a look at a ZIP file under way.
type plan struct {
	r      io.ReaderAt
	faults []fault
}

func (p *plan) fault(path, detail string) { p.faults = append(p.faults, fault{path, detail}) }

// read gives n bytes; nil when they are not there.
func (p *plan) read(at, n int64) []byte {
	b := make([]byte, n)
	if at < 0 {
		return nil
	}
	if got, _ := p.r.ReadAt(b, at); int64(got) < n {
		return nil
	}
	return b
}

// part gives a part of n bytes that begins with sign; nil when it is not there.
func (p *plan) part(at int64, sign string, n int64) []byte {
	if b := p.read(at, n); b != nil && string(b[:4]) == sign {
		return b
	}
	return nil
}

// directory gives where the directory begins, as the end of the file says, and
// where it ends. False: that end is not the last thing in the file.
func (p *plan) directory(size int64) (begin, end int64, ok bool) {
	b := p.part(size-endBytes, endRecord, endBytes)
	if b == nil || number16(b[20:]) != 0 {
		return 0, 0, false
	}
	begin, end = number32(b[16:]), size-endBytes
	locator := p.part(end-end64Locates, end64Locator, end64Locates)
	if locator == nil {
		return begin, end, true
	}
	record := p.part(end-end64Locates-end64Bytes, end64Record, end64Bytes)
	if record == nil || number64(record[4:]) != end64Bytes-12 || number64(locator[8:]) != end-end64Locates-end64Bytes {
		return 0, 0, false
	}
	if wide := number64(record[48:]); begin == in64 || begin == wide {
		return wide, end - end64Locates - end64Bytes, true
	}
	return 0, 0, false
}

// span is where an entry lies: header, content, and what follows it.
type span struct {
	path     string
	from, to int64
}

// entry examines the two headers of a file; at is where that of the directory
// is.
func (p *plan) entry(f *zip.File, at int64) span {
	s := span{path: f.Name}
	central := p.part(at, centralHeader, centralBytes)
	if central == nil {
		p.fault(f.Name, "is not where the directory has it")
		return s
	}
	if f.Comment != "" {
		p.fault(f.Name, "has a comment in the archive")
	}
	s.from = number32(central[42:])
	if s.from == in64 {
		wide := widened(f.Extra, number32(central[24:]) == in64, number32(central[20:]) == in64, true)
		s.from = wide[2]
	}
	s.to = p.local(f, s.from)
	return s
}

// local examines the header in front of a file and gives where the entry ends.
func (p *plan) local(f *zip.File, at int64) int64 {
	h := p.part(at, localHeader, localBytes)
	if h == nil {
		p.fault(f.Name, "has no header where the directory says")
		return at
	}
	name, extra := number16(h[26:]), number16(h[28:])
	to := at + localBytes + name + extra
	rest := p.read(at+localBytes, name+extra)
	if rest == nil {
		p.fault(f.Name, "has a header that is cut off")
		return at
	}
	if own := string(rest[:name]); own != f.Name {
		p.fault(f.Name, "is named "+shown(own)+" by the header in front of it")
	}
	if max(extra, int64(len(f.Extra))) > maxExtra {
		p.fault(f.Name, fmt.Sprintf("has extra fields of more than %d bytes", maxExtra))
	}
	if !agrees(f, h, rest[name:]) {
		p.fault(f.Name, "has other sizes, checksum or flags in the header in front of it than in the directory")
	}
	to += int64(f.CompressedSize64)
	if f.Flags&streamed == 0 {
		return to
	}
	n := p.descriptor(f, to)
	if n == 0 {
		p.fault(f.Name, "is not followed by its sizes and checksum")
	}
	return to + n
}

// agrees compares a header with the directory. A stream's may leave open what
// is known only at its end.
func agrees(f *zip.File, h, extra []byte) bool {
	unpacked, packed := number32(h[22:]), number32(h[18:])
	wide := widened(extra, unpacked == in64, packed == in64, false)
	if unpacked == in64 {
		unpacked = wide[0]
	}
	if packed == in64 {
		packed = wide[1]
	}
	same := func(own int64, listed uint64) bool {
		return uint64(own) == listed || f.Flags&streamed != 0 && own == 0
	}
	return number16(h[6:]) == int64(f.Flags) && number16(h[8:]) == int64(f.Method) && same(number32(h[14:]), uint64(f.CRC32)) &&
		same(packed, f.CompressedSize64) && same(unpacked, f.UncompressedSize64)
}

// descriptor gives the length of what follows a file that was written as a
// stream: checksum and sizes, these in 4 or 8 bytes, with or without a sign in
// front. The longer forms come first: of an empty file the shorter one is the
// beginning of the longer. 0: none fits.
func (p *plan) descriptor(f *zip.File, at int64) int64 {
	var sum, short, long [8]byte
	binary.LittleEndian.PutUint32(sum[:], f.CRC32)
	binary.LittleEndian.PutUint64(short[:], f.CompressedSize64)
	binary.LittleEndian.PutUint64(long[:], f.UncompressedSize64)
	for _, sign := range []string{descriptorSign, ""} {
		for _, width := range []int{8, 4} {
			want := sign + string(sum[:4]) + string(short[:width]) + string(long[:width])
			if string(p.read(at, int64(len(want)))) == want {
				return int64(len(want))
			}
		}
	}
	return 0
}

// tile finds gaps and overlaps between the entries, which must end where the
// directory begins.
func (p *plan) tile(spans []span, directory int64) {
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	at := int64(0)
	for _, s := range append(spans, span{"", directory, directory}) {
		switch {
		case s.from > at:
			p.fault(s.path, fmt.Sprintf("has %d bytes in front of it that belong to no file", s.from-at))
		case s.from < at:
			p.fault(s.path, "shares bytes with the entry before it")
		}
		at = max(at, s.to)
	}
}

// widened reads the zip64 extra field: the sizes unpacked and packed and the
// offset, of which it has those that are asked for. What is not there is -1.
func widened(extra []byte, asked ...bool) [3]int64 {
	values := [3]int64{-1, -1, -1}
	for len(extra) >= 4 {
		id, n := number16(extra), number16(extra[2:])
		extra = extra[4:]
		if n > int64(len(extra)) {
			return values
		}
		field := extra[:n]
		extra = extra[n:]
		for i := 0; id == 1 && i < len(asked); i++ {
			if asked[i] && len(field) >= 8 {
				values[i], field = number64(field), field[8:]
			}
		}
	}
	return values
}

func number16(b []byte) int64 { return int64(binary.LittleEndian.Uint16(b)) }
func number32(b []byte) int64 { return int64(binary.LittleEndian.Uint32(b)) }

// number64 gives -1 for what no file can have.
func number64(b []byte) int64 { return max(int64(binary.LittleEndian.Uint64(b)), -1) }
