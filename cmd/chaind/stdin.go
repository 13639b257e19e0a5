package main

import (
	"context"
	"io"
	"os"
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

// open opens a file by name, unless the program is told to stop first: opening
// a pipe waits for its other end.
func (a *app) open(name string) (*os.File, error) {
	return await(a.ctx, func() (*os.File, error) { return os.Open(name) })
}

// await gives what f gives, unless ctx ends first.
func await[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() { // ends with f, or with the process
		value, err := f()
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// reading gives a reader of an open file that a signal ends, also where the
// file is a pipe or a terminal.
func (a *app) reading(f *os.File) io.Reader {
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		return f
	}
	return &breakable{ctx: a.ctx, in: f}
}
