package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Files that people write are one document of a bounded size, whatever the
// system says of them.
func TestWrittenFilesAreOneBoundedDocument(t *testing.T) {
	t.Parallel()
	key := "ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c"
	trust := "- public_key: " + key + "\n"
	token := "- sha256: " + key + "\n  all_tenants: true\n"
	load := map[string]func(path string) error{
		"trust":  func(path string) error { _, err := readTrustFile(path); return err },
		"tokens": func(path string) error { _, err := LoadTokens(path); return err },
	}
	for kind, entry := range map[string]string{"trust": trust, "tokens": token} {
		for name, c := range map[string]struct {
			text string
			ok   bool
		}{
			"one":         {entry, true},
			"marked":      {"---\n" + entry, true},
			"ended":       {entry + "...\n", true},
			"two":         {entry + "---\n" + strings.Replace(entry, "ea4a", "0000", 1), false},
			"empty first": {"---\n---\n" + entry, false},
			"then junk":   {entry + "---\n}{", false},
			"too long":    {entry + "#" + strings.Repeat("x", maxListBytes), false},
		} {
			path := filepath.Join(t.TempDir(), "f.yaml")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := load[kind](path); (err == nil) != c.ok {
				t.Errorf("%s, %s: %v", kind, name, err)
			}
		}
		if err := load[kind](os.DevNull); err == nil {
			t.Errorf("%s: an empty file is a list", kind)
		}
		if err := load[kind](t.TempDir()); err == nil || errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: a directory: %v", kind, err)
		}
		if _, err := os.Stat("/dev/zero"); err == nil {
			if err := load[kind]("/dev/zero"); err == nil || !strings.Contains(err.Error(), "larger than") {
				t.Errorf("%s: a device without an end: %v", kind, err)
			}
		}
	}
}
