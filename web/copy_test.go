package web_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestCopyGivesTheWholeDigest: what is shown short is copied whole, and is shown
// whole, selected, where the browser lets no page copy.
func TestCopyGivesTheWholeDigest(t *testing.T) {
	b := open(t)
	home := onDisk(t)
	b.run(chromedp.Navigate(home))
	run := vectorsNamed(t, "p02-full-run-signed.json")[0]
	plan := run.native(t).Plan
	b.upload([]sample{run}, nil)
	const button = `[...document.querySelectorAll("#result dt")].find((d) => d.textContent === "Plan").nextSibling.querySelector("button")`
	for _, c := range []struct{ clipboard, done, result string }{
		{`{ writeText: async (text) => { globalThis.copied = text; } }`, `globalThis.copied !== undefined`, `globalThis.copied`},
		{`{ writeText: async () => { throw new Error("no"); } }`, `getSelection().toString() !== ""`, `getSelection().toString()`},
		{`undefined`, `getSelection().toString() !== ""`, `getSelection().toString()`},
	} {
		b.run(chromedp.Evaluate(fmt.Sprintf(`getSelection().removeAllRanges();
			Object.defineProperty(navigator, "clipboard", { value: %s, configurable: true });
			%s.click()`, c.clipboard, button), nil))
		b.until(c.done)
		if got := eval[string](b, c.result); got != plan {
			t.Errorf("with the clipboard %s %q is copied, want %q", c.clipboard, got, plan)
		}
	}
	b.quiet(home)
}
