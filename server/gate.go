package server

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// errBusy reports that no verification became free in time.
var errBusy = errors.New("all verifications are taken")

// gate bounds how many verifications run at once; each may hold a whole file
// in memory and keeps one core busy.
type gate struct {
	slots chan struct{}
	wait  time.Duration // how long to wait for a free slot
}

func newGate(n int, wait time.Duration) *gate {
	return &gate{slots: make(chan struct{}, n), wait: wait}
}

// enter takes a slot and returns how to give it back. It fails with errBusy
// after the waiting time, or with the context's error.
func (g *gate) enter(ctx context.Context) (leave func(), err error) {
	leave = func() { <-g.slots }
	select {
	case g.slots <- struct{}{}:
		return leave, nil
	default:
	}
	timer := time.NewTimer(g.wait)
	defer timer.Stop()
	select {
	case g.slots <- struct{}{}:
		return leave, nil
	case <-timer.C:
		return nil, errBusy
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// budget bounds the bytes that answers hold while slow readers take them. A
// single answer always fits.
type budget struct {
	limit int64
	held  atomic.Int64
}

// take admits n bytes and returns how to give them back, or errBusy.
func (b *budget) take(n int64) (release func(), err error) {
	if b.held.Add(n) > max(b.limit, n) {
		b.held.Add(-n)
		return nil, errBusy
	}
	return func() { b.held.Add(-n) }, nil
}
