package segments

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The steps of a bundleReader over its decoder.

// mark says that an item ends here: the next one may be as long as allowed.
func (b *bundleReader) mark() {
	b.text, b.pos, b.base = nil, 0, b.dec.InputOffset()
	b.in.end = b.base + b.in.maxItem
}

// open reads the start of an object or array, one of want.
func (b *bundleReader) open(want, reason string) (jsontext.Kind, error) {
	if b.depth == 0 {
		b.mark()
	}
	kind := b.dec.PeekKind()
	if kind != jsontext.KindInvalid && !strings.ContainsRune(want, rune(kind)) {
		return 0, b.fail(0, "%s", reason)
	}
	if _, err := b.dec.ReadToken(); err != nil {
		return 0, b.refuse(err, "")
	}
	b.mark()
	b.base--
	b.depth++
	return kind, nil
}

// more reports whether another value follows in the container opened last;
// a fault shows when it is read.
func (b *bundleReader) more() bool {
	b.mark()
	kind := b.dec.PeekKind()
	return kind != jsontext.KindEndObject && kind != jsontext.KindEndArray
}

func (b *bundleReader) close() error {
	b.depth--
	if _, err := b.dec.ReadToken(); err != nil {
		return b.refuse(err, "")
	}
	return nil
}

// load takes the next value or name as a whole.
func (b *bundleReader) load() error {
	value, err := b.dec.ReadValue()
	if err != nil {
		return b.refuse(err, "")
	}
	b.text, b.pos, b.base = value, 0, b.dec.InputOffset()-int64(len(value))
	return nil
}

// refuse turns what the decoder said into our error; otherwise is said when
// it found no fault.
func (b *bundleReader) refuse(err error, otherwise string) error {
	var tooDeep *DecodeError
	switch {
	case b.in.err != nil:
		return b.in.err
	case errors.As(err, &tooDeep):
		return deep(b.pointer(), tooDeep.Offset)
	case err == nil:
		return b.fail(0, "%s", otherwise)
	}
	e := syntaxError(err, b.dec.InputOffset())
	e.Path = b.pointer()
	return e
}

// meter passes on what r has, up to the limits, and keeps its first error.
type meter struct {
	r       io.Reader
	n       int64 // bytes passed on
	end     int64 // of the current item at most
	max     int64 // of the whole input
	maxItem int64
	depth   nesting
	deep    error // where it ends, since what follows is nested too deep
	err     error // not io.EOF
}

func (m *meter) Read(p []byte) (int, error) {
	// One byte beyond the limit may pass: an input that just fits must be
	// able to show its end.
	room := min(m.end, m.max) + 1 - m.n
	if room <= 0 {
		m.err = fmt.Errorf("read bundle: item at offset %d: %w", m.end-m.maxItem, ErrTooLarge)
		return 0, m.err
	}
	if m.deep != nil {
		return 0, m.deep
	}
	n, err := m.r.Read(p[:min(int64(len(p)), room)])
	if at := m.depth.tooDeep(p[:n]); at >= 0 {
		m.deep = deep("", m.n+int64(at))
		return at, m.deep
	}
	m.n += int64(n)
	if err != nil && err != io.EOF {
		m.err = fmt.Errorf("read bundle: %w", err)
		err = m.err
	}
	return n, err
}
