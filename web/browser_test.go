package web_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// mustHave skips a test for which something is not installed, except in
// continuous integration, which installs it: there the test fails.
func mustHave(t *testing.T, what string, found bool, how string) {
	t.Helper()
	switch {
	case found:
	case os.Getenv("CI") != "":
		t.Fatalf("%s is not installed, and CI must have it: %s", what, how)
	default:
		t.Skipf("%s is not installed: %s", what, how)
	}
}

// chromium finds the browser.
func chromium(t *testing.T) string {
	t.Helper()
	path := os.Getenv("CHAIND_CHROMIUM")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); path == "" && err == nil {
			path = found
		}
	}
	mustHave(t, "chromium", path != "", "apt-get install chromium, or name it in CHAIND_CHROMIUM")
	return path
}

// tab is a page of a headless browser with all that it complained about and
// all that it asked for.
type tab struct {
	context.Context
	t *testing.T

	mu         sync.Mutex
	complaints []string
	requests   []string
}

// open starts a browser of its own for the test, which ends with it.
func open(t *testing.T) *tab {
	t.Helper()
	// Processes of the browser may outlive it for a moment, writing; t.TempDir
	// would make that a failure.
	home, err := os.MkdirTemp("", "chaind-browser-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.UserDataDir(filepath.Join(home, "profile")),
		chromedp.Env("HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(time.Minute))
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx)
		cancel()
	})
	b := &tab{Context: ctx, t: t}
	chromedp.ListenTarget(ctx, b.listen)
	b.run(network.Enable().WithMaxTotalBufferSize(1).WithMaxResourceBufferSize(1), log.Enable(), runtime.Enable())
	return b
}

func (b *tab) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, "exception: "+e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
			b.complaints = append(b.complaints, fmt.Sprintf("console.%s: %s", e.Type, e.Args[0].Value))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
			b.complaints = append(b.complaints, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	}
}

// run does what the actions say, or ends the test.
func (b *tab) run(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b, actions...); err != nil {
		b.t.Fatalf("browser: %v", err)
	}
}

// eval gives the value of an expression, waiting when it is a promise.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	var v T
	b.run(chromedp.Evaluate(expression, &v, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return v
}

// until waits for an expression to be true. What fails while a page is being
// exchanged for another is asked again.
func (b *tab) until(expression string) {
	b.t.Helper()
	b.within(45*time.Second, expression)
}

// within is until for what takes long, where much is to be done.
func (b *tab) within(patience time.Duration, expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b, patience)
	defer cancel()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		var holds bool
		err := chromedp.Run(ctx, chromedp.Evaluate("Boolean("+expression+")", &holds))
		if err == nil && holds {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			var state string
			_ = chromedp.Run(b, chromedp.Evaluate(`document.body.innerText.slice(0, 2000)`, &state))
			b.t.Fatalf("browser: waiting for %s: %v\n%s\n%q", expression, err, state, b.complaints)
		}
	}
}

// quiet fails the test for every complaint of the page, and for every request
// beyond its own address and data that it made itself.
func (b *tab) quiet(own string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, complaint := range b.complaints {
		b.t.Errorf("the page complained: %s", complaint)
	}
	for _, url := range b.requests {
		if !strings.HasPrefix(url, own) && !strings.HasPrefix(url, "blob:") && !strings.HasPrefix(url, "data:") {
			b.t.Errorf("the page asked for %s", url)
		}
	}
}

// beforeEachPage runs a script before those of the page.
func beforeEachPage(script string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(script).Do(ctx)
		return err
	})
}

// axe finds the accessibility checker.
func axe(t *testing.T) string {
	t.Helper()
	code, err := os.ReadFile("testdata/axe/node_modules/axe-core/axe.min.js")
	mustHave(t, "axe-core", err == nil, "npm ci --prefix web/testdata/axe")
	return string(code)
}

// accessible fails the test for every serious violation of what axe-core knows.
func (b *tab) accessible(code, where string) {
	b.t.Helper()
	b.run(chromedp.Evaluate(code, nil))
	found := eval[[]struct {
		ID, Impact, Help string
		Nodes            []struct{ HTML string }
	}](b, `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations.map((v) => ({ID: v.id, Impact: v.impact, Help: v.help, Nodes: v.nodes.map((n) => ({HTML: n.html.slice(0, 300)}))})))`)
	for _, v := range found {
		if v.Impact == "serious" || v.Impact == "critical" || v.Impact == "moderate" {
			b.t.Errorf("%s: %s %s: %s: %v", where, v.Impact, v.ID, v.Help, v.Nodes)
		}
	}
}

// look keeps a picture of the whole page in the directory of CHAIND_SCREENSHOTS,
// for a person.
func (b *tab) look(name string, width int64, dark bool) {
	b.t.Helper()
	dir := os.Getenv("CHAIND_SCREENSHOTS")
	if dir == "" {
		return
	}
	b.size(width, dark)
	var picture []byte
	b.run(chromedp.FullScreenshot(&picture, 100))
	theme := map[bool]string{false: "light", true: "dark"}[dark]
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, width, theme)), picture, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
