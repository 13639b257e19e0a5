package web_test

import (
	"archive/zip"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/chaind/chaind/export"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/verifier"
	"github.com/chaind/chaind/web"
)

// exported is an export of three vectors with the verify page in it.
func exported(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	m := export.Manifest{Export: export.FormatName, CreatedMS: 1, Selection: export.Selection{What: "all chains"}}
	add := func(path, role string, content []byte) {
		files[path] = content
		m.Files = append(m.Files, export.Describe(path, role, content))
	}
	add("verify.html", export.RoleVerifier, web.Verify().HTML)
	for _, s := range vectorsNamed(t, "p01-full-run-unsigned.json", "p02-full-run-signed.json", "p04-unicode-and-escapes.json") {
		b, _, err := segments.ReadBundle(bytes.NewReader(s.content))
		if err != nil {
			t.Fatal(err)
		}
		head, path := b.Head.String(), "chains/"+strings.TrimSuffix(s.name, ".json")+"/e.evidence.json"
		add(path, export.RoleEvidence, s.content)
		m.Chains = append(m.Chains, export.Chain{Tenant: b.Scope.TenantID, PromptHash: b.Scope.PromptHash, Session: b.Scope.ExecuteSessionID,
			Chain: "c", Outcome: "succeeded", Conformity: "conforming", Segments: int64(len(b.Segments)), Head: &head, Evidence: &path})
	}
	manifest, err := m.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	files[export.ManifestFile] = manifest
	return files
}

func archive(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, content := range files {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestExportInTheBrowser gives archives and folders, whole and spoiled, to the
// page that came out of the export itself.
func TestExportInTheBrowser(t *testing.T) {
	b := open(t)
	dir := t.TempDir()
	for name, content := range exported(t) {
		path := filepath.Join(dir, "handover", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	home := "file://" + filepath.Join(dir, "handover", "verify.html")
	b.run(chromedp.Navigate(home))
	for name, spoil := range map[string]func(map[string][]byte){
		"whole":   func(map[string][]byte) {},
		"missing": func(f map[string][]byte) { delete(f, "chains/p02-full-run-signed/e.evidence.json") },
		"extra":   func(f map[string][]byte) { f["more.html"] = nil },
		"swapped": func(f map[string][]byte) {
			const x, y = "chains/p01-full-run-unsigned/e.evidence.json", "chains/p02-full-run-signed/e.evidence.json"
			f[x], f[y] = f[y], f[x]
		},
		"altered": func(f map[string][]byte) { f["verify.html"] = []byte("<script>alert(1)</script>") },
		"up":      func(f map[string][]byte) { f["../up"] = nil },
	} {
		files := exported(t)
		spoil(files)
		text := archive(t, files)
		var want *verifier.Report
		if folder, err := export.OpenZip(bytes.NewReader(text), int64(len(text))); err != nil {
			want = export.Refused(err)
		} else {
			want = export.Check(t.Context(), folder, verifier.Options{}, nil)
		}
		got := b.upload([]sample{{name: name + ".zip", content: text}}, nil)[0]
		if got.Report != string(want.AppendJSON(nil)) || got.Word != string(want.Verdict) || got.Summary != want.Summary {
			t.Errorf("%s: the page says %s %s, want %s %s", name, got.Word, got.Summary, want.Verdict, want.Summary)
		}
		if (want.ExitCode == verifier.ExitPass) != (name == "whole") {
			t.Errorf("%s: %s", name, want.Summary)
		}
	}

	b.run(chromedp.Evaluate(`delete document.body.dataset.settled`, nil), chromedp.SetUploadFiles("#folder", []string{filepath.Join(dir, "handover")}, chromedp.ByQuery))
	b.until(`document.body.dataset.settled !== undefined`)
	if got := eval[string](b, `at("verdict-word").textContent + " " + held[0].name + " " + held[0].answer.parts.length`); got != "PASS handover 3" {
		t.Errorf("the folder gives %q", got)
	}
	b.look("verify-export", 1280, false)
	b.look("verify-export", 390, true)
	b.quiet(home)
}

// TestReportOfAnExport makes an export as people do, looks at its printable
// report, and follows it: its own verify page takes the folder.
func TestReportOfAnExport(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the command")
	}
	b := open(t)
	code := axe(t)
	dir := t.TempDir()
	command := func(args ...string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), filepath.Join(dir, "chaind"), args...)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("chaind %q: %v\n%s", args, err, out)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "chaind"), "../cmd/chaind").CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, out)
	}
	command("demo", "--out", filepath.Join(dir, "demo"))
	handover := filepath.Join(dir, "handover")
	command("export", "--data-dir", filepath.Join(dir, "demo"), "--all", "-o", handover)

	home := "file://" + handover
	b.run(chromedp.Navigate(home + "/index.html"))
	b.examine(code, "report")
	b.withoutSlides("the report", 1280, 390, 320)
	lost := filepath.Join(dir, "lost")
	for _, path := range glob(t, filepath.Join(dir, "demo", "artifacts", "bundles", "*.tsb"), 1)[:1] {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(t.Context(), filepath.Join(dir, "chaind"), "export", "--data-dir", filepath.Join(dir, "demo"), "--all", "-o", lost)
	if out, err := c.CombinedOutput(); c.ProcessState.ExitCode() != verifier.ExitDegraded {
		t.Fatalf("an export without a trust bundle: %v\n%s", err, out)
	}
	b.run(chromedp.Navigate("file://" + lost + "/index.html"))
	if got := eval[string](b, `document.querySelector("table tbody").innerText`); !strings.Contains(got, "trust bundle not given") || !eval[bool](b, `document.body.textContent.includes("the trust bundle was written when")`) {
		t.Errorf("the list of chains does not say that one is without its trust bundle: %q", got)
	}
	b.withoutSlides("the report without a bundle", 1280, 390, 320)
	b.examine(code, "report-lost")
	b.run(chromedp.Navigate(home + "/index.html"))
	b.run(chromedp.Click(`a[href="verify.html"]`, chromedp.ByQuery))
	b.until(`document.body.dataset.engine === "ready"`)
	b.run(chromedp.SetUploadFiles("#folder", []string{handover}, chromedp.ByQuery))
	b.until(`document.body.dataset.settled !== undefined`)
	if got := eval[string](b, `at("verdict-word").textContent + " " + held[0].name`); got != "PASS handover" {
		t.Errorf("the folder gives %q", got)
	}
	b.quiet("file://" + dir)
}

// withoutSlides fails the test for what is wider than the screen, or than its own place.
func (b *tab) withoutSlides(where string, widths ...int64) {
	b.t.Helper()
	for _, width := range widths {
		b.size(width, false)
		if wide := eval[[]string](b, `[...document.querySelectorAll("html, main, section, table, .wide, code")].filter((node) => node.scrollWidth > node.clientWidth + 1 && getComputedStyle(node).display !== "inline").map((node) => node.nodeName + ": " + node.textContent.slice(0, 60))`); len(wide) > 0 {
			b.t.Errorf("%s, %d wide: cut: %q", where, width, wide)
		}
	}
}
