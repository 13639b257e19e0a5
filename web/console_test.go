package web_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/internal/daemon"
	"github.com/chaind/chaind/verifier"
)

// living is a running daemon.
type living struct {
	daemon.Info
	js jetstream.JetStream
}

// live runs a signing daemon for the time of the test. With secrets it answers
// only to their bearers, who may read the tenant acme.
func live(t *testing.T, secrets ...string) *living {
	t.Helper()
	dir := t.TempDir()
	key := filepath.Join(dir, "signing.key")
	if _, err := daemon.CreateKey(key); err != nil {
		t.Fatal(err)
	}
	tokens := ""
	for _, secret := range secrets {
		sum := sha256.Sum256([]byte(secret))
		entry := daemon.TokenEntry{SHA256: hex.EncodeToString(sum[:]), Tenants: []string{"acme"}}
		tokens = filepath.Join(dir, "tokens.yaml")
		if err := os.WriteFile(tokens, []byte(entry.YAML()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	public := strings.TrimSpace(string(read(t, key+".pub")))
	ctx, stop := context.WithCancel(context.Background())
	started, stopped := make(chan daemon.Info, 1), make(chan error, 1)
	go func() {
		stopped <- daemon.Run(ctx, daemon.Config{
			DataDir: filepath.Join(dir, "data"),
			NATS:    daemon.NATSConfig{Listen: "127.0.0.1:-1"},
			HTTP:    daemon.HTTPConfig{Listen: "127.0.0.1:0", Tokens: tokens},
			Keys:    daemon.KeyConfig{SigningKey: key, Trusted: []string{public}},
			Logger:  slog.New(slog.DiscardHandler),
			Now:     time.Now,
		}, func(i daemon.Info) { started <- i })
	}()
	l := &living{}
	select {
	case l.Info = <-started:
	case err := <-stopped:
		stop()
		t.Fatalf("daemon: %v", err)
	}
	conn, err := nats.Connect(l.NATSURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		stop()
		if err := <-stopped; err != nil {
			t.Errorf("daemon: %v", err)
		}
	})
	if l.js, err = jetstream.New(conn); err != nil {
		t.Fatal(err)
	}
	return l
}

// publish sends each line {subject, payload} of a file.
func (l *living) publish(t *testing.T, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 4<<20)
	for n := 0; ; n++ {
		if !lines.Scan() {
			if n == 0 || lines.Err() != nil {
				t.Fatalf("%s: %d lines, %v", path, n, lines.Err())
			}
			return
		}
		var line struct {
			Subject string
			Payload json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		payload := []byte(line.Payload)
		var text string
		if json.Unmarshal(line.Payload, &text) == nil {
			payload = []byte(text)
		}
		l.send(t, line.Subject, payload)
	}
}

// send publishes one message; what the broker itself refuses never was an event.
func (l *living) send(t *testing.T, subject string, payload []byte) {
	t.Helper()
	if _, err := l.js.Publish(t.Context(), subject, payload); err != nil && !strings.HasPrefix(subject, "evidence.") {
		t.Logf("publish on %.60q: %v", subject, err)
	} else if err != nil {
		t.Fatalf("publish on %.60q: %v", subject, err)
	}
}

// at opens a view and waits until it has been filled.
func (b *tab) at(url string) {
	b.t.Helper()
	b.run(chromedp.Navigate("about:blank"), chromedp.Navigate(url))
	b.until(`document.body.dataset.view !== undefined`)
}

// TestConsole walks from the list to a run, its timeline, its verdict, its
// download, and with that file to the verify page.
func TestConsole(t *testing.T) {
	b := open(t)
	l := live(t)
	l.publish(t, "../testdata/events/small.jsonl")
	l.publish(t, "../docs/example.jsonl")
	saved := t.TempDir()
	b.run(browser.SetDownloadBehavior(browser.SetDownloadBehaviorBehaviorAllow).WithDownloadPath(saved).WithEventsEnabled(true))
	done := make(chan struct{}, 1)
	chromedp.ListenTarget(b, func(e any) {
		if p, ok := e.(*browser.EventDownloadProgress); ok && p.State == browser.DownloadProgressStateCompleted {
			done <- struct{}{}
		}
	})

	b.at(l.HTTPURL + "/")
	b.until(`[...document.querySelectorAll("#view tbody tr")].some((r) => r.querySelector("a").textContent === "example" && r.textContent.includes("signed"))`)
	b.run(chromedp.Click(`//a[text()="example"]`, chromedp.BySearch))
	b.until(`document.body.dataset.chain === "succeeded sealed" && document.querySelector("#verdict-word") !== null`)

	rows := eval[[]string](b, `[...document.querySelectorAll(".row")].map((r) => r.querySelector(".row-title").textContent)`)
	if len(rows) < 4 || !strings.HasPrefix(rows[0], "Intent bound") || rows[len(rows)-1] != "Ended: succeeded" {
		t.Errorf("timeline %q", rows)
	}
	b.run(chromedp.Click("#download", chromedp.ByQuery))
	select {
	case <-done:
	case <-b.Done():
		t.Fatal("the download never ended")
	}
	files := glob(t, filepath.Join(saved, "*.evidence.json"), 1)
	content := read(t, files[0])
	if report := verifier.File(t.Context(), strings.NewReader(string(content)), verifier.Options{}); report.ExitCode != 0 {
		t.Fatalf("the downloaded evidence gives %s", report.Summary)
	}
	inConsole := eval[[]string](b, `[document.querySelector("#verdict-word").textContent, ...[...document.querySelectorAll("[data-check]")].map((c) => c.dataset.check + " " + c.dataset.status)]`)

	public := eval[string](b, `askJSON("/v1/keys").then((k) => k.signing.public_key)`)
	b.run(chromedp.Navigate(l.HTTPURL + "/verify#trust=" + public))
	b.until(`document.body.dataset.engine === "ready"`)
	s := sample{name: filepath.Base(files[0]), content: content, keys: []string{public}}
	got := b.upload([]sample{s}, s.keys)
	compare(t, s, got[0])
	shown := []string{got[0].Word}
	for _, c := range got[0].Checks {
		shown = append(shown, c[0]+" "+c[1])
	}
	if strings.Join(shown, "\n") != strings.Join(inConsole, "\n") {
		t.Errorf("the console says %q, the verify page %q", inConsole, shown)
	}
	b.quiet(l.HTTPURL)
}

// TestConsoleViews looks at each view in both themes and sizes.
func TestConsoleViews(t *testing.T) {
	if testing.Short() {
		t.Skip("looks at many views")
	}
	b := open(t)
	code := axe(t)
	l := live(t)
	b.at(l.HTTPURL + "/")
	b.until(`document.querySelector("#view h2")?.textContent === "No chain yet"`)
	b.examine(code, "console-empty")
	l.publish(t, "../testdata/events/small.jsonl")
	l.publish(t, "../docs/example.jsonl")
	b.at(l.HTTPURL + "/")
	b.until(`document.querySelectorAll("#view tbody tr").length > 5`)
	find := func(word string) string {
		return eval[string](b, fmt.Sprintf(`askJSON("/v1/chains?limit=200").then((p) => "#/chain/" + chainPath(p.chains.filter((c) => c.segments > 2 && (c.outcome === %[1]q || c.conformity === %[1]q)).sort((a, b) => b.segments + b.late + b.rejected - a.segments - a.late - a.rejected)[0]))`, word))
	}
	views := [][2]string{{"chains", "#/"}, {"filtered", "#/?outcome=failed"}, {"chain", find("succeeded")}, {"chain-bad", find("nonconforming")}, {"chain-open", find("open")},
		{"rejected", "#/rejected"}, {"keys", "#/keys"}, {"activity", "#/activity"}}
	for _, v := range views {
		b.at(l.HTTPURL + "/" + v[1])
		if strings.HasPrefix(v[1], "#/chain/") {
			b.until(`document.body.dataset.chain !== undefined && !document.querySelector(".verdict-part").textContent.includes("Verifying")`)
		}
		if v[0] == "activity" {
			b.until(`document.querySelector(".plots").textContent.includes("No event has come since this page was opened.")`)
			if eval[bool](b, `document.querySelector(".plots .tick") !== null`) {
				t.Error("where nothing goes on there are axes of nothing")
			}
			b.examine(code, "console-idle")
			l.publish(t, "../docs/example.jsonl")
			b.until(`samples.length > 2 && document.querySelectorAll("path.line").length > 3`)
		}
		b.examine(code, "console-"+v[0])
	}
	b.quiet(l.HTTPURL)
}

// TestConsoleAsksForAToken: with tokens the page is empty until it has one, and
// then shows what that token may read.
func TestConsoleAsksForAToken(t *testing.T) {
	b := open(t)
	const secret = "a-token-for-acme"
	l := live(t, secret)
	l.publish(t, "../docs/example.jsonl")
	b.run(chromedp.Navigate(l.HTTPURL + "/"))
	b.until(`document.getElementById("token") !== null`)
	if eval[bool](b, `document.querySelector("#view tbody") !== null`) {
		t.Error("chains are shown without a token")
	}
	b.examine(axe(t), "console-token")
	b.run(chromedp.SendKeys("#token", secret, chromedp.ByQuery), chromedp.Click("#alerts button", chromedp.ByQuery))
	b.until(`document.body.dataset.view === "chains" && document.querySelector("#view tbody tr a")?.textContent === "example"`)
	b.until(`sampleProblem !== ""`)
	if got := eval[string](b, `document.cookie + JSON.stringify(localStorage)`); got != "{}" {
		t.Errorf("the page keeps %s", got)
	}
}

// TestViewsLeaveNothing: what a view listens to ends with it.
func TestViewsLeaveNothing(t *testing.T) {
	b := open(t)
	l := live(t)
	b.run(beforeEachPage(`globalThis.listening = 0;
		const add = globalThis.addEventListener;
		globalThis.addEventListener = (name, f, options) => {
			if (name === "resize") { listening++; options?.signal?.addEventListener("abort", () => { listening--; }); }
			return add.call(globalThis, name, f, options);
		};`))
	b.at(l.HTTPURL + "/")
	for range 3 {
		b.run(chromedp.Evaluate(`location.hash = "#/chain/_/a/b/c"`, nil))
		b.until(`listening === 1`)
		b.run(chromedp.Evaluate(`location.hash = "#/keys"`, nil))
		b.until(`document.title.startsWith("Keys") && listening === 0`)
	}
}

// TestAddressesOfTheConsole: an address that is malformed, or leads nowhere, says
// so, whatever word of the language it is.
func TestAddressesOfTheConsole(t *testing.T) {
	b := open(t)
	l := live(t)
	b.at(l.HTTPURL + "/")
	for _, address := range []string{"%", "chain/%E0%A4%A", "__proto__", "constructor", "toString", "chain/a/b", "chain/a/b/c/d/e", "keys/x", "chains/x", "nowhere"} {
		b.run(chromedp.Evaluate(fmt.Sprintf(`location.hash = "#/%s"`, address), nil))
		b.until(`document.querySelector("#view h1")?.textContent === "Nothing here"`)
		if got := eval[string](b, `document.title`); got != "Nothing here · chaind" {
			t.Errorf("#/%s has the title %q", address, got)
		}
	}
	for address, title := range map[string]string{"": "Chains", "chains": "Chains", "keys": "Keys"} {
		b.run(chromedp.Evaluate(fmt.Sprintf(`location.hash = "#/%s"`, address), nil))
		b.until(fmt.Sprintf(`document.title === %q && document.querySelector("#view h1").textContent === %q`, title+" · chaind", title))
	}
	b.quiet(l.HTTPURL)
}
