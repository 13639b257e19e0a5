package web_test

import (
	"math"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// slowest is how many times as long as natively the browser may take, at best.
const slowest = 3.5

// TestSpeedBesideNative verifies the largest bundle of the vectors in the
// browser and natively, in turns, and compares the best of each. A busy machine
// spoils single turns, and a browser compiles well only what ran often, so that
// there are many; the number does not depend on how well they go, unless the
// ratio would fail. docs/performance.md has what a run of it said.
func TestSpeedBesideNative(t *testing.T) {
	if testing.Short() {
		t.Skip("measures")
	}
	b := open(t)
	b.run(chromedp.Navigate(onDisk(t)))
	s := vectorsNamed(t, "testdata-tessera-brief.tsb")
	b.upload(s, nil)
	native, browser, ratio := math.Inf(1), math.Inf(1), math.Inf(1) // milliseconds
	turns := 0
	for ; turns < 150 || turns < 900 && ratio > slowest; turns++ {
		start := time.Now()
		s[0].native(t)
		native = min(native, time.Since(start).Seconds()*1e3)
		browser = min(browser, eval[float64](b, `engine.verify(held[0].file, settings()).then((a) => a.took)`))
		ratio = browser / native
	}
	t.Logf("%d bytes, best of %d turns: native %.1f ms, browser %.1f ms, ratio %.2f", len(s[0].content), turns, native, browser, ratio)
	if ratio > slowest {
		t.Errorf("the browser takes %.1f ms, natively %.1f", browser, native)
	}
}
