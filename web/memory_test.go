package web_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"
)

// largest is what a tab may hold at any moment, in bytes, whatever it shows.
const largest = 300e6

// watch looks every 50 ms at what the process of the tab holds, with its workers and
// all that is not on the heap of scripts, garbage included: its own pages, and its
// part of those that it shares (Pss of Linux's smaps_rollup). What it returns gives
// the most of that since, in bytes.
func (b *tab) watch() (highest func() int64) {
	b.t.Helper()
	pids := b.renderers()
	if _, err := held(pids); err != nil && os.Getenv("CI") == "" {
		b.t.Skipf("this system does not tell what a process holds: %v", err)
	}
	var peak atomic.Int64
	look := func() {
		if now, err := held(pids); err == nil {
			peak.Store(max(peak.Load(), now))
		}
	}
	ctx, stop := context.WithCancel(b)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			look()
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	end := func() { stop(); <-ended }
	b.t.Cleanup(end)
	return func() int64 { end(); return peak.Load() }
}

// renderers are the processes that show pages.
func (b *tab) renderers() (pids []int64) {
	b.t.Helper()
	var processes []*systeminfo.ProcessInfo
	b.run(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		processes, err = systeminfo.GetProcessInfo().Do(cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser))
		return err
	}))
	for _, p := range processes {
		if p.Type == "renderer" {
			pids = append(pids, p.ID)
		}
	}
	if len(pids) == 0 {
		b.t.Fatalf("no process of %d shows pages", len(processes))
	}
	return pids
}

// held is what the largest of some processes holds, in bytes. One that has ended
// holds nothing.
func held(pids []int64) (most int64, err error) {
	for _, pid := range pids {
		text, failed := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if failed != nil {
			err = failed
			continue
		}
		_, rest, found := strings.Cut(string(text), "\nPss:")
		var kib int64
		if _, failed := fmt.Sscan(rest, &kib); !found || failed != nil {
			return 0, fmt.Errorf("what process %d holds is not told", pid)
		}
		most = max(most, kib<<10)
	}
	if most == 0 {
		return 0, err
	}
	return most, nil
}
