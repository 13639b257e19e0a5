package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/emitter"
)

// recorder does with the events of a stream the least that ours must, and nothing
// else: it digests each twice, as payload and as segment, writes it to a plain file,
// waits for the disk, and then acknowledges. The file has its length and its blocks
// before, so that an fsync has nothing but the bytes to make durable. Where it falls
// short of a goal, an intake that does more will hardly reach it.
type recorder struct {
	f       *os.File
	at      int64 // place of the next write
	reading jetstream.ConsumeContext
	writing sync.WaitGroup
	full    chan *group // to be made durable
	spare   chan *group
	err     error // of the goroutine that writes
}

const leastFile = 256 << 20 // bytes, written over from the start when it is full

// group is what one fsync covers.
type group struct {
	buf   []byte
	last  jetstream.Msg
	n     int
	since time.Time // of the first one
}

func startRecorder(ctx context.Context, stream jetstream.Stream, dir string) (*recorder, jetstream.Consumer, error) {
	f, err := os.Create(filepath.Join(dir, "least.log"))
	if err == nil {
		_, err = f.Write(make([]byte, leastFile))
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, nil, err
	}
	r := &recorder{f: f, full: make(chan *group), spare: make(chan *group, 2)}
	r.spare <- &group{}
	r.spare <- &group{}
	r.writing.Go(r.write)
	current := <-r.spare
	consumer, reading, err := consume(ctx, stream, "least", func(m jetstream.Msg) { current = r.take(current, m) })
	r.reading = reading
	return r, consumer, err
}

// take adds a message to the group, which goes to the disk when it is full, or old
// enough and the goroutine that writes is free, as with ours.
func (r *recorder) take(g *group, m jetstream.Msg) *group {
	digested := sha256.Sum256(m.Data())
	digested = sha256.Sum256(m.Data())
	if g.n == 0 {
		g.since = time.Now()
	}
	g.buf, g.last, g.n = append(append(g.buf, digested[:]...), m.Data()...), m, g.n+1
	meta, err := m.Metadata()
	if err != nil || meta.NumPending == 0 || g.n >= emitter.DefaultBatchEvents || len(g.buf) >= emitter.DefaultBatchBytes {
		r.full <- g
		return <-r.spare
	}
	if time.Since(g.since) < emitter.DefaultBatchTime {
		return g
	}
	select {
	case r.full <- g:
		return <-r.spare
	default:
		return g
	}
}

func (r *recorder) write() {
	for g := range r.full {
		if r.at+int64(len(g.buf)) > leastFile {
			r.at = 0
		}
		_, err := r.f.WriteAt(g.buf, r.at)
		r.at += int64(len(g.buf))
		if err == nil {
			err = r.f.Sync()
		}
		if err == nil {
			err = g.last.Ack()
		}
		r.err = errors.Join(r.err, err)
		*g = group{buf: g.buf[:0]}
		r.spare <- g
	}
}

func (r *recorder) close() error {
	r.reading.Stop()
	<-r.reading.Closed()
	close(r.full)
	r.writing.Wait()
	return errors.Join(r.err, r.f.Close())
}

// openLeast is openIngest with the recorder in the place of the daemon's intake.
func openLeast(ctx context.Context, l *lab) (*contest, error) {
	return inPlant(ctx, l.dir, nil, func(p *plant) (*contest, error) { return p.least(ctx, l) })
}

func (p *plant) least(ctx context.Context, l *lab) (*contest, error) {
	const chains = 64
	limit, reading, err := p.bareCourse(ctx, l)
	if err != nil {
		return nil, err
	}
	stream, err := p.likeStream(ctx, "LEAST", "least")
	if err != nil {
		return nil, err
	}
	r, consumer, err := startRecorder(ctx, stream, l.dir)
	if err != nil {
		return nil, err
	}
	least := &course{root: "least", consumer: consumer}
	return &contest{
		limit: func(int) (sample, error) { return limit.round(ctx, p, l, l.events, chains) },
		ours:  func(int) (sample, error) { return least.round(ctx, p, l, l.events, chains) },
		close: func() error { reading.Stop(); return errors.Join(r.close(), p.close()) },
	}, nil
}
