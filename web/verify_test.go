package web_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/verifier"
	"github.com/chaind/chaind/web"
)

func (b *tab) size(width int64, dark bool) {
	b.t.Helper()
	scheme := map[bool]string{false: "light", true: "dark"}[dark]
	b.run(chromedp.EmulateViewport(width, 900), emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
}

// onDisk writes the verify page to a file, as an auditor keeps it.
func onDisk(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "verify.html")
	if err := os.WriteFile(path, web.Verify().HTML, 0o644); err != nil {
		t.Fatal(err)
	}
	return "file://" + path
}

// sample is a file to verify, with whom to trust.
type sample struct {
	name    string
	content []byte
	keys    []string
	asked   verifier.Options // beside keys
}

// vectors are all evidence vectors and all trust bundles of the repository.
func vectors(t *testing.T) []sample {
	t.Helper()
	var list []sample
	for _, path := range glob(t, "../testdata/plasm/*/bundle.json", 50) {
		list = append(list, sample{name: filepath.Base(filepath.Dir(path)) + ".json", content: read(t, path), keys: trusted(t, path)})
	}
	for _, pattern := range []string{"../testdata/tessera/*.tsb", "../engine/run/testdata/*.tsb", "../bundle/testdata/*.tsb"} {
		for _, path := range glob(t, pattern, 1) {
			list = append(list, sample{name: strings.ReplaceAll(strings.TrimPrefix(path, "../"), "/", "-"), content: read(t, path)})
		}
	}
	return list
}

// trusted are the keys that a vector is to be verified with.
func trusted(t *testing.T, bundle string) []string {
	t.Helper()
	var expected struct {
		Inputs struct {
			Keys []string `json:"trusted_public_keys"`
		} `json:"inputs"`
	}
	if err := json.Unmarshal(read(t, filepath.Join(filepath.Dir(bundle), "expected.json")), &expected); err != nil {
		t.Fatal(err)
	}
	return expected.Inputs.Keys
}

func glob(t *testing.T, pattern string, least int) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) < least {
		t.Fatalf("%s: %d files, want %d at least (%v)", pattern, len(paths), least, err)
	}
	return paths
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// native is the report that the command line gives for the same file and keys.
func (s sample) native(t *testing.T) *verifier.Report {
	t.Helper()
	o := s.asked
	if len(s.keys) > 0 {
		entries, err := keys.ParseFlags(s.keys)
		if err != nil {
			t.Fatal(err)
		}
		if o.Trust, _, err = keys.Merge(entries); err != nil {
			t.Fatal(err)
		}
	}
	return verifier.File(t.Context(), bytes.NewReader(s.content), o)
}

// seen is what a person reads of one file's verdict.
type seen struct {
	Name    string      `json:"name"`
	Report  string      `json:"report"`
	Word    string      `json:"word"`
	Summary string      `json:"summary"`
	Checks  [][3]string `json:"checks"`
}

// upload gives files to the page, as if a person had chosen them, and reads
// each verdict off the screen.
func (b *tab) upload(samples []sample, trust []string) []seen {
	b.t.Helper()
	dir := b.t.TempDir()
	var paths []string
	for _, s := range samples {
		path := filepath.Join(dir, s.name)
		if err := os.WriteFile(path, s.content, 0o644); err != nil {
			b.t.Fatal(err)
		}
		paths = append(paths, path)
	}
	b.run(chromedp.Evaluate(fmt.Sprintf(`delete document.body.dataset.settled; held.length = 0; at("keys").value = %q`, strings.Join(trust, "\n")), nil),
		chromedp.SetUploadFiles("#file", paths, chromedp.ByQuery))
	b.until(`document.body.dataset.settled !== undefined`)
	return b.verdicts()
}

// verdicts reads each verdict off the screen.
func (b *tab) verdicts() []seen {
	b.t.Helper()
	return eval[[]seen](b, `held.map((item, i) => {
		current = i; draw();
		const text = (selector) => document.querySelector("#result " + selector)?.textContent ?? "";
		return {
			name: item.name, report: item.answer?.text ?? "no report: " + item.error,
			word: text("#verdict-word"), summary: text(".verdict-summary"),
			checks: [...document.querySelectorAll("#result [data-check]")].map((c) => [c.dataset.check, c.dataset.status, c.querySelector(".check-detail").textContent]),
		};
	})`)
}

// compare holds what a browser showed against the native report.
func compare(t *testing.T, s sample, got seen) {
	t.Helper()
	want := s.native(t)
	if text := string(want.AppendJSON(nil)); got.Report != text {
		t.Errorf("%s: the browser's report differs:\n got %s\nwant %s", s.name, got.Report, text)
		return
	}
	if got.Name != s.name || got.Word != string(want.Verdict) || got.Summary != want.Summary {
		t.Errorf("%s: the page says %s: %q %q, want %q %q", s.name, got.Name, got.Word, got.Summary, want.Verdict, want.Summary)
	}
	shown := map[string][3]string{}
	for _, row := range got.Checks {
		shown[row[0]] = row
	}
	if len(shown) != len(want.Checks) {
		t.Errorf("%s: the page shows %d checks, want %d", s.name, len(shown), len(want.Checks))
	}
	for _, c := range want.Checks {
		if row := shown[c.Name]; row != [3]string{c.Name, string(c.Status), c.Detail} {
			t.Errorf("%s: the page shows check %q, want %v", s.name, row, c)
		}
	}
}

// TestBrowserGivesTheVerdictOfTheCommandLine drops every vector into the page
// that came from a disk.
func TestBrowserGivesTheVerdictOfTheCommandLine(t *testing.T) {
	b := open(t)
	home := onDisk(t)
	b.run(chromedp.Navigate(home))
	groups := map[string][]sample{}
	for _, s := range vectors(t) {
		trust := strings.Join(s.keys, ",")
		groups[trust] = append(groups[trust], s)
	}
	if len(groups) < 2 {
		t.Fatal("no vector names a trusted key")
	}
	for _, samples := range groups {
		for i, got := range b.upload(samples, samples[0].keys) {
			compare(t, samples[i], got)
		}
	}
	b.quiet(home)
}

// TestFuzzedFilesGetTheSameVerdict changes files at random places.
func TestFuzzedFilesGetTheSameVerdict(t *testing.T) {
	n := 200
	if testing.Short() {
		n = 20
	}
	random := rand.New(rand.NewPCG(9, 9))
	seeds := vectors(t)
	var samples []sample
	for i := range n {
		s := seeds[random.IntN(len(seeds))]
		for len(s.content) == 0 || len(s.content) > 200<<10 {
			s = seeds[random.IntN(len(seeds))]
		}
		samples = append(samples, sample{name: fmt.Sprintf("%03d-%s", i, s.name), content: mutate(random, s.content)})
	}
	b := open(t)
	home := onDisk(t)
	b.run(chromedp.Navigate(home))
	for i, got := range b.upload(samples, nil) {
		compare(t, samples[i], got)
	}
	b.quiet(home)
}

// mutate flips, drops, doubles or cuts bytes.
func mutate(random *rand.Rand, content []byte) []byte {
	content = bytes.Clone(content)
	for range 1 + random.IntN(3) {
		if len(content) == 0 {
			break
		}
		at := random.IntN(len(content))
		end := min(len(content), at+1+random.IntN(16))
		switch random.IntN(5) {
		case 0, 1:
			content[at] ^= 1 << random.IntN(8)
		case 2:
			content = append(content[:at], content[end:]...)
		case 3:
			content = append(content[:end], append(bytes.Clone(content[at:end]), content[end:]...)...)
		case 4:
			content = content[:at]
		}
	}
	return content
}

// TestVerifyPageIsAccessible shows the page empty, with a pass, a failure, a
// trust bundle and a flipped byte, in both themes and on both sizes.
func TestVerifyPageIsAccessible(t *testing.T) {
	if testing.Short() {
		t.Skip("looks at many states")
	}
	b := open(t)
	code := axe(t)
	home := onDisk(t)
	b.run(chromedp.Navigate(home))
	b.until(`document.body.dataset.engine === "ready"`)
	states := []struct {
		name  string
		enter func()
	}{
		{"verify-empty", func() {}},
		{"verify-pass", func() {
			b.upload(vectorsNamed(t, "p02-full-run-signed.json"), vectorsNamed(t, "p02-full-run-signed.json")[0].keys)
		}},
		{"verify-fail", func() {
			b.upload(vectorsNamed(t, "n03-payload-tampered.json", "p02-full-run-signed.json", "n09-no-comp.json"), nil)
		}},
		{"verify-refused", func() { b.upload(vectorsNamed(t, "p02-full-run-signed.json"), []string{"not-a-key"}) }},
		{"verify-bundle", func() { b.upload(vectorsNamed(t, "engine-run-testdata-succeeded.tsb"), nil) }},
		{"verify-flip", func() {
			b.upload(vectorsNamed(t, "p02-full-run-signed.json"), nil)
			b.flip(bytes.Index(vectorsNamed(t, "p02-full-run-signed.json")[0].content, []byte("intent_digest")) + 20)
		}},
	}
	for _, state := range states {
		state.enter()
		b.examine(code, state.name)
	}
	b.quiet(home)
}

// examine holds what is on the screen to axe-core and to the width of the
// screen: light on a desktop, dark on a phone. Pictures for a person are taken of
// all four.
func (b *tab) examine(code, name string) {
	b.t.Helper()
	for _, dark := range []bool{false, true} {
		for _, width := range []int64{1280, 390} {
			if os.Getenv("CHAIND_SCREENSHOTS") == "" && dark == (width == 1280) {
				continue
			}
			b.size(width, dark)
			b.accessible(code, fmt.Sprintf("%s, %d px, dark %v", name, width, dark))
			b.look(name, width, dark)
		}
	}
	b.fits(name)
}

// fits fails the test when the page is wider than a screen, or a part of a card
// leaves it, at widths around those where the layout changes.
func (b *tab) fits(where string) {
	b.t.Helper()
	for _, width := range []int64{320, 390, 600, 820, 860, 900, 1280} {
		b.size(width, false)
		if width == 320 || width == 900 {
			b.look(where, width, false)
		}
		if got := eval[int64](b, `document.documentElement.scrollWidth`); got > width {
			b.t.Errorf("%s: the page is %d px wide on a screen of %d", where, got, width)
		}
		out := eval[[]string](b, `[...document.querySelectorAll(".card, .verdict, .drop, .tile")].filter((c) => c.scrollWidth > c.clientWidth + 1).map((c) => c.innerText.slice(0, 60))`)
		if len(out) > 0 {
			b.t.Errorf("%s: on a screen of %d px, parts leave the cards %q", where, width, out)
		}
	}
}

// TestPhonesFoldWhatPassed: on a small screen the checks that passed are folded,
// those that did not are open; on a large one all are.
func TestPhonesFoldWhatPassed(t *testing.T) {
	b := open(t)
	b.run(chromedp.Navigate(onDisk(t)))
	for width, want := range map[int64]string{390: "Failed open, Passed folded", 1280: "Failed open, Passed open"} {
		b.size(width, false)
		b.upload(vectorsNamed(t, "n03-payload-tampered.json"), nil)
		got := eval[string](b, `[...document.querySelectorAll(".checks details")].map((d) => d.querySelector("summary").textContent.split(" ")[0] + (d.open ? " open" : " folded")).filter((s) => /^(Passed|Failed)/.test(s)).join(", ")`)
		if got != want {
			t.Errorf("at %d px: %s, want %s", width, got, want)
		}
	}
}

// flip changes the byte at an offset, as the button does at a random one.
func (b *tab) flip(offset int) {
	b.t.Helper()
	b.run(chromedp.Evaluate(fmt.Sprintf(`delete document.body.dataset.settled; flipAt(held[current], %d); true`, offset), nil))
	b.until(`document.body.dataset.settled !== undefined`)
}

func vectorsNamed(t *testing.T, names ...string) []sample {
	t.Helper()
	var list []sample
	for _, name := range names {
		for _, s := range vectors(t) {
			if s.name == name {
				list = append(list, s)
			}
		}
	}
	if len(list) != len(names) {
		t.Fatalf("%d of the vectors %q are there", len(list), names)
	}
	return list
}

// TestFlippedByteShowsTheFailingCheck presses the button, sees the verdict
// turn, and puts the byte back.
func TestFlippedByteShowsTheFailingCheck(t *testing.T) {
	b := open(t)
	b.run(chromedp.Navigate(onDisk(t)))
	s := vectorsNamed(t, "p02-full-run-signed.json")
	if got := b.upload(s, s[0].keys); got[0].Word != string(verifier.Pass) {
		t.Fatalf("the vector gives %s", got[0].Word)
	}
	b.flip(bytes.Index(s[0].content, []byte(`"source_line":"`)) + len(`"source_line":"`))
	if got := eval[string](b, `document.querySelector(".check.fail [class=check-name]").textContent`); got != "links" && got != "head" {
		t.Errorf("the failing check shown first is %q", got)
	}
	b.run(chromedp.Evaluate(`delete document.body.dataset.settled; true`, nil), chromedp.Click("#restore", chromedp.ByQuery))
	b.until(`document.body.dataset.settled !== undefined`)
	if got := eval[string](b, `at("verdict-word").textContent`); got != string(verifier.Pass) {
		t.Errorf("after putting the byte back the verdict is %s", got)
	}
	b.run(chromedp.Evaluate(`delete document.body.dataset.settled; true`, nil), chromedp.Click("#flip", chromedp.ByQuery))
	b.until(`document.body.dataset.settled !== undefined`)
	if !eval[bool](b, `Promise.all([held[0].file, held[0].flip.file].map((file) => bytesOf(file, 0, file.size))).then(([before, after]) =>
		document.querySelector(".flipped mark") !== null && before.length === after.length && before.filter((c, i) => c !== after[i]).length === 1)`) {
		t.Error("the button did not change one byte")
	}
}

// TestTrustedKeysOfTheLink takes keys from the fragment, and says of a bad one
// that nothing was verified.
func TestTrustedKeysOfTheLink(t *testing.T) {
	b := open(t)
	s := vectorsNamed(t, "p02-full-run-signed.json")
	b.run(chromedp.Navigate(onDisk(t) + "#trust=" + s[0].keys[0]))
	if got := eval[string](b, `at("keys").value`); got != s[0].keys[0] {
		t.Fatalf("the page trusts %q", got)
	}
	for _, c := range []struct{ keys, shown string }{{s[0].keys[0], "TRUSTED"}, {strings.Repeat("1f", 32), ""}, {"", "SIGNED-UNPINNED"}} {
		b.upload(s, strings.Fields(c.keys))
		if got := eval[bool](b, `[...document.querySelectorAll(".badge")].some((b) => b.textContent === "TRUSTED")`); got != (c.shown == "TRUSTED") {
			t.Errorf("with keys %q TRUSTED is shown: %v", c.keys, got)
		}
	}
	b.upload(s, []string{"not-a-key"})
	if got := eval[string](b, `at("not-verified")?.textContent ?? ""`); !strings.Contains(got, "neither a pass nor a failure") {
		t.Errorf("with a key that is none the page says %q", got)
	}
	if eval[bool](b, `document.querySelector(".verdict") !== null`) {
		t.Error("a verdict is shown though nothing was verified")
	}
}

// TestWithoutWebAssembly: a browser that cannot verify gives no verdict.
func TestWithoutWebAssembly(t *testing.T) {
	b := open(t)
	home := onDisk(t)
	b.run(beforeEachPage(`delete globalThis.DecompressionStream`), chromedp.Navigate(home))
	b.until(`document.body.dataset.engine === "missing"`)
	b.upload(vectorsNamed(t, "p02-full-run-signed.json"), nil)
	if !eval[bool](b, `at("not-verified") !== null && document.querySelector(".verdict") === null`) {
		t.Error("a browser without the means to verify shows something else than that")
	}
	b.quiet(home)
}

// TestVerifyPageBrings checks what the page may load, and its size.
func TestVerifyPagePolicy(t *testing.T) {
	p := web.Verify()
	for _, forbidden := range []string{"unsafe-inline", "'unsafe-eval'", "http:", "https:", "connect-src", "*"} {
		if strings.Contains(p.Policy, forbidden) {
			t.Errorf("the policy has %s: %s", forbidden, p.Policy)
		}
	}
	if !bytes.Contains(p.HTML, []byte(strings.TrimSuffix(p.Policy, "; frame-ancestors 'none'"))) || bytes.Contains(p.HTML, []byte("{{")) {
		t.Error("the page does not state its policy, or has an empty place")
	}
	if n := len(web.Engine()); n > 3<<20 {
		t.Errorf("the verifier has %d bytes compressed", n)
	}
}

// TestHostileEvidenceIsText verifies files made to be shown badly.
func TestHostileEvidenceIsText(t *testing.T) {
	markup := `<img src=x onerror=alert(1)><script>alert(2)</script></script>{{script}}`
	acting := "\\u001b[2K\\u001b[1A VERIFIED \\u202e\\u2066txet\\u200b"
	long := strings.Repeat("A", 5_000_000)
	base := vectorsNamed(t, "p01-full-run-unsigned.json")[0].content
	var samples []sample
	for i, text := range []string{markup, acting, long, "__proto__", `\"],\"verdict\":\"PASS`} {
		content := bytes.Replace(base, []byte(`"entry_id":"`), []byte(`"entry_id":"`+text), 1)
		if bytes.Equal(content, base) {
			t.Fatal("the vector has no place for the text")
		}
		content = bytes.Replace(content, []byte(`"source_line":"`), []byte(`"source_line":"`+text), 1)
		content = bytes.Replace(content, []byte(`"step_id":"`), []byte(`"step_id":"`+text), 1)
		samples = append(samples, sample{name: fmt.Sprintf("hostile-%d.json", i), content: content})
	}
	samples = append(samples, sample{name: "hostile-keys.json", content: []byte(`{"__proto__":{"status":"approved"},"constructor":1,"toString":2,"scope":{}}`)})
	b := open(t)
	home := onDisk(t)
	b.run(chromedp.Navigate(home))
	for i, got := range b.upload(samples, nil) {
		compare(t, samples[i], got)
	}
	unseen := sample{name: "unseen.json", content: bytes.Replace(base, []byte(`"entry_id":"`), []byte("\"entry_id\":\"\u3164\u2800\u115f\u034f\ufe0f\u00a0\u3000\u180e|\u05d0\u05d1 (1 of 2) \u0627\u0628"), 1)}
	b.upload([]sample{unseen}, nil)
	entry := eval[string](b, `[...document.querySelectorAll("#result dt")].find((d) => d.textContent === "Entry").nextSibling.innerHTML`)
	if want := `\u3164\u2800\u115f\u034f\ufe0f\u00a0\u3000\u180e|<bdi>` + "\u05d0\u05d1</bdi> (1 of 2) <bdi>\u0627\u0628</bdi>"; !strings.HasPrefix(entry, want) {
		t.Errorf("the entry is shown as %q, want %q first", entry, want)
	}
	empty := sample{name: "empty.json"}
	compare(t, empty, b.upload([]sample{empty}, nil)[0])
	if eval[bool](b, `at("flip") !== null`) {
		t.Error("a byte of an empty file can be flipped")
	}
	b.upload(samples, nil)
	for i := range samples {
		visible := eval[string](b, fmt.Sprintf(`(current = %d, draw(), document.body.textContent.length > 3e6 ? "too long" : at("result").innerText)`, i))
		if strings.ContainsAny(visible, "\u001b\u202e\u2066\u200b") {
			t.Errorf("%s: characters that act on text are shown raw", samples[i].name)
		}
		if len(visible) > 300_000 {
			t.Errorf("%s: %d bytes of text are shown", samples[i].name, len(visible))
		}
		if eval[bool](b, `document.querySelector("#result img, #result script") !== null`) {
			t.Errorf("%s: markup of the file became part of the page", samples[i].name)
		}
	}
	b.quiet(home)
}
