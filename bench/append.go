package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/store"
)

// The rows of this file make the same entries durable, given by n appenders
// that each have one on the way at a time and a chain of their own.

// appenders spreads n entries over a number of callers of add.
func appenders(callers, n int, add func(entry int) error) (sample, error) {
	return timed(n, func() error {
		var next atomic.Int64
		errs := make([]error, callers)
		var wg sync.WaitGroup
		for c := range callers {
			wg.Go(func() {
				for errs[c] == nil {
					i := int(next.Add(1)) - 1
					if i >= n {
						return
					}
					errs[c] = add(i)
				}
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	})
}

// groupLog is a plain log file where whoever comes while an fsync runs shares
// the next one.
type groupLog struct {
	f       *os.File
	mu      sync.Mutex
	buf     []byte
	waiting []chan error
	token   chan struct{}
}

func newGroupLog(dir string) (*groupLog, error) {
	f, err := os.Create(filepath.Join(dir, "plain.log"))
	if err != nil {
		return nil, err
	}
	return &groupLog{f: f, token: make(chan struct{}, 1)}, nil
}

func (l *groupLog) append(entry []byte) error {
	done := make(chan error, 1)
	l.mu.Lock()
	l.buf, l.waiting = append(l.buf, entry...), append(l.waiting, done)
	l.mu.Unlock()
	select {
	case err := <-done:
		return err
	case l.token <- struct{}{}:
	}
	l.flush()
	<-l.token
	return <-done
}

func (l *groupLog) flush() {
	l.mu.Lock()
	buf, waiting := l.buf, l.waiting
	l.buf, l.waiting = nil, nil
	l.mu.Unlock()
	if len(waiting) == 0 {
		return
	}
	_, err := l.f.Write(buf)
	if err == nil {
		err = l.f.Sync()
	}
	for _, w := range waiting {
		w <- err
	}
}

// batcher does for the store what the intake does: it takes whatever has come,
// gives it over as one batch, and then answers.
type batcher struct {
	s      *store.Store
	in     chan delivery
	ended  chan struct{}
	stream events.Stream
	seq    uint64
}

type delivery struct {
	e    *events.Event
	done chan error
}

func newBatcher(dir string) (*batcher, error) {
	s, err := store.Open(store.Config{Dir: filepath.Join(dir, "store")})
	if err != nil {
		return nil, err
	}
	b := &batcher{s: s, in: make(chan delivery, 4096), ended: make(chan struct{}), stream: events.Stream{Name: "BENCH", CreatedNS: 1}}
	go b.run()
	return b, nil
}

func (b *batcher) run() {
	defer close(b.ended)
	for d := range b.in {
		taken := []delivery{d}
		for len(b.in) > 0 && len(taken) < cap(b.in) {
			taken = append(taken, <-b.in)
		}
		batch := &events.Batch{Stream: b.stream}
		for _, d := range taken {
			b.seq++
			d.e.StreamSeq = b.seq
			batch.Events = append(batch.Events, d.e)
		}
		_, err := b.s.Append(context.Background(), batch)
		for _, d := range taken {
			d.done <- err
		}
	}
}

func (b *batcher) append(e *events.Event) error {
	done := make(chan error, 1)
	b.in <- delivery{e, done}
	return <-done
}

func (b *batcher) close() error {
	close(b.in)
	<-b.ended
	return b.s.Close()
}

// decoded gives the events of one round, ready for the store.
func decoded(round, n, chains, size int) []*events.Event {
	list := make([]*events.Event, n)
	for i, m := range messages(events.SubjectRoot, round*n, n, chains, size) {
		list[i] = events.Decode(events.Message{Subject: m.Subject, Payload: m.Data, BrokerMS: firstMS}, events.DefaultLimits)
	}
	return list
}

// perRound keeps a round of one appender short: it waits for the disk each time.
func perRound(l *lab, callers int) int { return min(l.events, 200*callers+200) }

// openAppend compares with the plain log.
func openAppend(callers int) func(context.Context, *lab) (*contest, error) {
	return func(_ context.Context, l *lab) (*contest, error) {
		b, err := newBatcher(l.dir)
		if err != nil {
			return nil, err
		}
		log, err := newGroupLog(l.dir)
		if err != nil {
			return nil, errors.Join(err, b.close())
		}
		n := perRound(l, callers)
		return &contest{
			limit: func(round int) (sample, error) {
				entries := messages("", round*n, n, callers, l.size)
				return appenders(callers, n, func(i int) error { return log.append(entries[i].Data) })
			},
			ours:  func(round int) (sample, error) { return b.round(round, n, callers, l.size) },
			close: func() error { return errors.Join(b.close(), log.f.Close()) },
		}, nil
	}
}

func (b *batcher) round(round, n, callers, size int) (sample, error) {
	list := decoded(round, n, callers, size)
	return appenders(callers, n, func(i int) error { return b.append(list[i]) })
}

// openPeer compares with a program of the module bench/peers.
func openPeer(name string, callers int) func(context.Context, *lab) (*contest, error) {
	return func(ctx context.Context, l *lab) (*contest, error) {
		p, err := startPeer(ctx, l.dir, name)
		if err != nil {
			return nil, err
		}
		b, err := newBatcher(l.dir)
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		n := perRound(l, callers)
		return &contest{
			limit: func(round int) (sample, error) {
				entries := make([][]byte, n)
				for i, m := range messages("", round*n, n, callers, l.size) {
					entries[i] = m.Data
				}
				return p.round(entries, callers)
			},
			ours:  func(round int) (sample, error) { return b.round(round, n, callers, l.size) },
			close: func() error { return errors.Join(b.close(), p.close()) },
		}, nil
	}
}

func appendRow(callers int, bound float64) row {
	return row{"append-" + strconv.Itoa(callers), fmt.Sprintf("durable append without the broker, %d appenders", callers),
		"plain log file with group fsync", []goal{{bound: bound, unit: "events/s"}}, openAppend(callers)}
}
