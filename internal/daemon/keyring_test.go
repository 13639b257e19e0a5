package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Of each key that may have signed here, the public half stays, whatever
// becomes of the key.
func TestPublicKeysThatSignedAreKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kept := filepath.Join(dir, "keys")
	var want []string
	for _, name := range []string{"k1", "k2", "k1"} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err != nil {
			key, err := CreateKey(path)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, key.String())
		}
		if _, err := openKeyring(t.Context(), KeyConfig{SigningKey: path}, kept, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(kept, "*.pub"))
	if err != nil || len(files) != len(want) {
		t.Fatalf("%d public keys are kept, want %d: %v", len(files), len(want), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if key := strings.TrimSpace(string(text)); key != want[0] && key != want[1] {
			t.Errorf("%s holds %q", file, key)
		}
	}
}
