package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/segments"
)

// recorder does with the events of a stream the least that ours must, and nothing
// else: it digests each twice, as payload and as segment, writes it to the end of a
// plain file, waits for the disk, acknowledges, and sends each chain that was touched a
// receipt of two digests. The file grows, since evidence is kept: the file system finds
// new blocks for it, as for the broker's. Where it falls short of a goal, an intake that
// does more will hardly reach it.
type recorder struct {
	conn    *nats.Conn
	f       *os.File
	reading jetstream.ConsumeContext
	writing sync.WaitGroup
	full    chan *group // to be made durable
	spare   chan *group
	err     error // of the goroutine that writes
}

// group is what one fsync covers.
type group struct {
	buf   []byte
	heads map[string]segments.Digest // by subject
	last  jetstream.Msg
	n     int
	since time.Time // of the first one
}

func startRecorder(ctx context.Context, conn *nats.Conn, stream jetstream.Stream, dir string) (*recorder, jetstream.Consumer, error) {
	f, err := os.Create(filepath.Join(dir, "least.log"))
	if err != nil {
		return nil, nil, err
	}
	r := &recorder{conn: conn, f: f, full: make(chan *group), spare: make(chan *group, 2)}
	for range cap(r.spare) {
		r.spare <- &group{heads: map[string]segments.Digest{}}
	}
	r.writing.Go(r.write)
	current := <-r.spare
	consumer, reading, err := consume(ctx, stream, "least", func(m jetstream.Msg) { current = r.take(current, m) })
	r.reading = reading
	return r, consumer, err
}

// take adds a message to the group, which goes to the disk when it is full, or old
// enough and the goroutine that writes is free, as with ours.
func (r *recorder) take(g *group, m jetstream.Msg) *group {
	sum, head := segments.Sum(m.Data()), segments.Sum(m.Data())
	g.heads[m.Subject()] = head
	if g.n == 0 {
		g.since = time.Now()
	}
	g.buf, g.last, g.n = append(append(g.buf, sum[:]...), m.Data()...), m, g.n+1
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
		_, err := r.f.Write(g.buf)
		if err == nil {
			err = r.f.Sync()
		}
		if err == nil {
			err = g.last.Ack()
		}
		for subject, head := range g.heads {
			receipt := head.AppendHex(head.AppendHex(make([]byte, 0, 4*len(head))))
			err = errors.Join(err, r.conn.Publish("receipts."+subject, receipt))
		}
		r.err = errors.Join(r.err, err)
		clear(g.heads)
		*g = group{buf: g.buf[:0], heads: g.heads}
		r.spare <- g
	}
}

func (r *recorder) close() error {
	r.reading.Stop()
	<-r.reading.Closed()
	close(r.full)
	r.writing.Wait()
	r.conn.Close()
	return errors.Join(r.err, r.f.Close())
}

// openLeast is openIngest with the recorder in the place of the daemon's intake.
func openLeast(chains int) func(context.Context, *lab) (*contest, error) {
	return func(ctx context.Context, l *lab) (*contest, error) {
		return inPlant(ctx, l.dir, nil, func(p *plant) (*contest, error) { return p.least(ctx, l, chains) })
	}
}

func (p *plant) least(ctx context.Context, l *lab, chains int) (*contest, error) {
	limit, reading, err := p.bareCourse(ctx, l)
	if err != nil {
		return nil, err
	}
	stream, err := p.likeStream(ctx, "LEAST", "least")
	if err != nil {
		return nil, err
	}
	conn, err := nats.Connect(p.info.NATSURL) // for receipts, as a daemon has one of its own
	if err != nil {
		return nil, err
	}
	r, consumer, err := startRecorder(ctx, conn, stream, l.dir)
	if err != nil {
		conn.Close()
		return nil, err
	}
	least := &course{root: "least", consumer: consumer}
	return &contest{
		limit: func(int) (sample, error) { return limit.round(ctx, p, l, l.events, chains) },
		ours:  func(int) (sample, error) { return least.round(ctx, p, l, l.events, chains) },
		close: func() error { reading.Stop(); return errors.Join(r.close(), p.close()) },
	}, nil
}
