package web_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// focused names what has the focus.
func (b *tab) focused() string {
	b.t.Helper()
	return eval[string](b, `(document.activeElement.id ? "#" + document.activeElement.id : document.activeElement.dataset.tab ? "tab " + document.activeElement.dataset.tab : document.activeElement.tagName)`)
}

// press presses Enter on what has the focus and waits for the verdict.
func (b *tab) press() {
	b.t.Helper()
	b.run(chromedp.Evaluate(`delete document.body.dataset.settled; true`, nil), chromedp.KeyEvent(kb.Enter))
	b.until(`document.body.dataset.settled !== undefined`)
}

// TestFocusStays: the page draws itself anew, and whoever uses a keyboard goes on
// from where they were.
func TestFocusStays(t *testing.T) {
	b := open(t)
	home := onDisk(t)
	b.run(chromedp.Navigate(home))
	b.upload(vectorsNamed(t, "n03-payload-tampered.json", "p02-full-run-signed.json", "n09-no-comp.json"), nil)
	for _, tab := range []int{1, 2, 0, 1} {
		b.run(chromedp.Focus(fmt.Sprintf(`[data-tab="%d"]`, tab), chromedp.ByQuery), chromedp.KeyEvent(kb.Enter))
		b.until(fmt.Sprintf(`current === %d`, tab))
		if got := b.focused(); got != fmt.Sprintf("tab %d", tab) {
			t.Errorf("after tab %d was chosen %s has the focus", tab, got)
		}
	}
	b.run(chromedp.Focus("#flip", chromedp.ByQuery))
	for range 2 {
		b.press()
		if got := b.focused(); got != "#flip" {
			t.Errorf("after a byte was flipped %s has the focus", got)
		}
	}
	b.run(chromedp.Focus("#restore", chromedp.ByQuery))
	b.press()
	if got := b.focused(); got != "#flip" {
		t.Errorf("after it was put back %s has the focus", got)
	}
	b.run(chromedp.Focus("#allow-unsigned", chromedp.ByQuery), chromedp.Evaluate(`delete document.body.dataset.settled; true`, nil), chromedp.KeyEvent(" "))
	b.until(`document.body.dataset.settled !== undefined`)
	if got := b.focused(); got != "#allow-unsigned" {
		t.Errorf("after another question was asked %s has the focus", got)
	}
	b.quiet(home)
}

// TestReadingIsNotDisturbed: what somebody has unfolded in one report stays while
// other files are judged.
func TestReadingIsNotDisturbed(t *testing.T) {
	b := open(t)
	home := onDisk(t)
	b.run(chromedp.Navigate(home))
	b.upload(vectorsNamed(t, "p02-full-run-signed.json", "n09-no-comp.json"), nil)
	b.run(chromedp.Evaluate(`current = 0; draw(); globalThis.kept = document.querySelector("#result details"); kept.open = true; held[1].answer = held[1].error = null; draw()`, nil))
	if !eval[bool](b, `kept.isConnected && kept.open`) {
		t.Error("the report was drawn anew for another file")
	}
}

// TestStop: a long verification says how far it is, and ends when somebody wants
// that: no verdict, on it or on what waits behind it, and the next goes well.
func TestStop(t *testing.T) {
	b := open(t)
	home := onDisk(t)
	b.run(chromedp.Navigate(home))
	b.until(`document.body.dataset.engine === "ready"`)
	run := vectorsNamed(t, "p01-full-run-unsigned.json")[0]
	// A verification that never ends by itself.
	b.run(chromedp.Evaluate(`engine.call = (question, progress) => new Promise((resolve, reject) => {
		engine.waiting.set("long", { resolve, reject, progress });
		progress({ segments: 4096, bytes: 5e6 });
	}); true`, nil))
	dir := t.TempDir()
	var paths []string
	for _, name := range []string{"long.json", "behind.json"} {
		paths = append(paths, filepath.Join(dir, name))
		if err := os.WriteFile(paths[len(paths)-1], run.content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b.run(chromedp.Evaluate(`delete document.body.dataset.settled; true`, nil), chromedp.SetUploadFiles("#file", paths, chromedp.ByQuery))
	b.until(`at("stop") !== null`)
	if got := eval[string](b, `at("work").innerText`); !strings.Contains(got, "4,096 segments, 5.0 MB") {
		t.Errorf("while it works the page says %q", got)
	}
	b.run(chromedp.Click("#stop", chromedp.ByQuery))
	b.until(`document.body.dataset.settled !== undefined`)
	if got := eval[string](b, `held.map((h) => h.error).join() + at("work").innerText`); got != "you stopped the verification,you stopped the verification" || !b.refuses() {
		t.Errorf("after it was stopped the page says %q", got)
	}
	b.run(chromedp.Evaluate(`delete engine.call`, nil))
	compare(t, run, b.upload([]sample{run}, nil)[0])
	b.quiet(home)
}

// TestStopWhileTheVerifierStarts: whoever does not want to wait for that, neither.
func TestStopWhileTheVerifierStarts(t *testing.T) {
	b := open(t)
	home := onDisk(t)
	b.run(chromedp.Navigate(home))
	b.until(`document.body.dataset.engine === "ready"`)
	b.do(`engine.stop(); globalThis.load = engine.load; engine.load = () => new Promise(() => {})`)
	run := vectorsNamed(t, "p01-full-run-unsigned.json")[0]
	path := filepath.Join(t.TempDir(), run.name)
	if err := os.WriteFile(path, run.content, 0o644); err != nil {
		t.Fatal(err)
	}
	b.run(chromedp.Evaluate(`delete document.body.dataset.settled; true`, nil), chromedp.SetUploadFiles("#file", []string{path}, chromedp.ByQuery))
	b.until(`at("stop") !== null`)
	b.run(chromedp.Click("#stop", chromedp.ByQuery))
	b.until(`document.body.dataset.settled !== undefined`)
	if got := eval[string](b, `held[0].error`); got != "you stopped the verification" || !b.refuses() {
		t.Errorf("after it was stopped the page says %q", got)
	}
	b.do(`engine.load = load`)
	compare(t, run, b.upload([]sample{run}, nil)[0])
	b.quiet(home)
}

// TestManyFilesAreDrawnOnce: a verdict changes its own tab, and no other is made anew.
func TestManyFilesAreDrawnOnce(t *testing.T) {
	b := open(t)
	b.run(chromedp.Navigate(onDisk(t)))
	run := vectorsNamed(t, "p02-full-run-signed.json")[0]
	var many []sample
	for i := range 100 {
		many = append(many, sample{name: fmt.Sprintf("m%03d.json", i), content: run.content})
	}
	b.do(`globalThis.made = 0; globalThis.counted = new MutationObserver((all) => { for (const one of all) for (const node of one.addedNodes) made += 1 + (node.querySelectorAll?.("*").length ?? 0); });
		counted.observe(at("tabs"), { childList: true, subtree: true })`)
	for i, got := range b.upload(many, nil) {
		compare(t, many[i], got)
	}
	if made := eval[int](b, `made`); made < 200 || made > 1000 {
		t.Errorf("%d nodes were made for %d tabs", made, len(many))
	}
	if got := eval[int](b, `[...document.querySelectorAll("[data-tab] .badge")].filter((mark) => mark.textContent === "PASS").length`); got != len(many) {
		t.Errorf("%d tabs of %d say PASS", got, len(many))
	}
}
