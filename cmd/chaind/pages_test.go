package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pageFiles are the files that the lines of a page write: names without a folder.
var pageFiles = regexp.MustCompile(`(?m)(^|[\s="<>])([a-z0-9-]+\.(?:tsb|key))\b`)

// TestBundlePagesExamples types what the pages about the format show, from the
// top of the house. Files that the lines write go elsewhere.
func TestBundlePagesExamples(t *testing.T) {
	for page, least := range map[string]int{"bundle.md": 2, "chain.md": 2, "flip-a-byte.md": 6, "tessera.md": 1} {
		t.Run(page, func(t *testing.T) {
			text := readHouse(t, "docs/"+page)
			examples := example.FindAllStringSubmatch(text, -1)
			if n := strings.Count(text, "```sh\n"); n != len(examples) || n < least {
				t.Fatalf("%d sh blocks, %d of them with what they print", n, len(examples))
			}
			dir := t.TempDir()
			for _, e := range examples {
				shell := exec.Command("sh", "-uc", pageFiles.ReplaceAllString(e[1], "${1}"+dir+"/${2}"))
				shell.Dir = root
				var complaints strings.Builder
				shell.Stderr = &complaints
				out, err := shell.Output()
				if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
					t.Fatal(err)
				}
				if got := strings.ReplaceAll(string(out), dir+"/", ""); got != e[2] {
					t.Errorf("%s\nprints\n%s\nthe page shows\n%s%s", e[1], got, e[2], complaints.String())
				}
			}
		})
	}
}

// TestBundlePageNamesEveryCode: the tables of docs/bundle.md and docs/chain.md
// have each code of the envelope and of chains, and no other.
func TestBundlePageNamesEveryCode(t *testing.T) {
	t.Parallel()
	told := func(page, heading string) (out []string) {
		_, section, ok := strings.Cut(readHouse(t, page), "\n## "+heading)
		if !ok {
			t.Fatalf("%s has no section %q", page, heading)
		}
		section, _, _ = strings.Cut(section, "\n## ")
		for _, row := range regexp.MustCompile("(?m)^\\| (`[a-z_0-9`, ]+`) \\|").FindAllStringSubmatch(section, -1) {
			out = append(out, strings.Split(strings.ReplaceAll(row[1], "`", ""), ", ")...)
		}
		slices.Sort(out)
		return out
	}
	known := func(source string) (out []string) {
		for _, m := range regexp.MustCompile(`Code\s+= "([a-z_0-9]+)"`).FindAllStringSubmatch(source, -1) {
			out = append(out, m[1])
		}
		slices.Sort(out)
		return out
	}
	if told, known := told("docs/bundle.md", "8. Codes"), known(readHouse(t, "bundle/errors.go")); len(known) < 25 {
		t.Errorf("only %d codes found", len(known))
	} else if known = append(known, "chain_too_deep"); !slices.Equal(told, sorted(known)) {
		t.Errorf("the page names\n%v\nthe format knows\n%v", told, sorted(known))
	}
	_, chains, _ := strings.Cut(readHouse(t, "engine/domain.go"), "UpstreamsMissing ")
	chains, _, _ = strings.Cut("UpstreamsMissing "+chains, "\n)")
	if told, known := told("docs/chain.md", "How it is verified"), known(chains); len(known) < 10 || !slices.Equal(told, known) {
		t.Errorf("the page names\n%v\nchains have\n%v", told, known)
	}
}

func sorted(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// TestNamedTestsExist: what docs/tessera.md says is held by a test is a test, or
// a script, of this house.
func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	var have strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if strings.HasSuffix(path, "_test.go") {
			text, err := os.ReadFile(path)
			have.Write(text)
			return err
		}
		if strings.HasSuffix(path, ".txtar") {
			have.WriteString("\nscript " + filepath.Base(path) + "\n")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test[A-Za-z0-9]+|[a-z_]+\\.txtar)`").FindAllStringSubmatch(readHouse(t, "docs/tessera.md"), -1)
	for _, m := range named {
		if !strings.Contains(have.String(), "\nfunc "+m[1]+"(t *testing.T)") && !strings.Contains(have.String(), "\nscript "+m[1]+"\n") {
			t.Errorf("docs/tessera.md relies on %s, which does not exist", m[1])
		}
	}
	if len(named) < 30 {
		t.Errorf("only %d tests are named", len(named))
	}
}
