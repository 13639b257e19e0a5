package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/nats-io/nats.go/jetstream"
)

const largeChain = "evidence.acme.be9eb068c2b9f0e9ed94094fa5b5a859d4f75c2a0a3da216b680eda02adad0a1.5b1d9f0c7a3e4e0f8a6b2c4d1e9f7a30."

// tell publishes an open chain with n steps of a thousand names, s0 to s999.
func (l *living) tell(t *testing.T, chain string, n int, planned string) {
	t.Helper()
	var sent []jetstream.PubAckFuture
	send := func(verb, event string) {
		ack, err := l.js.PublishAsync(largeChain+chain+"."+verb, []byte(event))
		if err != nil {
			t.Fatal(err)
		}
		if sent = append(sent, ack); len(sent) == 1000 {
			l.acked(t, &sent)
		}
	}
	zero := strings.Repeat("0", 64)
	send("intent", `{"v":1,"event_id":"intent","kind":{"kind":"intent_bound","intent_len":30},"preimage":{"text":"List all pets and their owners"},"scope":{"schema_version":1,"tenant_id":"acme","prompt_hash":"be9eb068c2b9f0e9ed94094fa5b5a859d4f75c2a0a3da216b680eda02adad0a1","execute_session_id":"5b1d9f0c7a3e4e0f8a6b2c4d1e9f7a30","catalog_cgs_hash":"`+zero+`","domain_revision":7,"entry_id":"pets"}}`)
	send("commit", `{"v":1,"event_id":"commit","kind":{"kind":"comp_committed","plan_commit_id_hex":"`+zero+`","comp_semantic_sha256":"`+zero+`","step_topo":["`+planned+`"]}}`)
	for i := range n {
		send("step", fmt.Sprintf(`{"v":1,"event_id":"step.%d","kind":{"kind":"step_executed","step_id":"s%d","step_index":%d,"request_fingerprints":[],"source_line":"pets.get(%d)","parsed_expr_digest":"%s"}}`, i, i%1000, i%1000, i, zero))
	}
	l.acked(t, &sent)
}

// acked waits for what was sent, and forgets it.
func (l *living) acked(t *testing.T, sent *[]jetstream.PubAckFuture) {
	t.Helper()
	for _, ack := range *sent {
		select {
		case <-ack.Ok():
		case err := <-ack.Err():
			t.Fatal(err)
		case <-t.Context().Done():
			t.Fatal("the broker did not answer")
		}
	}
	*sent = (*sent)[:0]
}

// TestLargeTimeline scrolls through a hundred thousand segments: few of them
// are in the document at a time, and the tab stays small, at every moment of
// reading an open chain, of verifying it when it is sealed, and of both at once.
func TestLargeTimeline(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 3_000
	}
	b := open(t)
	l := live(t)
	l.tell(t, "long", n, "s0")
	b.at(l.HTTPURL + "/")
	highest := b.watch()
	b.run(chromedp.Evaluate(`location.hash = "#/chain/acme/be9eb068c2b9f0e9ed94094fa5b5a859d4f75c2a0a3da216b680eda02adad0a1/5b1d9f0c7a3e4e0f8a6b2c4d1e9f7a30/long"`, nil))
	b.within(2*time.Minute, fmt.Sprintf(`Number(document.querySelector("[data-rows]")?.dataset.rows) === %d`, n+3))
	b.scrolls(n)
	b.run(chromedp.Focus(".timeline", chromedp.ByQuery), chromedp.KeyEvent(kb.End))
	b.run(chromedp.KeyEvent(kb.ArrowUp))
	b.until(fmt.Sprintf(`document.querySelector(".row-panel").textContent.includes("pets.get(%d)")`, n-1))
	if got := eval[string](b, `document.querySelector(".row-panel").getAttribute("aria-live")`); got != "polite" {
		t.Errorf("what the chosen row is about is announced %q", got)
	}
	if got := eval[int](b, `view.timeline.deviating`); got != n-1 {
		t.Errorf("%d deviations are marked, want %d: all steps but the one that was planned", got, n-1)
	}
	if _, err := l.js.Publish(t.Context(), largeChain+"long.seal", []byte(`{"v":1,"event_id":"seal","outcome":"failed"}`)); err != nil {
		t.Fatal(err)
	}
	judged := `document.body.dataset.chain === "failed sealed" && document.querySelector("#verdict-word") !== null`
	b.within(2*time.Minute, judged)
	b.run(chromedp.Reload())
	b.within(2*time.Minute, judged+fmt.Sprintf(` && Number(document.querySelector("[data-rows]").dataset.rows) === %d`, n+3))
	peak := highest()
	t.Logf("%d segments: the tab's process held %.0f MB at most", n+2, float64(peak)/1e6)
	if peak > largest {
		t.Errorf("the tab's process held %.0f MB, want %.0f at most", float64(peak)/1e6, largest/1e6)
	}
	b.quiet(l.HTTPURL)
}

// scrolls goes to several places of a timeline of an open chain with n steps. What is
// in the document is what belongs there, and not more.
func (b *tab) scrolls(n int) {
	b.t.Helper()
	for _, part := range []float64{0, 0.3, 0.77, 0.999, 1} {
		eval[bool](b, fmt.Sprintf(`new Promise((drawn) => { view.timeline.list.scrollTop = %f * view.timeline.list.scrollHeight; requestAnimationFrame(() => requestAnimationFrame(() => drawn(true))); })`, part))
		b.until(`document.querySelector(".row.unread") === null`)
		rows := eval[[]struct {
			Place int
			Title string
		}](b, `[...document.querySelectorAll(".row")].map((row) => ({Place: Number(row.getAttribute("aria-posinset")), Title: row.querySelector(".row-title").textContent}))`)
		if len(rows) < 10 || len(rows) > 60 {
			b.t.Errorf("at %.0f%% %d rows are in the document", 100*part, len(rows))
		}
		for _, row := range rows {
			want := fmt.Sprintf("Step s%d", (row.Place-3)%1000)
			switch row.Place {
			case 1:
				want = "Intent bound"
			case 2:
				want = "Plan committed: 1 step"
			case n + 3:
				want = "Open: more may come"
			}
			if row.Title != want {
				b.t.Errorf("row %d says %q, want %q", row.Place, row.Title, want)
			}
		}
	}
}

// TestHostileEventsAreText shows a chain whose every text wants to be more.
func TestHostileEventsAreText(t *testing.T) {
	b := open(t)
	l := live(t)
	markup := `<img src=x onerror=alert(1)><script>alert(2)</script>`
	l.tell(t, "hostile", 2, markup+`\u001b[2K\u202e`+strings.Repeat("A", 100_000))
	zero := strings.Repeat("0", 64)
	if _, err := l.js.Publish(t.Context(), largeChain+"hostile.step", []byte(`{"v":1,"event_id":"bad","kind":{"kind":"step_executed","step_id":"`+markup+`","step_index":9,"request_fingerprints":["`+markup+`"],"source_line":"`+markup+`\u001b[1A\u202e\u2066\u200b","parsed_expr_digest":"`+zero+`"}}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.js.Publish(t.Context(), largeChain+"hostile.seal", []byte(`{"v":1,"event_id":"seal","outcome":"failed","reason":"`+markup+`\u202e"}`)); err != nil {
		t.Fatal(err)
	}
	b.at(l.HTTPURL + "/#/chain/acme/be9eb068c2b9f0e9ed94094fa5b5a859d4f75c2a0a3da216b680eda02adad0a1/5b1d9f0c7a3e4e0f8a6b2c4d1e9f7a30/hostile")
	b.until(`document.body.dataset.chain === "failed sealed" && document.querySelector("#verdict-word") !== null && document.querySelectorAll(".row").length === 6`)
	for i := range 6 {
		b.run(chromedp.Evaluate(fmt.Sprintf(`document.querySelector(".row-panel").replaceChildren(); view.timeline.choose(%d)`, i), nil))
		if i < 5 {
			b.until(`document.querySelector(".row-panel").textContent !== ""`)
		}
		visible := eval[string](b, `document.body.innerText`)
		if strings.ContainsAny(visible, "\u001b\u202e\u2066\u200b") {
			t.Errorf("row %d: characters that act on text are shown raw", i)
		}
		if !strings.Contains(visible, "<img src=x") || len(visible) > 200_000 {
			t.Errorf("row %d: the text is not shown, or is too long: %d bytes", i, len(visible))
		}
		if eval[bool](b, `document.querySelector("#view img, #view script") !== null`) {
			t.Errorf("row %d: markup became part of the page", i)
		}
	}
	b.quiet(l.HTTPURL)
}
