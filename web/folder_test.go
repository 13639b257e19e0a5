package web_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/chaind/chaind/export"
	"github.com/chaind/chaind/verifier"
)

// drop gives files to the page as if they, and the folders around them, were
// dropped together, and reads each verdict. Those with one number were in one
// thing that was dropped.
func (b *tab) drop(dropped ...map[string][]byte) []seen {
	b.t.Helper()
	type file struct {
		Path    string
		Drop    int
		Content []byte
	}
	var list []file
	for i, files := range dropped {
		for _, path := range slices.Sorted(maps.Keys(files)) {
			list = append(list, file{path, i, files[path]})
		}
	}
	text, err := json.Marshal(list)
	if err != nil {
		b.t.Fatal(err)
	}
	b.run(chromedp.Evaluate(`delete document.body.dataset.settled; take(`+string(text)+`.map((f) => Object.assign(
		new File([Uint8Array.from(atob(f.Content || ""), (c) => c.charCodeAt(0))], f.Path.split("/").pop()), { chaindPath: f.Path, chaindDrop: f.Drop }))); true`, nil))
	b.until(`document.body.dataset.settled !== undefined`)
	return b.verdicts()
}

// within puts a folder around files.
func within(name string, files map[string][]byte) map[string][]byte {
	moved := map[string][]byte{}
	for path, content := range files {
		moved[name+"/"+path] = content
	}
	return moved
}

// onCommandLine is the report on the files as a directory.
func onCommandLine(t *testing.T, files map[string][]byte) *verifier.Report {
	t.Helper()
	dir := t.TempDir()
	for path, content := range files {
		path = filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	return export.Check(t.Context(), root.FS(), verifier.Options{}, nil)
}

// TestFolderGetsTheWordsOfTheCommandLine: with names that no export has, without
// a manifest, with one that is no manifest, the page says of a folder what chaind
// verify says of the directory, and judges no part of it by itself.
func TestFolderGetsTheWordsOfTheCommandLine(t *testing.T) {
	b := open(t)
	home := onDisk(t)
	b.run(chromedp.Navigate(home))
	for name, change := range map[string]func(map[string][]byte){
		"whole":       func(map[string][]byte) {},
		"finder":      func(f map[string][]byte) { f[".DS_Store"] = []byte("x") },
		"space":       func(f map[string][]byte) { f["chains/a b.txt"] = nil },
		"capitals":    func(f map[string][]byte) { f["INDEX.HTML"] = nil },
		"case":        func(f map[string][]byte) { f["VERIFY.html"] = nil },
		"no manifest": func(f map[string][]byte) { delete(f, export.ManifestFile) },
		"no JSON":     func(f map[string][]byte) { f[export.ManifestFile] = []byte("[") },
		"deep":        func(f map[string][]byte) { f[export.ManifestFile] = bytes.Repeat([]byte(`{"export":[`), 3000) },
		"one file": func(f map[string][]byte) {
			maps.DeleteFunc(f, func(p string, _ []byte) bool { return !strings.Contains(p, "p02") })
		},
	} {
		files := exported(t)
		change(files)
		want := onCommandLine(t, files)
		got := b.drop(within("handover", files))
		if len(got) != 1 || got[0].Report != string(want.AppendJSON(nil)) || got[0].Word != string(want.Verdict) || got[0].Summary != want.Summary {
			t.Errorf("%s: the page says %v, want %s %s", name, got, want.Verdict, want.Summary)
		}
		if (want.ExitCode == verifier.ExitPass) != (name == "whole") {
			t.Errorf("%s: the command line says %s", name, want.Summary)
		}
	}
	b.quiet(home)
}

// TestFoldersAreJudgedApart: of folders that are dropped together, even under one
// name, each is an export of its own, and none fills what another misses. Files
// beside them are files.
func TestFoldersAreJudgedApart(t *testing.T) {
	b := open(t)
	home := onDisk(t)
	b.run(chromedp.Navigate(home))
	whole, missing := exported(t), exported(t)
	const evidence = "chains/p02-full-run-signed/e.evidence.json"
	delete(missing, evidence)
	rest := map[string][]byte{evidence: whole[evidence]}
	loose := map[string][]byte{"loose.json": whole[evidence]}
	for _, names := range [][2]string{{"A", "B"}, {"B", "A"}, {"A", "A"}} {
		got := b.drop(within(names[0], missing), within(names[1], rest), loose, within("C", whole))
		var words []string
		for _, s := range got {
			words = append(words, s.Name+" "+s.Word)
		}
		broken := string(onCommandLine(t, missing).Verdict)
		alone := string(onCommandLine(t, rest).Verdict)
		want := []string{names[0] + " " + broken, names[1] + " " + alone, "loose.json PASS", "C PASS"}
		if !slices.Equal(words, want) || broken == "PASS" || alone == "PASS" {
			t.Errorf("the page says %q, want %q", words, want)
		}
	}
	b.quiet(home)
}

// TestDeepFilesGetTheSameVerdict: nesting that ends a browser's stack, and just
// less, get the words of the command line; and so does what is judged after that.
func TestDeepFilesGetTheSameVerdict(t *testing.T) {
	b := open(t)
	home := onDisk(t)
	b.run(chromedp.Navigate(home))
	run := vectorsNamed(t, "p01-full-run-unsigned.json")[0]
	sealed := vectorsNamed(t, "engine-run-testdata-succeeded.tsb")[0]
	var samples []sample
	for _, n := range []int{100, 127, 128, 129, 511, 512, 513, 1000, 3000, 4000, 9999, 10001, 200_000} {
		arrays := strings.Repeat("[", n)
		whole := arrays + strings.Repeat("]", n)
		for i, content := range []string{
			arrays, whole, strings.Repeat(`{"a":`, n), strings.Repeat(`{"scope":`, n), `{"x":` + whole + `}`,
			strings.Replace(string(run.content), `{`, `{"x":`+whole+`,`, 1),
			strings.Replace(string(run.content), `"segments":[`, `"segments":[`+whole+`,`, 1),
			strings.Replace(string(sealed.content), `{`, `{"x":`+whole+`,`, 1),
			`"` + strings.Repeat(`[\"`, n) + `"`,
		} {
			samples = append(samples, sample{name: fmt.Sprintf("deep-%d-%d.json", n, i), content: []byte(content)})
		}
	}
	for i, got := range b.upload(append(samples, run, sealed), nil) {
		compare(t, append(samples, run, sealed)[i], got)
	}
	b.quiet(home)
}

// TestVerifierThatFailsIsReplaced: whatever is thrown through the verifier ends it;
// there is no verdict, and the next file is judged by another one.
func TestVerifierThatFailsIsReplaced(t *testing.T) {
	b := open(t)
	home := onDisk(t)
	b.run(chromedp.Navigate(home))
	b.until(`document.body.dataset.engine === "ready"`)
	run := vectorsNamed(t, "p01-full-run-unsigned.json")[0]
	b.run(chromedp.Evaluate(`globalThis.before = null; engine.start().then((w) => { globalThis.before = w; }); true`, nil))
	b.until(`globalThis.before !== null`)
	failed := eval[string](b, `(async () => {
		const answer = engine.call({ file: new Blob([]), settings: null }).then(() => "a verdict", (error) => error.message);
		return await answer;
	})()`)
	if failed == "a verdict" || failed == "" {
		t.Errorf("a question that throws gives %q", failed)
	}
	compare(t, run, b.upload([]sample{run}, nil)[0])
	if !eval[bool](b, `engine.start().then((w) => w !== globalThis.before)`) {
		t.Error("the verifier that failed goes on")
	}
}
