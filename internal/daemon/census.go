package daemon

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/server"
	"github.com/chaind/chaind/store"
)

const (
	// censusPause is the least time between two counts of the open chains.
	censusPause = 30 * time.Second
	// censusShare bounds what counting may take: a count that took long is
	// followed by a pause this many times as long.
	censusShare = 50
)

// census counts what is under way. Counting reads every chain's entry in the
// store, so it happens now and then, not at each scrape; the number of chains
// changes nothing about what a scrape costs.
type census struct {
	last atomic.Pointer[server.Census]
}

// countOpen counts again and again until ctx ends.
func (d *Daemon) countOpen(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		start := d.cfg.Now()
		counted, err := count(ctx, d.store)
		took := d.cfg.Now().Sub(start)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			d.log.Warn("open chains could not be counted", "err", err)
		default:
			counted.At = start
			d.census.last.Store(&counted)
		}
		timer.Reset(max(censusPause, censusShare*took))
	}
}

// count walks the open chains in pages.
func count(ctx context.Context, s *store.Store) (server.Census, error) {
	var c server.Census
	q := store.ChainQuery{Outcome: events.Open, Limit: store.MaxPage}
	for ctx.Err() == nil {
		page, next, err := s.Chains(q)
		if err != nil {
			return server.Census{}, err
		}
		c.Chains += uint64(len(page))
		for i := range page {
			c.Attempts += page[i].Attempts
		}
		if next == "" {
			break
		}
		q.After = next
	}
	return c, nil
}
