package main

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// example is a sh block that a text block follows: lines to type and what they
// print.
var example = regexp.MustCompile("(?s)```sh\n([^`]*)```\n```text\n([^`]*)```")

// TestFormatExamples types what docs/evidence-format.md shows, from the top of the
// house. Files that the lines write go elsewhere.
func TestFormatExamples(t *testing.T) {
	t.Parallel()
	page := readHouse(t, "docs/evidence-format.md")
	examples := example.FindAllStringSubmatch(page, -1)
	if n := strings.Count(page, "```sh\n"); n != len(examples) || n < 6 {
		t.Fatalf("%d sh blocks, %d of them with what they print", n, len(examples))
	}
	written := regexp.MustCompile(`[a-z0-9-]+\.(json|txt)\b`)
	dir := t.TempDir()
	for _, e := range examples {
		lines := written.ReplaceAllStringFunc(e[1], func(name string) string {
			if strings.Contains(e[1], "/"+name) {
				return name // a file of the house
			}
			return dir + "/" + name
		})
		shell := exec.Command("sh", "-euc", lines)
		shell.Dir = root
		var complaints strings.Builder
		shell.Stderr = &complaints
		out, err := shell.Output()
		if err != nil {
			t.Errorf("%s\n%v\n%s", e[1], err, complaints.String())
		}
		// A preimage ends without a newline.
		if strings.TrimSuffix(string(out), "\n") != strings.TrimSuffix(e[2], "\n") {
			t.Errorf("%s\nprints\n%s\nthe page shows\n%s", e[1], out, e[2])
		}
	}
}

// TestFormatNamesEveryCode holds the tables of section 16 against the verifier's
// codes: none is left out, none is invented.
func TestFormatNamesEveryCode(t *testing.T) {
	t.Parallel()
	_, section, _ := strings.Cut(readHouse(t, "docs/evidence-format.md"), "\n## 16. ")
	section, _, _ = strings.Cut(section, "\n## 17. ")
	var told []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[a-z_`, ]+`) \\|").FindAllStringSubmatch(section, -1) {
		for _, code := range strings.Split(row[1], ", ") {
			told = append(told, strings.Trim(code, "`"))
		}
	}
	var known []string
	for _, m := range regexp.MustCompile(`Code\s+= "([a-z_]+)"`).FindAllStringSubmatch(readHouse(t, "verifier/codes.go"), -1) {
		known = append(known, m[1])
	}
	slices.Sort(told)
	slices.Sort(known)
	if len(known) < 40 || !slices.Equal(told, known) {
		t.Errorf("the page names\n%v\nthe verifier knows\n%v", told, known)
	}
}

// TestEveryCommandLineCaseIsPut counts the cases of the reference that the script
// answers.
func TestEveryCommandLineCaseIsPut(t *testing.T) {
	t.Parallel()
	cases := strings.Count(readHouse(t, "testdata/plasm/cli-cases.json"), `"argv"`)
	script := readHouse(t, "cmd/chaind/testdata/script/cli_cases.txtar")
	put := regexp.MustCompile(`(?m)^# Case \d+`).FindAllString(script, -1)
	if cases == 0 || len(put) != cases {
		t.Errorf("%d cases, %d in the script", cases, len(put))
	}
}
