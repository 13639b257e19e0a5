package export_test

import (
	"encoding/binary"
	"hash/crc32"
	"maps"
	"slices"
	"testing/fstest"
)

var le = binary.LittleEndian

// packer writes ZIP files of stored files byte by byte, as tools do and as none
// does.
type packer struct {
	stream bool // sizes and checksum behind each file
	bare   bool // without a sign in front of them
	wide   bool // sizes and offsets in 64 bits
	before func(i int) string
	local  func(name string) string // name in the header in front of the file
	behind string                   // behind the last file
	extra  int                      // bytes of one more extra field
	end    string                   // behind the end
}

func (p *packer) pack(files fstest.MapFS) []byte {
	var out, directory []byte
	for i, name := range slices.Sorted(maps.Keys(files)) {
		if p.before != nil {
			out = append(out, p.before(i)...)
		}
		at, content, own := len(out), files[name].Data, name
		if p.local != nil {
			own = p.local(name)
		}
		fields := p.fields(content, nil, p.stream)
		out = append(p.header(append(out, "PK\x03\x04"...), own, content, fields, p.stream), own...)
		out = append(append(out, fields...), content...)
		if p.stream {
			out = p.descriptor(out, content)
		}
		fields = p.fields(content, &at, false)
		directory = p.header(append(directory, "PK\x01\x02\x2d\x03"...), name, content, fields, false)
		directory = append(directory, make([]byte, 10)...)
		directory = append(le.AppendUint32(directory, p.narrow(at)), name...)
		directory = append(directory, fields...)
	}
	out = append(out, p.behind...)
	return append(p.ending(append(out, directory...), len(out), len(directory), len(files)), p.end...)
}

func (p *packer) narrow(n int) uint32 {
	if p.wide {
		return 1<<32 - 1
	}
	return uint32(n)
}

// header is what both headers have in common, up to the length of the extra
// field. Open: a stream's, whose sum and sizes are not known yet.
func (p *packer) header(to []byte, name string, content, fields []byte, open bool) []byte {
	flags, sum, size := uint16(0), crc32.ChecksumIEEE(content), p.narrow(len(content))
	if p.stream {
		flags = 8
	}
	if open {
		sum, size = 0, p.narrow(0)
	}
	to = le.AppendUint16(le.AppendUint16(to, 45), flags)
	to = append(to, make([]byte, 6)...) // stored, without a time
	to = le.AppendUint32(le.AppendUint32(le.AppendUint32(to, sum), size), size)
	return le.AppendUint16(le.AppendUint16(to, uint16(len(name))), uint16(len(fields)))
}

// fields are the extra fields of a header.
func (p *packer) fields(content []byte, at *int, open bool) (to []byte) {
	if p.extra > 0 {
		to = append(le.AppendUint16(le.AppendUint16(to, 0x5858), uint16(p.extra)), make([]byte, p.extra)...)
	}
	if !p.wide {
		return to
	}
	size, length := uint64(len(content)), uint16(16)
	if open {
		size = 0
	}
	if at != nil {
		length = 24
	}
	to = le.AppendUint16(le.AppendUint16(to, 1), length)
	to = le.AppendUint64(le.AppendUint64(to, size), size)
	if at != nil {
		to = le.AppendUint64(to, uint64(*at))
	}
	return to
}

func (p *packer) descriptor(to, content []byte) []byte {
	if !p.bare {
		to = append(to, "PK\x07\x08"...)
	}
	to = le.AppendUint32(to, crc32.ChecksumIEEE(content))
	if p.wide {
		return le.AppendUint64(le.AppendUint64(to, uint64(len(content))), uint64(len(content)))
	}
	return le.AppendUint32(le.AppendUint32(to, uint32(len(content))), uint32(len(content)))
}

func (p *packer) ending(to []byte, begin, size, n int) []byte {
	if p.wide {
		at := len(to)
		to = le.AppendUint64(append(to, "PK\x06\x06"...), 44)
		to = append(to, 45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0)
		to = le.AppendUint64(le.AppendUint64(to, uint64(n)), uint64(n))
		to = le.AppendUint64(le.AppendUint64(to, uint64(size)), uint64(begin))
		to = append(to, "PK\x06\x07\x00\x00\x00\x00"...)
		to = le.AppendUint32(le.AppendUint64(to, uint64(at)), 1)
	}
	to = append(to, "PK\x05\x06\x00\x00\x00\x00"...)
	to = le.AppendUint16(le.AppendUint16(to, uint16(n)), uint16(n))
	to = le.AppendUint32(le.AppendUint32(to, p.narrow(size)), p.narrow(begin))
	return le.AppendUint16(to, 0)
}
