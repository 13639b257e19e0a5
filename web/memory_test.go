package web_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"
)

// largest is what a tab may hold, in bytes, whatever it shows.
const largest = 300e6

// small fails the test when the process of the tab, with its workers and all
// that is not on the heap of scripts, holds more than a tab may.
func (b *tab) small(where string) {
	b.t.Helper()
	held := b.held()
	b.t.Logf("%s: the tab's process holds %.0f MB", where, float64(held)/1e6)
	if held > largest {
		b.t.Errorf("%s: the tab's process holds %.0f MB, want %.0f at most", where, float64(held)/1e6, largest/1e6)
	}
}

// held is the memory of the largest process that shows pages, after garbage is
// collected: its own pages, and its part of those that it shares (Pss of Linux's
// smaps_rollup), in bytes.
func (b *tab) held() int64 {
	b.t.Helper()
	var processes []*systeminfo.ProcessInfo
	b.run(heapprofiler.Enable(), heapprofiler.CollectGarbage(), heapprofiler.Disable(), chromedp.ActionFunc(func(ctx context.Context) (err error) {
		processes, err = systeminfo.GetProcessInfo().Do(cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser))
		return err
	}))
	var most int64
	for _, p := range processes {
		if p.Type == "renderer" {
			most = max(most, share(b.t, p.ID))
		}
	}
	if most == 0 {
		b.t.Fatalf("no process of %d shows pages", len(processes))
	}
	return most
}

// share reads Pss of a process; 0: it has ended.
func share(t *testing.T, pid int64) int64 {
	t.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	switch {
	case err == nil:
	case os.Getenv("CI") == "":
		t.Skipf("this system does not tell what a process holds: %v", err)
	default:
		return 0
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if rest, found := strings.CutPrefix(lines.Text(), "Pss:"); found {
			var kib int64
			if _, err := fmt.Sscan(rest, &kib); err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	return 0
}
