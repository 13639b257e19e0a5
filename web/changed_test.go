package web_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestFileThatChangedIsNotJudged: a file is read when it is judged, and one that is
// no longer what somebody chose has no verdict, alone and in a folder.
func TestFileThatChangedIsNotJudged(t *testing.T) {
	b := open(t)
	b.run(chromedp.Navigate(onDisk(t)))
	s := vectorsNamed(t, "p02-full-run-signed.json")
	path := filepath.Join(t.TempDir(), s[0].name)
	if err := os.WriteFile(path, s[0].content, 0o600); err != nil {
		t.Fatal(err)
	}
	b.run(chromedp.SetUploadFiles("#file", []string{path}, chromedp.ByQuery))
	b.until(`held.length === 1 && held[0].answer !== null && held[0].answer.report.verdict === "PASS"`)
	if err := os.WriteFile(path, append(s[0].content, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	b.run(chromedp.Evaluate(`delete document.body.dataset.settled; verifyAll(); true`, nil))
	b.until(`document.body.dataset.settled !== undefined`)
	if got := eval[string](b, `at("result").innerText`); !strings.Contains(got, "Not verified") || !strings.Contains(got, "neither a pass nor a failure") || eval[bool](b, `held[0].answer !== null`) {
		t.Errorf("a file that changed is shown as %q", got)
	} else if !strings.Contains(got, "after it was chosen.") || strings.Contains(got, "..") {
		t.Errorf("why a file that changed was not judged is told so: %q", got)
	}
	answers := eval[[]string](b, `Promise.all([engine.verify(held[0].file, settings()), engine.verifyExport([{path: "", file: held[0].file}], settings()),
		engine.verifyExport([{path: "manifest.json", file: held[0].file}, {path: "b", file: new Blob(["{}"])}], settings())].map((p) => p.then((a) => a.report, (error) => error.message)))`)
	for i, answer := range answers {
		if answer != "read file: it cannot be read any more, since it was changed, moved or removed after it was chosen" {
			t.Errorf("question %d: %q, want why the file was not read", i, answer)
		}
	}
}
