package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// keyed is a mapping of n keys.
func keyed(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: v\n", i)
	}
	return b.String()
}

// hostileYAML are texts that cost a parser the square of their length.
var hostileYAML = map[string]string{
	"brackets":           strings.Repeat("[", maxListBytes),
	"braces":             strings.Repeat("{", maxListBytes),
	"closed brackets":    strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000),
	"closing brackets":   strings.Repeat("]", 100_000),
	"brackets, marks":    strings.Repeat("[", maxYAMLMarks),
	"dashes":             strings.Repeat("- ", 100_000),
	"questions":          strings.Repeat("? ", 100_000),
	"colons":             strings.Repeat("a: ", 100_000),
	"anchors":            strings.Repeat("&a ", 100_000),
	"tags":               strings.Repeat("!a ", 100_000),
	"keys":               keyed(60_000),
	"keys in braces":     "{" + strings.Repeat("a: b,", 50_000) + "}",
	"keys in braces, on": "- {" + strings.Repeat("a: b,", 50_000) + "}",
	"steps": func() string {
		var b strings.Builder
		for i := range 1400 {
			b.WriteString(strings.Repeat(" ", i) + "a:\n")
		}
		return b.String()
	}(),
	"long key, long list": strings.Repeat("a", maxListBytes/2) + ":\n" + strings.Repeat("- a\n", 60_000),
	"long key in braces":  "{" + strings.Repeat("a", maxListBytes/2) + ": [" + strings.Repeat("a,", 60_000) + "]}",
	"long quoted key":     "\"" + strings.Repeat("a", maxListBytes/2) + "\": [" + strings.Repeat("a,", 60_000) + "]",
	"long text":           "a: " + strings.Repeat("x", maxListBytes-8),
	"open quote":          "a: \"" + strings.Repeat("x\n ", 60_000),
	"header":              "a: >" + strings.Repeat(">", maxYAMLMarks-10),
	"documents":           strings.Repeat("---\n", 30_000),
	"laughs": "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
		"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d]\n",
	"flat list":  strings.Repeat("- a\n", 60_000),
	"flat flow":  "[" + strings.Repeat("a,", 120_000) + "]",
	"spaces":     strings.Repeat(" ", maxListBytes),
	"line feeds": strings.Repeat("\n", maxListBytes),
}

// TestHostileYAMLTakesBoundedMemory reads each text as each kind of file. It is
// not parallel: it counts what the process allocates.
func TestHostileYAMLTakesBoundedMemory(t *testing.T) {
	const most = 160 << 20
	dir := t.TempDir()
	read := map[string]func(path string) error{
		"configuration": func(path string) error { _, err := ReadSettings(path, SettingNames{"log-level": false}); return err },
		"trust file":    func(path string) error { _, err := readTrustFile(path); return err },
		"token file":    func(path string) error { _, err := LoadTokens(path); return err },
	}
	for name, text := range hostileYAML {
		path := filepath.Join(dir, "f.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for kind, read := range read {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := read(path)
			runtime.ReadMemStats(&after)
			if spent := after.TotalAlloc - before.TotalAlloc; spent > most {
				t.Errorf("%s as %s of %d bytes: %d MiB allocated", name, kind, len(text), spent>>20)
			}
			if err == nil && strings.TrimSpace(text) != "" {
				t.Errorf("%s is a %s", name, kind)
			}
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("%s as %s: an error of %d bytes", name, kind, len(err.Error()))
			}
		}
	}
}

// TestLongestLists reads as many trusted keys and tokens as are allowed.
func TestLongestLists(t *testing.T) {
	t.Parallel()
	var trust, tokens strings.Builder
	for i := range maxTokens {
		fmt.Fprintf(&tokens, "- sha256: %064x\n  tenants: [\"a-1\", b]\n  comment: \"auditor, until 2027-01-01: no. %d\"\n", i+1, i)
	}
	const key = "ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c"
	for i := range 10_000 {
		fmt.Fprintf(&trust, "- public_key: %s\n  comment: key no. %d\n  status: active\n", key, i)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"trust": trust.String(), "tokens": tokens.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if entries, err := readTrustFile(filepath.Join(dir, "trust")); err != nil || len(entries) != 10_000 {
		t.Errorf("%d keys: %v", len(entries), err)
	}
	if list, err := LoadTokens(filepath.Join(dir, "tokens")); err != nil || len(list) != maxTokens {
		t.Errorf("%d tokens: %v", len(list), err)
	}
}

// TestYAMLThatPeopleWrite is taken whatever its style.
func TestYAMLThatPeopleWrite(t *testing.T) {
	t.Parallel()
	known := SettingNames{"nats-url": false, "nats-user": false, "http-hosts": true, "log-level": false, "log-format": false}
	for name, text := range map[string]string{
		"block":            "nats:\n  url: nats://x:1\n  user: \"a: b # c\"\nhttp:\n  hosts:\n    - a\n    - b\n",
		"dashes at margin": "http:\n  hosts:\n  - a\n  - b\nnats:\n    url: nats://x:1\n    user: 'a: b # c'\n",
		"flow":             "{nats: {url: 'nats://x:1', user: 'a: b # c'}, http: {hosts: [a, b]}}",
		"flat":             "---\nnats-url: nats://x:1   # where\nnats-user: 'a: b # c'\n# names\nhttp-hosts: [a,\n  b]\n...\n",
		"windows":          "nats:\r\n  url: nats://x:1\r\n  user: 'a: b # c'\r\nhttp:\r\n  hosts: [a, b]\r\n",
	} {
		path := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := ReadSettings(path, known)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for setting, want := range map[string]string{"nats-url": "nats://x:1", "nats-user": "a: b # c", "http-hosts": "a,b"} {
			if got, _ := s.Value(setting); got != want {
				t.Errorf("%s: %s is %q", name, setting, got)
			}
		}
	}
}

// A fuzz target whose seeds went missing would pass without trying anything.
func TestFuzzYAMLHasSeeds(t *testing.T) {
	t.Parallel()
	if seeds, err := os.ReadDir("testdata/fuzz/FuzzYAML"); err != nil || len(seeds) == 0 {
		t.Errorf("%d seeds, %v", len(seeds), err)
	}
}

// TestTokensAreAddedToTokenFilesOnly: what is there is a token file, or it is left
// as it is.
func TestTokensAreAddedToTokenFilesOnly(t *testing.T) {
	t.Parallel()
	_, entry, err := NewToken([]string{"acme"}, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"nothing":           {"", true},
		"a comment":         {"# tokens\n", true},
		"a token file":      {"- sha256: " + strings.Repeat("ab", 32) + "\n  all_tenants: true\n", true},
		"no end of line":    {"- sha256: " + strings.Repeat("ab", 32) + "\n  all_tenants: true", false},
		"the configuration": {"http:\n  listen: off\n", false},
		"a key":             {strings.Repeat("07", 32) + "\n", false},
		"broken":            {"- [\n", false},
		"in brackets":       {"[{sha256: " + strings.Repeat("ab", 32) + ", all_tenants: true}]\n", false},
		"ended":             {"- {sha256: " + strings.Repeat("ab", 32) + ", all_tenants: true}\n...\n", false},
		"indented":          {"  - sha256: " + strings.Repeat("ab", 32) + "\n    all_tenants: true\n", false},
	} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := AddToken(path, entry)
		after, readErr := os.ReadFile(path)
		if readErr != nil {
			t.Fatal(readErr)
		}
		if (err == nil) != c.ok || err != nil && string(after) != c.text {
			t.Errorf("%s: %v, then\n%s", name, err, after)
		}
		if _, loadErr := LoadTokens(path); err == nil && loadErr != nil {
			t.Errorf("%s: the file that was added to: %v", name, loadErr)
		}
	}
}

// FuzzYAML: whatever the text, reading it ends without a panic, and its error
// repeats nothing of it.
func FuzzYAML(f *testing.F) {
	f.Add("nats: {password: hunter2}")
	f.Add("- public_key: 'x'\n  status: [a, &b c, *b]\n")
	f.Add("password: >hunter2\n  a\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4<<10 {
			return
		}
		root, err := parseYAML([]byte(text))
		if err != nil && root != nil {
			t.Error("an error with a root")
		}
		if err != nil && !errors.Is(err, errDocuments) && strings.ContainsAny(err.Error(), "\"\n") {
			t.Errorf("an error that quotes: %q", err)
		}
		if err == nil && root != nil {
			s := Settings{values: map[string]setting{}}
			var unknown []error
			_ = s.collect("", root, SettingNames{"nats-password": false, "http-hosts": true}, &unknown)
			form := entryForm{texts: []string{"a"}, lists: []string{"b"}, switches: []string{"c"}}
			_, _ = form.read(root)
		}
	})
}
