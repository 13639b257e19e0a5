package main

import (
	"context"
	"io"
	"sync"
)

// breakable is an input whose Read returns when ctx ends. A read of a terminal
// or a pipe itself cannot be called off: without this a signal would wait for
// the input to end, and of an input without end nothing could be stopped.
type breakable struct {
	ctx   context.Context
	in    io.Reader
	begin sync.Once // nothing is read before somebody asks
	out   *io.PipeReader
}

func (b *breakable) Read(p []byte) (int, error) {
	b.begin.Do(func() {
		out, in := io.Pipe()
		b.out = out
		context.AfterFunc(b.ctx, func() { in.CloseWithError(context.Cause(b.ctx)) })
		go func() { // ends with the input, or with the process
			_, err := io.Copy(in, b.in)
			in.CloseWithError(err)
		}()
	})
	return b.out.Read(p)
}
