package web

import (
	"io/fs"
	"strings"
	"testing"
)

// TestV23NoSignatureIsLeftToTheBrowser: an old browser, an insecure context and
// a page on a disk have no Ed25519 of their own, or none that can be trusted to
// say so. Nothing in the pages asks for it: signatures are checked by the same
// Go code as on the command line, or, where that does not start, not at all.
func TestV23NoSignatureIsLeftToTheBrowser(t *testing.T) {
	t.Parallel()
	seen := 0
	err := fs.WalkDir(files, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		seen++
		for _, word := range []string{"crypto.subtle", "SubtleCrypto", "importKey"} {
			if strings.Contains(string(text), word) {
				t.Errorf("%s uses %s", name, word)
			}
		}
		return nil
	})
	if err != nil || seen < 10 {
		t.Fatalf("%d assets looked at: %v", seen, err)
	}
}
