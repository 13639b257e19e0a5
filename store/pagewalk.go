package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// pageWalk visits every page that a snapshot can reach, once.
type pageWalk struct {
	*pageFile
	reached  []uint64 // one bit a page
	count    uint64
	broken   bool     // something was found that is worse than pages without use
	buffers  [][]byte // one a level
	finding  func(detail string)
	progress func(done, total uint64) error
}

// errPages: to walk these pages as a tree may never end.
var errPages = errors.New("the pages do not make trees")

// structure wants the pages of a file that nobody has vouched for, a copy say,
// to make trees, before bbolt follows them: it would go round in a circle for
// ever, taking memory with each turn. Pages that nobody uses are no harm.
func (p *pageFile) structure() error {
	var first string
	w := &pageWalk{pageFile: p, progress: func(uint64, uint64) error { return nil }}
	w.finding = func(detail string) {
		if first == "" {
			first = detail
		}
	}
	if err := w.run(); err != nil {
		return err
	}
	if w.broken {
		return fmt.Errorf("%w: %w: %s", ErrCorrupt, errPages, first)
	}
	return nil
}

// snapshotPages are the pages as transaction tx sees them, which must stay open
// while they are read. Two commits may have taken its meta page meanwhile; nil
// is returned then.
func snapshotPages(f *os.File, tx uint64) (*pageFile, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	p := &pageFile{f: f, size: info.Size(), damagedMeta: -1}
	first, second, _, err := p.bothMetas()
	if err != nil {
		return nil, err
	}
	for _, m := range []*metaPage{first, second} {
		if m != nil && m.transact == tx {
			p.meta = *m
			return p, nil
		}
	}
	return nil, nil
}

func (w *pageWalk) run() error {
	w.reached = make([]uint64, w.meta.pages/64+1)
	w.mark(0, 1)
	w.mark(1, 1)
	free, span, err := w.freelist()
	if err != nil {
		w.damage(err.Error())
	} else if w.meta.freelist != noFreelist {
		w.mark(w.meta.freelist, span)
	}
	if err := w.tree(w.meta.root, 0, nil); err != nil {
		return err
	}
	for _, id := range free {
		if w.isReached(id) {
			w.damage(fmt.Sprintf("page %d is in use and free", id))
		}
		w.set(id)
	}
	if err != nil || w.meta.freelist == noFreelist {
		return nil
	}
	for id := range w.meta.pages {
		if !w.isReached(id) {
			w.finding(fmt.Sprintf("page %d is neither in use nor free", id))
		}
	}
	return nil
}

func (w *pageWalk) damage(detail string) {
	w.broken = true
	w.finding(detail)
}

func (w *pageWalk) isReached(id uint64) bool { return w.reached[id/64]&(1<<(id%64)) != 0 }
func (w *pageWalk) set(id uint64)            { w.reached[id/64] |= 1 << (id % 64) }

// mark takes pages and tells whether nobody had them before.
func (w *pageWalk) mark(id, span uint64) bool {
	for i := id; i < id+span; i++ {
		if w.isReached(i) {
			w.damage(fmt.Sprintf("page %d is used twice", i))
			return false
		}
		w.set(i)
		w.count++
	}
	return true
}

// tree walks the pages below one page. low is the key that the page above gives
// for it. An error is one of the caller's context; damage is a finding.
func (w *pageWalk) tree(id uint64, depth int, low []byte) error {
	if err := w.progress(w.count, w.meta.pages); err != nil {
		return err
	}
	if depth == maxTreeDepth {
		w.damage(fmt.Sprintf("page %d lies too deep", id))
		return nil
	}
	for len(w.buffers) <= depth {
		w.buffers = append(w.buffers, nil)
	}
	g, buf, err := w.read(id, w.buffers[depth])
	w.buffers[depth] = buf
	if err != nil {
		w.damage(err.Error())
		return nil
	}
	if !w.mark(id, g.span) {
		return nil
	}
	return w.elements(g, depth, low)
}

// elements checks a branch or leaf page and walks what it refers to.
func (w *pageWalk) elements(g *page, depth int, low []byte) error {
	if g.flags != flagBranch && g.flags != flagLeaf {
		w.damage(fmt.Sprintf("page %d is of no kind that a tree has", g.id))
		return nil
	}
	if pageHeader+16*g.count > len(g.data) {
		w.damage(fmt.Sprintf("page %d is too short for %d elements", g.id, g.count))
		return nil
	}
	last := low
	for i := range g.count {
		e, ok := g.element(i)
		if !ok {
			w.damage(fmt.Sprintf("element %d of page %d runs beyond it", i, g.id))
			return nil
		}
		if c := bytes.Compare(e.key, last); last != nil && (c < 0 || c == 0 && i > 0) {
			w.damage(fmt.Sprintf("element %d of page %d is out of order", i, g.id))
		}
		last = e.key
		if err := w.below(g, &e, depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *pageWalk) below(g *page, e *element, depth int) error {
	switch {
	case g.flags == flagBranch:
		return w.tree(e.page, depth+1, e.key)
	case e.flags&flagBucket == 0:
		return nil
	case len(e.value) < 16:
		w.damage(fmt.Sprintf("bucket %q on page %d is too short", e.key, g.id))
		return nil
	}
	if root := binary.NativeEndian.Uint64(e.value); root != 0 {
		return w.tree(root, depth+1, nil)
	}
	inline := &page{id: g.id, data: e.value[16:]}
	if len(inline.data) < pageHeader {
		w.damage(fmt.Sprintf("bucket %q on page %d is too short", e.key, g.id))
		return nil
	}
	inline.flags = binary.NativeEndian.Uint16(inline.data[8:])
	inline.count = int(binary.NativeEndian.Uint16(inline.data[10:]))
	return w.elements(inline, depth+1, nil)
}

// element is one entry of a branch (key and page) or leaf (flags, key, value).
type element struct {
	flags      uint32
	page       uint64
	key, value []byte
}

func (g *page) element(i int) (element, bool) {
	at := pageHeader + 16*i
	u32 := func(o int) uint64 { return uint64(binary.NativeEndian.Uint32(g.data[at+o:])) }
	var e element
	var pos, klen, vlen uint64
	if g.flags == flagBranch {
		pos, klen, e.page = u32(0), u32(4), binary.NativeEndian.Uint64(g.data[at+8:])
	} else {
		e.flags, pos, klen, vlen = uint32(u32(0)), u32(4), u32(8), u32(12)
	}
	start := uint64(at) + pos
	if start > uint64(len(g.data)) || klen+vlen > uint64(len(g.data))-start {
		return e, false
	}
	e.key = g.data[start : start+klen]
	e.value = g.data[start+klen : start+klen+vlen]
	return e, true
}
