package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/chaind/chaind/internal/daemon"
)

// row is one line of work: something of ours, and its limit.
type row struct {
	name  string
	what  string // what is measured
	limit string // against what
	goals []goal // one per figure of a round
	open  func(context.Context, *lab) (*contest, error)
}

// goal bounds the ratio of ours to the limit.
type goal struct {
	label string  // "" when the row has one figure
	bound float64 // least ratio, or largest with most
	most  bool
	unit  string // of the two figures
}

// contest is an opened row.
type contest struct {
	// limit and ours do the same amount of work and return one value per goal:
	// a rate, or seconds where less is better. cpu is per operation.
	limit, ours func(round int) (sample, error)
	close       func() error
}

// sample is one side of one round.
type sample struct {
	values []float64
	ops    int
	cpu    time.Duration // of this process, for all of it
}

// lab is what the rows share.
type lab struct {
	events, size, batch, segments, walk int
	dir                                 string // empty, removed after the row
}

// batches sets the bound on a daemon's transactions.
func (l *lab) batches(c *daemon.Config) { c.Intake.BatchEvents = l.batch }

const rowTimeout = 30 * time.Minute

// row measures one row in alternating rounds, after one that does not count.
func (o *options) row(r *row) (results []result, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), rowTimeout)
	defer cancel()
	l := o.lab
	if l.dir, err = os.MkdirTemp(o.dir, "chaind-bench-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(l.dir)) }()
	c, err := r.open(ctx, &l)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	for _, g := range r.goals {
		results = append(results, result{Row: r.name, Figure: g.label, What: r.what, Limit: r.limit,
			Bound: g.bound, Most: g.most, Unit: g.unit})
	}
	for i := range o.rounds + 1 {
		limit, ours, err := c.round(i)
		if err != nil {
			return nil, fmt.Errorf("round %d: %w", i, err)
		}
		if i > 0 {
			note(results, limit, ours)
		}
	}
	return results, nil
}

// round changes who goes first, so that neither always meets the other's
// dirty pages.
func (c *contest) round(i int) (limit, ours sample, err error) {
	if i%2 == 0 {
		if limit, err = c.limit(i); err == nil {
			ours, err = c.ours(i)
		}
		return limit, ours, err
	}
	if ours, err = c.ours(i); err == nil {
		limit, err = c.limit(i)
	}
	return limit, ours, err
}

func note(results []result, limit, ours sample) {
	for g := range results {
		results[g].Rounds = append(results[g].Rounds, pair{
			Limit: limit.values[g], Ours: ours.values[g],
			LimitCPU: limit.perOp(), OursCPU: ours.perOp(),
		})
	}
}

// perOp is the CPU time of one operation in microseconds.
func (s *sample) perOp() float64 {
	if s.ops == 0 {
		return 0
	}
	return float64(s.cpu.Nanoseconds()) / 1e3 / float64(s.ops)
}

// timed runs do, which does n operations, and gives their rate per second.
func timed(n int, do func() error) (sample, error) {
	start, cpu := time.Now(), cpuTime()
	if err := do(); err != nil {
		return sample{}, err
	}
	took := time.Since(start)
	return sample{values: []float64{float64(n) / took.Seconds()}, ops: n, cpu: cpuTime() - cpu}, nil
}

func choose(names []string, all bool) ([]row, error) {
	every := rows()
	if all {
		return every, nil
	}
	var chosen []row
	for _, name := range names {
		found := false
		for _, r := range every {
			if r.name == name {
				chosen, found = append(chosen, r), true
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no row %q: see -list", name)
		}
	}
	if len(chosen) == 0 {
		return nil, errors.New("name rows, or say -all")
	}
	return chosen, nil
}
