package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/events"
)

const (
	readers = 50
	// readerPause is between two requests of one reader: somebody who looks, or a
	// program that asks again and again.
	readerPause = 500 * time.Millisecond
	readerSteps = 61 // of the run that is read; with intent, commit and seal one event per chain of the load
)

// openReaders measures the intake of one daemon without readers and with them:
// lists, single chains, segments, and evidence, which the server verifies.
func openReaders(ctx context.Context, l *lab) (*contest, error) {
	return inPlant(ctx, l.dir, l.batches, func(p *plant) (*contest, error) { return p.read(ctx, l) })
}

func (p *plant) read(ctx context.Context, l *lab) (*contest, error) {
	const chains = readerSteps + 3
	if err := p.sealRun(ctx); err != nil {
		return nil, err
	}
	consumer, err := p.intake(ctx, p.info.StoreID)
	if err != nil {
		return nil, err
	}
	load := &course{root: events.SubjectRoot, consumer: consumer, sent: chains}
	return &contest{
		limit: func(int) (sample, error) { return load.round(ctx, p, l, l.events, chains) },
		ours: func(int) (sample, error) {
			stop := p.startReaders(ctx)
			s, err := load.round(ctx, p, l, l.events, chains)
			return s, errors.Join(err, stop())
		},
		close: p.close,
	}, nil
}

// sealRun publishes the run that is read, and waits until it is durable.
func (p *plant) sealRun(ctx context.Context) error {
	run, err := emitter.Begin(ctx, emitter.PublisherConfig{Conn: p.conn, Chain: "read", Scope: *benchScope()})
	if err != nil {
		return err
	}
	if _, err := run.Intent(ctx, emitter.Intent{Text: "be read"}); err != nil {
		return err
	}
	var topo []string
	for i := range readerSteps {
		topo = append(topo, fmt.Sprint("s", i))
	}
	if _, err := run.Commit(ctx, emitter.Commit{Comp: []byte(`{"version":2,"steps":{},"bind":{"topo":["` + strings.Join(topo, `","`) + `"]},"return":null}`), StepTopo: topo}); err != nil {
		return err
	}
	for _, id := range topo {
		if _, err := run.Step(ctx, emitter.Step{StepID: id, SourceLine: id + "()", Parsed: []byte(`{"op":"` + id + `"}`)}); err != nil {
			return err
		}
	}
	if _, err := run.Seal(ctx, emitter.Seal{}); err != nil {
		return err
	}
	_, err = run.Wait(ctx)
	return err
}

// startReaders lets the readers ask until stop is called, which tells of an
// answer that was none.
func (p *plant) startReaders(ctx context.Context) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	key := chainKey(0)
	chain := "/v1/chains/" + key.Tenant + "/" + key.PromptHash + "/" + key.Session + "/"
	paths := []string{"/v1/chains?limit=50", chain + "read", chain + "read/evidence", chain + "read/segments?limit=50", "/v1/runs", "/v1/chains?outcome=open"}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: readers}}
	faults := make([]error, readers)
	var all sync.WaitGroup
	for i := range readers {
		all.Go(func() {
			tick := time.NewTicker(readerPause)
			defer tick.Stop()
			select { // not all at once
			case <-time.After(readerPause * time.Duration(i) / readers):
			case <-ctx.Done():
			}
			for n := i; ctx.Err() == nil && faults[i] == nil; n++ {
				faults[i] = ask(ctx, client, p.info.HTTPURL+paths[n%len(paths)])
				select {
				case <-tick.C:
				case <-ctx.Done():
				}
			}
		})
	}
	return func() error {
		cancel()
		all.Wait()
		client.CloseIdleConnections()
		return errors.Join(faults...)
	}
}

// ask reads one answer whole. Evidence that is still being written is an
// answer, too.
func ask(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err == nil {
		defer res.Body.Close()
		_, err = io.Copy(io.Discard, res.Body)
	}
	switch {
	case ctx.Err() != nil:
		return nil // stopped on the way
	case err != nil:
		return err
	case res.StatusCode != http.StatusOK && res.StatusCode != http.StatusServiceUnavailable:
		return fmt.Errorf("%s answered %s", url, res.Status)
	}
	return nil
}
