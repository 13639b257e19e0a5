package store

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// The pages of a bbolt file, read as plain bytes and never through the map: a
// damaged file cannot end the process here. Integers are in the machine's order.
//
//	page: id u64, flags u16, count u16, overflow u32, then by flags
//	meta: magic u32, version u32, page size u32, flags u32, root page u64,
//	      sequence u64, freelist page u64, page count u64, transaction u64,
//	      FNV-1a 64 of the 56 bytes before
//	branch: count × (position u32, key length u32, page u64), keys
//	leaf: count × (flags u32, position u32, key length u32, value length u32), data
//	freelist: count × page u64; count 65535: the first one is the count
//
// Positions count from the element itself.
const (
	pageHeader  = 16
	metaSize    = 64
	metaMagic   = 0xED0CDAED
	metaVersion = 2
	noFreelist  = 1<<64 - 1

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagMeta     = 0x04
	flagFreelist = 0x10
	flagBucket   = 0x01 // of a leaf element
)

// metaPage is one of the two meta pages.
type metaPage struct {
	pageSize                        uint32
	root, freelist, pages, transact uint64
}

// pageFile reads pages of one snapshot of a file.
type pageFile struct {
	f           io.ReaderAt
	size        int64 // bytes
	meta        metaPage
	damagedMeta int // number of the damaged meta page; -1: none
}

// openPages looks at the size and both meta pages.
func openPages(f *os.File) (*pageFile, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	p := &pageFile{f: f, size: info.Size(), damagedMeta: -1}
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: not a regular file", ErrForeign)
	case p.size == 0:
		return nil, fmt.Errorf("%w: it is empty", ErrTruncated)
	}
	if err := p.readMetas(); err != nil {
		return nil, err
	}
	switch m := &p.meta; {
	case m.root >= m.pages || m.freelist >= m.pages && m.freelist != noFreelist:
		return nil, fmt.Errorf("%w: the meta page names pages beyond the end", ErrCorrupt)
	case m.pages > uint64(p.size)/uint64(m.pageSize):
		return nil, fmt.Errorf("%w: %d bytes, but %d pages of %d bytes are in use", ErrTruncated, p.size, m.pages, m.pageSize)
	}
	return p, nil
}

// readMetas finds the meta page of the last transaction. One damaged meta page
// is what a crash in the middle of a commit leaves; the other one stands then.
func (p *pageFile) readMetas() error {
	first, second, magic, err := p.bothMetas()
	switch {
	case err != nil:
		return err
	case first == nil && second == nil && !magic:
		return fmt.Errorf("%w: not a bbolt database", ErrForeign)
	case first == nil && second == nil:
		return fmt.Errorf("%w: both meta pages are damaged", ErrCorrupt)
	case first == nil:
		p.damagedMeta, p.meta = 0, *second
	case second == nil:
		p.damagedMeta, p.meta = 1, *first
	case first.transact > second.transact:
		p.meta = *first
	default:
		p.meta = *second
	}
	return nil
}

// bothMetas reads the meta pages; nil: damaged. magic tells whether either
// looks like one at all.
func (p *pageFile) bothMetas() (first, second *metaPage, magic bool, err error) {
	first, magic, err = p.readMeta(0)
	if err != nil {
		return nil, nil, false, err
	}
	size := int64(os.Getpagesize())
	if first != nil {
		size = int64(first.pageSize)
	}
	second, magic2, err := p.readMeta(size)
	return first, second, magic || magic2, err
}

// readMeta reads the meta page at an offset; nil: it is damaged. magic tells
// whether it looks like one at all.
func (p *pageFile) readMeta(at int64) (m *metaPage, magic bool, err error) {
	var b [pageHeader + metaSize]byte
	if at+int64(len(b)) > p.size {
		return nil, false, fmt.Errorf("%w: %d bytes do not hold two meta pages", ErrTruncated, p.size)
	}
	if _, err := p.f.ReadAt(b[:], at); err != nil {
		return nil, false, err
	}
	u32 := binary.NativeEndian.Uint32
	u64 := binary.NativeEndian.Uint64
	meta := b[pageHeader:]
	h := fnv.New64a()
	h.Write(meta[:metaSize-8])
	magic = u32(meta) == metaMagic
	m = &metaPage{pageSize: u32(meta[8:]), root: u64(meta[16:]), freelist: u64(meta[32:]),
		pages: u64(meta[40:]), transact: u64(meta[48:])}
	if !magic || u32(meta[4:]) != metaVersion || u64(meta[56:]) != h.Sum64() ||
		m.pageSize < minPageSize || m.pageSize > maxPageSize || m.pageSize&(m.pageSize-1) != 0 {
		return nil, magic, nil
	}
	return m, magic, nil
}

// page is the content of a page with its overflow pages.
type page struct {
	id    uint64
	flags uint16
	count int
	span  uint64 // pages it takes
	data  []byte // with the header
}

// read reads a page that may be anything.
func (p *pageFile) read(id uint64, buf []byte) (*page, []byte, error) {
	size := int64(p.meta.pageSize)
	if id >= p.meta.pages {
		return nil, buf, fmt.Errorf("page %d lies beyond the end", id)
	}
	var head [pageHeader]byte
	if _, err := p.f.ReadAt(head[:], int64(id)*size); err != nil {
		return nil, buf, fmt.Errorf("page %d cannot be read: %w", id, err)
	}
	g := &page{id: id, flags: binary.NativeEndian.Uint16(head[8:]), count: int(binary.NativeEndian.Uint16(head[10:])),
		span: uint64(binary.NativeEndian.Uint32(head[12:])) + 1}
	if own := binary.NativeEndian.Uint64(head[:]); own != id {
		return nil, buf, fmt.Errorf("page %d says that it is page %d", id, own)
	}
	if g.span > maxPageSpan || id+g.span > p.meta.pages {
		return nil, buf, fmt.Errorf("page %d runs beyond the end", id)
	}
	n := int64(g.span) * size
	if int64(cap(buf)) < n {
		buf = make([]byte, n)
	}
	g.data = buf[:n]
	if _, err := p.f.ReadAt(g.data, int64(id)*size); err != nil {
		return nil, buf, fmt.Errorf("page %d cannot be read: %w", id, err)
	}
	return g, buf, nil
}

// freelist reads the numbers of the free pages.
func (p *pageFile) freelist() (free []uint64, span uint64, err error) {
	if p.meta.freelist == noFreelist {
		return nil, 0, nil
	}
	g, _, err := p.read(p.meta.freelist, nil)
	if err != nil {
		return nil, 0, err
	}
	if g.flags != flagFreelist {
		return nil, 0, fmt.Errorf("page %d is no freelist", g.id)
	}
	count, at := uint64(g.count), pageHeader
	if count == 0xFFFF {
		count, at = binary.NativeEndian.Uint64(g.data[at:]), at+8
	}
	if count > uint64(len(g.data)-at)/8 {
		return nil, 0, fmt.Errorf("freelist page %d is too short for %d pages", g.id, count)
	}
	free = make([]uint64, count)
	for i := range free {
		free[i] = binary.NativeEndian.Uint64(g.data[at+8*i:])
		if free[i] < 2 || free[i] >= p.meta.pages || i > 0 && free[i] <= free[i-1] {
			return nil, 0, fmt.Errorf("freelist page %d is out of order", g.id)
		}
	}
	return free, g.span, nil
}

func (p *pageFile) checkFreelist() error {
	free, span, err := p.freelist()
	if err != nil {
		return fmt.Errorf("%w: %v", ErrCorrupt, err)
	}
	for _, id := range free {
		if id == p.meta.root || p.meta.freelist <= id && id < p.meta.freelist+span {
			return fmt.Errorf("%w: page %d is in use and free", ErrCorrupt, id)
		}
	}
	return nil
}
