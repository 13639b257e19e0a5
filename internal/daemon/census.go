package daemon

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/chaind/chaind/server"
)

const (
	// censusPause is the least time between two counts of the open chains.
	censusPause = 30 * time.Second
	// censusShare bounds what counting may take: a count that took long is
	// followed by a pause this many times as long.
	censusShare = 50
)

// census counts what is under way. Counting looks at the name of every chain in
// the store, so it happens now and then, not at each scrape; the number of chains
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
		counted, err := d.store.Census(ctx)
		took := d.cfg.Now().Sub(start)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			d.log.Warn("open chains could not be counted", "err", err)
		default:
			d.census.last.Store(&server.Census{Census: counted, At: start})
		}
		timer.Reset(max(censusPause, censusShare*took))
	}
}
