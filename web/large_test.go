package web_test

import (
	"fmt"
	"strings"
	"testing"

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
// are in the document at a time, and the page stays small.
func TestLargeTimeline(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 3_000
	}
	b := open(t)
	l := live(t)
	l.tell(t, "long", n, "s0")
	b.at(l.HTTPURL + "/#/chain/acme/be9eb068c2b9f0e9ed94094fa5b5a859d4f75c2a0a3da216b680eda02adad0a1/5b1d9f0c7a3e4e0f8a6b2c4d1e9f7a30/long")
	b.until(fmt.Sprintf(`Number(document.querySelector("[data-rows]")?.dataset.rows) === %d`, n+3))
	worst := 0
	for _, part := range []float64{0, 0.3, 0.77, 1} {
		got := eval[struct {
			Rows int
			Last string
		}](b, fmt.Sprintf(`new Promise((done) => { view.timeline.list.scrollTop = %f * view.timeline.list.scrollHeight; requestAnimationFrame(() => requestAnimationFrame(() =>
			done({Rows: document.querySelectorAll(".row").length, Last: [...document.querySelectorAll(".row-title")].at(-1).textContent}))); })`, part))
		worst = max(worst, got.Rows)
		if part == 1 && !strings.HasPrefix(got.Last, "Open") {
			t.Errorf("the last row is %q", got.Last)
		}
	}
	if worst > 60 {
		t.Errorf("%d rows are in the document", worst)
	}
	b.run(chromedp.Focus(".timeline", chromedp.ByQuery), chromedp.KeyEvent(kb.End))
	b.run(chromedp.KeyEvent(kb.ArrowUp))
	b.until(fmt.Sprintf(`document.querySelector(".row-panel").textContent.includes("pets.get(%d)")`, n-1))
	if got := eval[string](b, `document.querySelector(".row-panel").getAttribute("aria-live")`); got != "polite" {
		t.Errorf("what the chosen row is about is announced %q", got)
	}
	if got := eval[int](b, `view.timeline.segments.filter((r) => r.mark).length`); got != n-1 {
		t.Errorf("%d deviations are marked, want %d: all steps but the one that was planned", got, n-1)
	}
	t.Logf("%d segments: %d rows in the document at most", n+2, worst)
	b.small("the timeline of an open chain")
	if _, err := l.js.Publish(t.Context(), largeChain+"long.seal", []byte(`{"v":1,"event_id":"seal","outcome":"failed"}`)); err != nil {
		t.Fatal(err)
	}
	b.until(`document.body.dataset.chain === "failed sealed" && document.querySelector("#verdict-word") !== null`)
	b.small("the same with its verdict")
	b.quiet(l.HTTPURL)
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
