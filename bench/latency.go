package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/events"
)

// openLatency publishes so many events per second, at fixed times whether or
// not the last one is through, and measures from the time at which each was due
// to its receipt, which follows the commit. The limit is the median of one
// append of 4 KiB and its fsync, each time.
func openLatency(perSecond int) func(context.Context, *lab) (*contest, error) {
	return func(ctx context.Context, l *lab) (*contest, error) {
		p, err := startPlant(ctx, l.dir, nil)
		if err != nil {
			return nil, err
		}
		f, err := os.Create(filepath.Join(l.dir, "appends"))
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		sent := 0
		return &contest{
			limit: func(int) (sample, error) { return appendLatency(f) },
			ours: func(int) (sample, error) {
				from := sent
				sent += perSecond
				return p.paced(ctx, from, perSecond, l.size)
			},
			close: func() error { return errors.Join(f.Close(), p.close()) },
		}, nil
	}
}

func latencyRow(perSecond int) row {
	return row{fmt.Sprint("latency-", perSecond), fmt.Sprintf("publish to durable (receipt), %d events/s", perSecond),
		"p50 of one 4 KiB append + fsync",
		[]goal{{label: "p50", bound: 4, most: true, unit: "s"}, {label: "p99", bound: 15, most: true, unit: "s"}}, openLatency(perSecond)}
}

func appendLatency(f *os.File) (sample, error) {
	const appends = 200
	block, took := make([]byte, 4096), make([]float64, appends)
	for i := range took {
		start := time.Now()
		if _, err := f.Write(block); err != nil {
			return sample{}, err
		}
		if err := f.Sync(); err != nil {
			return sample{}, err
		}
		took[i] = time.Since(start).Seconds()
	}
	slices.Sort(took)
	return sample{values: []float64{median(took), median(took)}}, nil
}

// paced sends one second's worth of events.
func (p *plant) paced(ctx context.Context, from, n, size int) (sample, error) {
	msgs := messages(events.SubjectRoot, from, n, 64, size)
	due, took := make(map[string]time.Time, n), make([]float64, 0, n)
	type answer struct {
		id string
		at time.Time
	}
	answers := make(chan answer, n)
	stop, err := emitter.Receipts(ctx, p.conn, events.ReceiptRoot+".>", func(r *emitter.Receipt) {
		now := time.Now()
		for _, e := range r.Events {
			answers <- answer{e.EventID, now}
		}
	})
	if err != nil {
		return sample{}, err
	}
	defer func() { _ = stop() }()
	start := time.Now()
	for i, m := range msgs {
		at := start.Add(time.Duration(i) * time.Second / time.Duration(n))
		due[eventID(from+i)] = at
		time.Sleep(time.Until(at))
		if err := p.conn.PublishMsg(&nats.Msg{Subject: m.Subject, Data: m.Data}); err != nil {
			return sample{}, err
		}
	}
	for len(took) < n {
		select {
		case a := <-answers:
			took = append(took, a.at.Sub(due[a.id]).Seconds())
		case <-time.After(time.Minute):
			return sample{}, errors.New("a receipt is missing")
		}
	}
	slices.Sort(took)
	return sample{values: []float64{median(took), took[len(took)*99/100]}}, nil
}
