package segments

import (
	"errors"
	"fmt"
	"io"
)

const writeChunk = 32 << 10 // bytes gathered before they are passed on

var errWriterClosed = errors.New("bundle writer is closed")

// BundleWriter writes a bundle to an [io.Writer] segment by segment, in memory
// that does not grow with the chain. The bytes are those of [AppendBundle].
// What was written is a bundle only when Close returned nil.
type BundleWriter struct {
	w    io.Writer
	buf  []byte
	some bool  // a segment was written
	err  error // sticky
}

// NewBundleWriter starts a bundle. Nothing reaches w before a chunk is full
// or Close is called. The caller keeps w: Close neither syncs nor closes it.
func NewBundleWriter(w io.Writer, scope *Scope) *BundleWriter {
	return &BundleWriter{w: w, buf: appendPreamble(nil, scope)}
}

// Write appends a segment, exactly as given.
func (b *BundleWriter) Write(s *Segment) error {
	if b.err != nil {
		return b.err
	}
	if b.some {
		b.buf = append(b.buf, ',')
	}
	b.some = true
	b.buf = AppendSegment(b.buf, s)
	if len(b.buf) < writeChunk {
		return nil
	}
	return b.flush()
}

// Close ends the bundle and writes what is left. head is nil only for an
// empty chain; zero anchors and a nil signature are left out.
func (b *BundleWriter) Close(head *Digest, anchors Anchors, sig *Signature) error {
	if b.err != nil {
		return b.err
	}
	b.buf = appendEpilogue(b.buf, head, &anchors, sig)
	if err := b.flush(); err != nil {
		return err
	}
	b.err = errWriterClosed
	return nil
}

func (b *BundleWriter) flush() error {
	if _, err := b.w.Write(b.buf); err != nil {
		b.err = fmt.Errorf("write bundle: %w", err)
	}
	b.buf = b.buf[:0]
	return b.err
}
