package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chaind/chaind/engine/naive"
)

// typed runs a command line and gives its exit code and standard output.
func typed(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out, complaints bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(""), &out, &complaints)
	return code, out.String()
}

// forgeries writes honest.tsb with an edit, sealed again and not.
func forgeries(t *testing.T, edit func(doc map[string]any)) []string {
	t.Helper()
	text := readHouse(t, "testdata/tessera/honest.tsb")
	var files []string
	for i, seal := range []bool{false, true} {
		doc := naive.MustParse(text)
		edit(doc)
		if seal {
			naive.Seal(doc)
		}
		name := filepath.Join(t.TempDir(), fmt.Sprintf("%d.tsb", i))
		if err := os.WriteFile(name, []byte(naive.File(doc)), 0o644); err != nil {
			t.Fatal(err)
		}
		files = append(files, name)
	}
	return files
}

// TestV07TextJSONAndExitAgree: for each file, the verdict line, the JSON and the
// exit code of verify say the same, and so does explain.
func TestV07TextJSONAndExitAgree(t *testing.T) {
	t.Parallel()
	var files []string
	for _, pattern := range []string{"testdata/tessera/*.tsb", "engine/run/testdata/*.tsb", "testdata/plasm/p0*/bundle.json", "testdata/plasm/n0*/bundle.json"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		files = append(files, found...)
	}
	files = append(files, forgeries(t, func(doc map[string]any) { naive.Put(doc, false, "result", "claims", 0, "verified") })...)
	seen := map[int]bool{}
	for _, name := range files {
		code, text := typed(t, "verify", name)
		jsonCode, out := typed(t, "verify", "--json", name)
		var got struct {
			Files []struct {
				Report struct {
					Verdict, Summary string
					ExitCode         int `json:"exit_code"`
				}
			}
			ExitCode int `json:"exit_code"`
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil || len(got.Files) != 1 {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		r := got.Files[0].Report
		if want := fmt.Sprintf("\n%s %s: %s (exit %d)\n", r.Verdict, name, r.Summary, code); !strings.HasSuffix(text, want) {
			t.Errorf("%s: the text does not end in %q:\n%s", name, want, text)
		}
		if code != jsonCode || code != r.ExitCode || code != got.ExitCode {
			t.Errorf("%s: exit codes %d, %d, %d, %d", name, code, jsonCode, r.ExitCode, got.ExitCode)
		}
		if strings.HasSuffix(name, ".tsb") {
			if explained, shown := typed(t, "explain", name); explained != code || !strings.HasSuffix(shown, fmt.Sprintf("\n%s %s: %s (exit %d)\n", r.Verdict, name, r.Summary, code)) {
				t.Errorf("%s: explain ends with exit %d:\n%s", name, explained, shown)
			}
		}
		seen[code] = true
	}
	if len(files) < 20 || !seen[0] || !seen[2] || !seen[3] || !seen[4] {
		t.Errorf("%d files, codes %v", len(files), seen)
	}
}

// TestV21NothingImitatesAVerdict puts what moves a cursor, and a verdict line,
// into every text that verify and explain could print.
func TestV21NothingImitatesAVerdict(t *testing.T) {
	t.Parallel()
	const evil = "\x1b[2K\x1b[1A\nPASS run.tsb: fine (exit 0)\r\x1b]8;;http://x\x07\u202e\u2066\u200b\x7f\u0085\u2028"
	for _, path := range [][]any{
		{"result", "question"}, {"result", "claims", 0, "text"}, {"result", "claims", 0, "support", 0, "text"}, {"result", "claims", 0, "support", 0, "source"},
		{"result", "claims", 0, "support", 0, "locator", "parts", 0, 1}, {"result", "claims", 0, "support", 0, "id"}, {"engine", "domain"}, {"engine", "tessera_version"},
		{"evidence_closure", "graph", "nodes", 0, "record", "id"}, {"evidence_closure", "kind"}, {"integrity", "root"}, {"integrity", "leaves", evil}, {evil},
		{"action"},
	} {
		files := forgeries(t, func(doc map[string]any) { put(doc, evil, path) })
		if path[0] == "integrity" {
			files = files[:1] // sealing again makes it what it was
		}
		for _, name := range files {
			for _, command := range [][]string{{"verify", name}, {"explain", name}, {"explain", "--full", name}, {"verify", "--json", name}, {"explain", "--json", name}} {
				code, out := typed(t, command...)
				if code == exitOK {
					t.Errorf("%v, %v: passes", command, path)
				}
				harmless(t, fmt.Sprint(command, path), out, !slices.Contains(command, "--json"))
			}
		}
	}
}

// put makes the action an object, whose every text is the same.
func put(doc map[string]any, evil string, path []any) {
	if path[0] != "action" {
		naive.Put(doc, evil, path...)
		return
	}
	slot := map[string]any{"part": evil, "role": evil, "value": evil}
	naive.Put(doc, map[string]any{"kind": evil, "outcome": evil, "slots": []any{slot}, "request": map[string]any{"method": evil, "path": evil, "body": evil}}, "action")
}

func harmless(t *testing.T, name, out string, text bool) {
	t.Helper()
	for _, r := range out {
		if r != '\n' && (r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0 || strings.ContainsRune("\u202e\u2066\u200b\u2028", r)) {
			t.Errorf("%s prints %U", name, r)
			return
		}
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	for i, line := range lines {
		if first := !strings.HasPrefix(line, "  "); text && first != (i == len(lines)-1) || strings.HasPrefix(line, "PASS") {
			t.Errorf("%s: line %d is %q", name, i, line)
			return
		}
	}
}

// TestNaiveCheckerAcceptsWhatIsWritten: a checker of maps and digests alone, in
// the place of other programs, accepts the envelope of what the commands write.
func TestNaiveCheckerAcceptsWhatIsWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tessera, evidence, key := filepath.Join(root, "testdata", "tessera"), filepath.Join(root, "testdata", "plasm", "p01-full-run-unsigned", "bundle.json"), filepath.Join(dir, "key")
	if code, _ := typed(t, "keygen", key); code != exitOK {
		t.Fatalf("keygen: exit %d", code)
	}
	for i, command := range [][]string{
		{"bundle", "--evidence", evidence},
		{"bundle", "--from", filepath.Join(tessera, "rca.tsb"), "Why did run R-1042 fail, and has this happened before?", "--action", "incident"},
		{"chain", "What failed?", filepath.Join(tessera, "rca.tsb"), filepath.Join(tessera, "honest.tsb")},
		{"sign", filepath.Join(tessera, "honest-public.tsb")},
		{"sign", filepath.Join(tessera, "brief.tsb")},
	} {
		for _, signed := range []bool{false, true} {
			name := filepath.Join(dir, fmt.Sprintf("%d-%t.tsb", i, signed))
			args := append(slices.Clone(command), "-o", name)
			if signed || command[0] == "sign" {
				args = append(args, "--signing-key", key)
			}
			if code, out := typed(t, args...); code != exitOK {
				t.Fatalf("%v: exit %d\n%s", args, code, out)
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			doc := naive.MustParse(string(text))
			if err := naive.Check(doc); err != nil || naive.File(doc) != string(text) {
				t.Errorf("%v: %v, canonical: %t", args, err, naive.File(doc) == string(text))
			}
			if _, has := doc["signature"].(map[string]any); has != (signed || command[0] == "sign") {
				t.Errorf("%v: signed: %t", args, has)
			}
		}
	}
}

// TestOutputIsWholeOrAbsent: what cannot be written leaves nothing, and what
// stands there is not touched.
func TestOutputIsWholeOrAbsent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.tsb")
	if err := writeFile(path, []byte("one"), false); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(path, []byte("two"), false); !os.IsExist(err) {
		t.Errorf("a second file: %v", err)
	}
	if err := writeFile(filepath.Join(dir, "none", "a.tsb"), nil, true); err == nil {
		t.Error("written into a directory that is not there")
	}
	if text, err := os.ReadFile(path); string(text) != "one" {
		t.Errorf("%q, %v", text, err)
	}
	if err := writeFile(path, []byte("two"), true); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "b.tsb"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(filepath.Join(dir, "b.tsb"), []byte("x"), true); err == nil {
		t.Error("a directory was replaced")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("%d entries, %v: %v", len(entries), err, entries)
	}
	if text, err := os.ReadFile(path); string(text) != "two" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestTrustBundleExamples types what docs/trust-bundles.md shows, from the top of
// the house. Files that the lines write go elsewhere.
func TestTrustBundleExamples(t *testing.T) {
	page := readHouse(t, "docs/trust-bundles.md")
	examples := example.FindAllStringSubmatch(page, -1)
	if n := strings.Count(page, "```sh\n"); n != len(examples) || n < 6 {
		t.Fatalf("%d sh blocks, %d of them with what they print", n, len(examples))
	}
	house, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"testdata", "engine"} {
		if err := os.Symlink(filepath.Join(house, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range examples {
		shell := exec.Command("sh", "-euc", e[1])
		shell.Dir = dir
		var complaints strings.Builder
		shell.Stderr = &complaints
		out, err := shell.Output()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatalf("%s\n%v\n%s", e[1], err, complaints.String())
		}
		if string(out) != e[2] {
			t.Errorf("%s\nprints\n%s\nthe page shows\n%s%s", e[1], out, e[2], complaints.String())
		}
	}
}

// TestTrustBundlePageNamesEveryWord: the page explains each verdict and each
// verdict on a claim that the verifier has.
func TestTrustBundlePageNamesEveryWord(t *testing.T) {
	t.Parallel()
	page := readHouse(t, "docs/trust-bundles.md")
	words := regexp.MustCompile(`(?:Verdict|ClaimVerdict|Taxonomy)\s+= "([A-Za-z-]+)"`)
	found := 0
	for _, source := range []string{"verifier/verdict.go", "verifier/content.go", "engine/result.go"} {
		for _, m := range words.FindAllStringSubmatch(readHouse(t, source), -1) {
			found++
			if !strings.Contains(page, "`"+m[1]+"`") && m[1] != "TAMPERED" {
				t.Errorf("docs/trust-bundles.md does not explain %q of %s", m[1], source)
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d words found", found)
	}
}
