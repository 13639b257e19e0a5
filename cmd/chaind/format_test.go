package main

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
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

// TestKeysExamples takes the trust list and the command of docs/keys.md as they
// stand.
func TestKeysExamples(t *testing.T) {
	t.Parallel()
	list := filepath.Join(t.TempDir(), "trust.yaml")
	if err := os.WriteFile(list, []byte(blocks(t, "docs/keys.md", "Trust lists", "yaml")[0]), 0o644); err != nil {
		t.Fatal(err)
	}
	for vector, state := range map[string]string{"p02-full-run-signed": "TRUSTED", "n13-key-not-trusted": "RETIRED"} {
		verify := exec.Command("chaind", "verify", "--trust-file", list, filepath.Join(root, "testdata/plasm", vector, "bundle.json"))
		if out, err := verify.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("signature "+state+" ")) {
			t.Errorf("%s: %v\n%s", vector, err, out)
		}
	}

	public := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize)).Public().(ed25519.PublicKey)
	named, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	shell := exec.Command("sh", "-euc", blocks(t, "docs/keys.md", "Signing keys", "sh")[0])
	shell.Dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(shell.Dir, "id_ed25519.pub"), ssh.MarshalAuthorizedKey(named), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := shell.Output(); err != nil || string(out) != hex.EncodeToString(public) {
		t.Errorf("%v: %s", err, out)
	}
}
