//go:build js && wasm

package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"syscall/js"
)

// fault is the first reason why bytes of a page's files were not to be had. What
// was found out about files without them is worth nothing.
type fault struct{ err error }

// turn is after how many bytes the collector of garbage has its turn. In WebAssembly
// nothing interrupts a goroutine, so that without one garbage would stay until the end.
const turn = 1 << 20

// content reads a file of the page, never all of it at once.
type content struct {
	value      js.Value
	next, size int64
	due        int64 // bytes until the collector's turn
	unread     *fault
}

func newContent(value js.Value, unread *fault) *content {
	return &content{value: value, size: sizeOf(value), due: turn, unread: unread}
}

func sizeOf(value js.Value) int64 { return int64(value.Get("size").Float()) }

func (c *content) Read(p []byte) (int, error) {
	n, err := c.some(p, c.next)
	c.next += int64(n)
	return n, err
}

// ReadAt implements io.ReaderAt.
func (c *content) ReadAt(p []byte, offset int64) (int, error) {
	n := 0
	for n < len(p) {
		more, err := c.some(p[n:], offset+int64(n))
		if n += more; err != nil {
			return n, err
		}
	}
	return n, nil
}

// some reads what the page has at hand of the bytes from an offset on.
func (c *content) some(p []byte, offset int64) (int, error) {
	if offset < 0 || offset >= c.size {
		return 0, io.EOF
	}
	if c.due -= int64(len(p)); c.due < 0 {
		c.due = turn
		runtime.Gosched()
	}
	piece := c.value.Call("read", float64(offset))
	if piece.Type() == js.TypeString {
		return 0, c.fail(errors.New(piece.String()))
	}
	n := js.CopyBytesToGo(p, piece)
	if n == 0 && len(p) > 0 {
		return 0, c.fail(io.ErrUnexpectedEOF)
	}
	return n, nil
}

func (c *content) fail(err error) error {
	err = fmt.Errorf("read file: %w", err)
	if c.unread.err == nil {
		c.unread.err = err
	}
	return err
}
