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

// grouping is how both sides make one durable write of what many callers bring:
// who comes while one runs shares the next, which one of them does for all.
type grouping[E any] struct {
	write   func([]E) error
	mu      sync.Mutex
	entries []E
	waiting []chan error
	token   chan struct{}
}

func newGrouping[E any](write func([]E) error) *grouping[E] {
	return &grouping[E]{write: write, token: make(chan struct{}, 1)}
}

func (g *grouping[E]) add(entry E) error {
	done := make(chan error, 1)
	g.mu.Lock()
	g.entries, g.waiting = append(g.entries, entry), append(g.waiting, done)
	g.mu.Unlock()
	select {
	case err := <-done:
		return err
	case g.token <- struct{}{}:
	}
	g.flush()
	<-g.token
	return <-done
}

func (g *grouping[E]) flush() {
	g.mu.Lock()
	entries, waiting := g.entries, g.waiting
	g.entries, g.waiting = nil, nil
	g.mu.Unlock()
	if len(waiting) == 0 {
		return
	}
	err := g.write(entries)
	for _, w := range waiting {
		w <- err
	}
}

// plainLog is a file that entries are appended to, with an fsync for each group.
type plainLog struct {
	*grouping[[]byte]
	f *os.File
}

func newPlainLog(dir string) (*plainLog, error) {
	f, err := os.Create(filepath.Join(dir, "plain.log"))
	if err != nil {
		return nil, err
	}
	var buf []byte
	return &plainLog{f: f, grouping: newGrouping(func(entries [][]byte) error {
		buf = buf[:0]
		for _, e := range entries {
			buf = append(buf, e...)
		}
		if _, err := f.Write(buf); err != nil {
			return err
		}
		return f.Sync()
	})}, nil
}

// ourStore is the store without the intake, which would group events in the same way.
type ourStore struct {
	*grouping[*events.Event]
	s *store.Store
}

func newOurStore(dir string) (*ourStore, error) {
	s, err := store.Open(store.Config{Dir: filepath.Join(dir, "store")})
	if err != nil {
		return nil, err
	}
	stream, seq := events.Stream{Name: "BENCH", CreatedNS: 1}, uint64(0)
	return &ourStore{s: s, grouping: newGrouping(func(list []*events.Event) error {
		for _, e := range list {
			seq++
			e.StreamSeq = seq
		}
		_, err := s.Append(context.Background(), &events.Batch{Stream: stream, Events: list})
		return err
	})}, nil
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
		b, err := newOurStore(l.dir)
		if err != nil {
			return nil, err
		}
		log, err := newPlainLog(l.dir)
		if err != nil {
			return nil, errors.Join(err, b.s.Close())
		}
		n := perRound(l, callers)
		return &contest{
			limit: func(round int) (sample, error) {
				entries := messages("", round*n, n, callers, l.size)
				return appenders(callers, n, func(i int) error { return log.add(entries[i].Data) })
			},
			ours:  func(round int) (sample, error) { return b.round(round, n, callers, l.size) },
			close: func() error { return errors.Join(b.s.Close(), log.f.Close()) },
		}, nil
	}
}

func (b *ourStore) round(round, n, callers, size int) (sample, error) {
	list := decoded(round, n, callers, size)
	return appenders(callers, n, func(i int) error { return b.add(list[i]) })
}

// openPeer compares with a program of the module bench/peers.
func openPeer(name string, callers int) func(context.Context, *lab) (*contest, error) {
	return func(ctx context.Context, l *lab) (*contest, error) {
		p, err := startPeer(ctx, l.dir, name)
		if err != nil {
			return nil, err
		}
		b, err := newOurStore(l.dir)
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
			close: func() error { return errors.Join(b.s.Close(), p.close()) },
		}, nil
	}
}

func appendRow(callers int, bound float64) row {
	return row{"append-" + strconv.Itoa(callers), fmt.Sprintf("durable append without the broker, %d appenders", callers),
		"plain log file with group fsync", []goal{{bound: bound, unit: "events/s"}}, openAppend(callers)}
}
