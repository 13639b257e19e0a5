package main

import (
	"errors"
	"net"
	"sync"
	"time"
)

// wire is a TCP proxy that can be cut and slowed down. A slow wire holds each
// piece of data for a time, by a timer that the cutting of the wire ends: the delay is
// what is simulated, and nobody waits for anything by it.
type wire struct {
	listener net.Listener
	target   string
	wg       sync.WaitGroup

	mu    sync.Mutex
	open  map[net.Conn]struct{}
	cut   chan struct{} // closed while the wire is cut
	delay time.Duration // before each piece of data
}

func newWire(target string) (*wire, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wire{listener: l, target: target, open: map[net.Conn]struct{}{}, cut: make(chan struct{})}
	w.wg.Go(w.accept)
	return w, nil
}

func (w *wire) url() string { return "nats://" + w.listener.Addr().String() }

func (w *wire) accept() {
	for {
		in, err := w.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		w.wg.Go(func() { w.join(in) })
	}
}

// join connects both ends until one of them, or the wire, is gone.
func (w *wire) join(in net.Conn) {
	defer in.Close()
	if !w.add(in) {
		return
	}
	defer w.drop(in)
	out, err := net.DialTimeout("tcp", w.target, time.Second)
	if err != nil {
		return
	}
	defer out.Close()
	if !w.add(out) {
		return
	}
	defer w.drop(out)
	var both sync.WaitGroup
	both.Go(func() { w.pump(in, out) })
	both.Go(func() { w.pump(out, in) })
	both.Wait()
}

func (w *wire) pump(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		w.hold()
		if _, failed := to.Write(buffer[:n]); failed != nil || err != nil {
			return
		}
	}
}

// hold keeps a piece of data back for as long as the wire is slow.
func (w *wire) hold() {
	w.mu.Lock()
	delay, cut := w.delay, w.cut
	w.mu.Unlock()
	if delay == 0 {
		return
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-cut:
	}
}

// isCut is called with the lock held.
func (w *wire) isCut() bool {
	select {
	case <-w.cut:
		return true
	default:
		return false
	}
}

func (w *wire) add(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isCut() {
		return false
	}
	w.open[c] = struct{}{}
	return true
}

func (w *wire) drop(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, c)
}

// set cuts the wire, or mends it, and sets its delay.
func (w *wire) set(cut bool, delay time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay = delay
	switch was := w.isCut(); {
	case cut && !was:
		close(w.cut)
	case !cut && was:
		w.cut = make(chan struct{})
	}
	if cut {
		for c := range w.open {
			c.Close()
		}
	}
}

func (w *wire) close() {
	w.listener.Close()
	w.set(true, 0)
	w.wg.Wait()
}
