package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// meddling stands between the console and its server: asked are the addresses that it
// asked for, slow gives milliseconds that an answer waits, broken makes the server fail,
// and instead another answer.
const meddling = `globalThis.asked = []; globalThis.slow = globalThis.broken = globalThis.instead = () => null;
	const fetched = globalThis.fetch;
	globalThis.fetch = async (address, how) => {
		const url = String(address), problem = { "Content-Type": "application/problem+json" };
		asked.push(url);
		if (slow(url)) await new Promise((wake) => setTimeout(wake, slow(url)));
		if (broken(url)) return new Response('{"title":"Error","detail":"made to fail"}', { status: 503, headers: problem });
		return instead(url) ? new Response(instead(url)) : fetched(address, how);
	};`

const largeHash = "#/chain/acme/be9eb068c2b9f0e9ed94094fa5b5a859d4f75c2a0a3da216b680eda02adad0a1/5b1d9f0c7a3e4e0f8a6b2c4d1e9f7a30/"

// publishOn publishes an event of a chain of the tests.
func (l *living) publishOn(t *testing.T, chain, event string) {
	t.Helper()
	l.send(t, largeChain+chain, []byte(event))
}

func (l *living) seal(t *testing.T, chain string) {
	t.Helper()
	l.publishOn(t, chain+".seal", `{"v":1,"event_id":"seal","outcome":"failed"}`)
}

// do runs a script for what it does.
func (b *tab) do(script string) {
	b.t.Helper()
	b.run(chromedp.Evaluate("{"+script+"}; true", nil))
}

// meddled opens the console with meddling.
func meddled(t *testing.T) (*tab, *living) {
	t.Helper()
	b, l := open(t), live(t)
	b.run(beforeEachPage(meddling))
	b.at(l.HTTPURL + "/")
	return b, l
}

// shows opens a chain and waits for as many rows.
func (b *tab) shows(chain string, rows int) {
	b.t.Helper()
	b.do(fmt.Sprintf(`location.hash = "%s%s"`, largeHash, chain))
	b.within(time.Minute, fmt.Sprintf(`Number(document.querySelector("[data-rows]")?.dataset.rows) === %d && document.body.dataset.chain`, rows))
}

// scrolledTo is a condition: a row is in the document, and what every row says is there.
const scrolledTo = `document.getElementById("row-%d") && !document.querySelector(".row.unread")`

const alerts = `document.getElementById("alerts").innerText`

// TestRowsOfLargeSegments: an answer ends after so many bytes, with fewer rows than
// were asked for. The console asks for the others, and not again for what it has.
func TestRowsOfLargeSegments(t *testing.T) {
	b, l := meddled(t)
	l.tell(t, "big", 1, "s0")
	for i := range 130 {
		l.publishOn(t, "big.step", fmt.Sprintf(`{"v":1,"event_id":"more.%d","kind":{"kind":"step_executed","step_id":"s%d","step_index":%d,"request_fingerprints":[],"source_line":"%s","parsed_expr_digest":"%s"}}`,
			i, i, i, strings.Repeat("x", 200_000), strings.Repeat("0", 64)))
	}
	b.shows("big", 134)
	for _, row := range []int{0, 60, 30, 125, 80, 115} {
		b.do(fmt.Sprintf(`asked.length = 0; view.timeline.list.scrollTop = %d * rowHeight`, row))
		b.until(fmt.Sprintf(scrolledTo, row))
		if n := eval[int](b, `asked.filter((url) => url.includes("/segments?")).length`); n > 4 {
			t.Errorf("row %d: %d requests", row, n)
		}
	}
	b.quiet(l.HTTPURL)
}

// TestRowsThatDoNotCome: the server gives none of the rows, or fails. The console says
// so, as long as any are missing, does not ask without end, and goes on by itself.
func TestRowsThatDoNotCome(t *testing.T) {
	b, l := meddled(t)
	l.tell(t, "c", 3000, "s0")
	b.shows("c", 3003)
	for i, c := range []struct{ meddle, says string }{
		{`instead = (url) => url.includes("/segments?") && '{"segments":[]}'`, "did not give"},
		{`broken = (url) => url.includes("/segments?")`, "made to fail"},
	} {
		row := 1500 + 1000*i
		b.do(fmt.Sprintf(`%s; asked.length = 0; view.timeline.list.scrollTop = %d * rowHeight`, c.meddle, row))
		said := fmt.Sprintf(alerts+`.includes(%q)`, c.says)
		b.until(said + ` && document.querySelector(".row.unread .row-title").textContent === "Not read"`)
		// Some refreshes later it still says so, and has not asked more often than that.
		b.until(`asked.filter((url) => url.includes("/v1/chains?")).length > 2`)
		n := eval[[]int](b, `[asked.filter((url) => url.includes("/segments?")).length, asked.filter((url) => url.includes("/v1/chains?")).length]`)
		if n[0] < 2 || n[0] > n[1]+3 {
			t.Errorf("%s: %d requests in %d refreshes", c.says, n[0], n[1])
		}
		if !eval[bool](b, said) {
			t.Errorf("%s: the alert went away while rows are missing", c.says)
		}
		b.do(`instead = broken = () => null`)
		b.until(fmt.Sprintf(scrolledTo, row) + ` && ` + alerts + ` === ""`)
	}
}

// TestEvidenceThatDoesNotCome: the evidence cannot be had for a while, and is verified
// when it can.
func TestEvidenceThatDoesNotCome(t *testing.T) {
	b, l := meddled(t)
	l.tell(t, "c", 30, "s0")
	b.shows("c", 33)
	b.do(`broken = (url) => url.includes("/evidence")`)
	l.seal(t, "c")
	b.until(`document.querySelector(".verdict-part").innerText.includes("Not verified") && ` + alerts + `.includes("made to fail")`)
	b.do(`broken = () => null`)
	b.until(`document.getElementById("verdict-word") && ` + alerts + ` === ""`)
}

// TestFromChainToChain: a chain is judged, whatever was left before it in the middle.
func TestFromChainToChain(t *testing.T) {
	b, l := meddled(t)
	for _, chain := range []string{"a", "b"} {
		l.tell(t, chain, 50, "s0")
		l.seal(t, chain)
	}
	b.until(`[...document.querySelectorAll("#view tbody tr")].filter((row) => row.textContent.includes("signed")).length === 2`)
	for i, wait := range []int{0, 5, 10, 20, 30, 40, 60, 80, 100, 130, 160, 200, 500} {
		if wait == 500 {
			b.do(`slow = () => 300`)
		}
		b.do(fmt.Sprintf(`location.hash = "%[1]sa"; setTimeout(() => { location.hash = "%[1]sb"; }, %d)`, largeHash, wait))
		b.until(`document.title.startsWith("b ") && (document.getElementById("verdict-word") || document.querySelector(".verdict-part")?.innerText.includes("Not verified"))`)
		if got := eval[string](b, `document.querySelector(".verdict-part").innerText`); strings.Contains(got, "Not verified") {
			t.Errorf("%d: after %d ms on the first chain the second says %q", i, wait, got)
		}
		b.do(`location.hash = "#/"`)
		b.until(`document.title.startsWith("Chains")`)
	}
	b.quiet(l.HTTPURL)
}

// TestAViewThatWasLeft asks for nothing more, and says nothing in the one that is shown.
func TestAViewThatWasLeft(t *testing.T) {
	b, l := meddled(t)
	l.tell(t, "c", 3000, "s0")
	b.shows("c", 3003)
	b.do(`slow = (url) => url.includes("/segments?") ? 300 : 0; broken = (url) => url.includes("/segments?");
		globalThis.complained = 0; new MutationObserver(() => { complained++; }).observe(document.getElementById("alerts"), { childList: true, subtree: true });
		view.timeline.list.scrollTop = 1500 * rowHeight; asked.length = 0`)
	b.until(`asked.some((url) => url.includes("/segments?"))`)
	b.do(`location.hash = "#/keys"; globalThis.over = false; setTimeout(() => { over = true; }, 600)`)
	b.until(`over && document.body.dataset.view === "keys"`)
	if got := eval[int](b, `complained`); got > 0 {
		t.Errorf("the view of keys shows what the one before it could not do: %q", eval[string](b, alerts))
	}
}

// TestTheChosenRowStays: the last row stays the last one when the chain grows, and a
// key before there are rows chooses none.
func TestTheChosenRowStays(t *testing.T) {
	b, l := meddled(t)
	l.tell(t, "g", 30, "s0")
	b.do(fmt.Sprintf(`slow = (url) => url.includes("/v1/chains/") ? 500 : 0; location.hash = "%sg"`, largeHash))
	b.until(`document.querySelector(".timeline")`)
	b.run(chromedp.Focus(".timeline", chromedp.ByQuery), chromedp.KeyEvent(kb.ArrowDown))
	b.do(`slow = () => null`)
	b.until(`Number(document.querySelector("[data-rows]")?.dataset.rows) === 33`)
	if got := eval[string](b, `document.querySelector(".row-panel").innerText`); got != "" {
		t.Errorf("a key before the first row shows %q", got)
	}
	b.run(chromedp.Focus(".timeline", chromedp.ByQuery), chromedp.KeyEvent(kb.End))
	grown := func(event string, rows int) {
		l.publishOn(t, "g.step", event)
		b.until(fmt.Sprintf(`Number(document.querySelector("[data-rows]").dataset.rows) === %d`, rows))
	}
	if got := eval[float64](b, `view.timeline.list.clientHeight % rowHeight`); got != 0 {
		t.Errorf("the last row in sight is cut: %v px of it are shown", got)
	}
	const chosen = `document.querySelector("[aria-selected=true] .row-title")?.textContent`
	grown(`{"v":1,"event_id":"b","kind":{"kind":"step_executed","step_id":"s5","step_index":5},"phase":"begin"}`, 34)
	if got := eval[string](b, chosen); got != "Open: more may come" {
		t.Errorf("the last row was chosen, and when the chain grew %q is", got)
	}
	b.run(chromedp.KeyEvent(kb.ArrowUp))
	grown(`{"v":1,"event_id":"f","kind":{"kind":"step_executed","step_id":"s5","step_index":5},"phase":"begin"}`, 35)
	if got := eval[string](b, chosen); got != "Step s5 begun" {
		t.Errorf("the attempt was chosen, and when the chain grew %q is", got)
	}
}
