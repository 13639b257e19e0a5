package verifier

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzEvidence holds what must be true of every report, whatever the bytes: no
// panic, a verdict that agrees with itself, JSON that is safe to print, and
// nothing that strict mode passes and the reference would not.
func FuzzEvidence(f *testing.F) {
	for _, v := range loadVectors(f) {
		f.Add(v.bundle, "")
		f.Add(v.bundle, v.Inputs.RunID)
	}
	f.Fuzz(func(t *testing.T, text []byte, run string) {
		strict := verifyBytes(text, Options{RunID: run})
		reference := verifyBytes(text, Options{RunID: run, Mode: Reference})
		for _, r := range []*Report{strict, reference} {
			coherent(t, string(r.Mode), r)
			mustBeSafe(t, string(r.AppendJSON(nil)))
		}
		passes := strict.ExitCode == ExitPass || strict.ExitCode == ExitDegraded
		if passes && reference.ExitCode != ExitPass {
			t.Fatalf("strict mode %s, reference mode %s", strict.Summary, reference.Summary)
		}
	})
}

// A fuzz target whose committed seeds went missing would pass without trying
// anything of interest.
func TestFuzzCorporaAreThere(t *testing.T) {
	t.Parallel()
	sources, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	targets := 0
	for _, source := range sources {
		for line := range strings.Lines(string(readFile(t, source))) {
			name, found := strings.CutPrefix(line, "func Fuzz")
			if !found {
				continue
			}
			name, _, _ = strings.Cut("Fuzz"+name, "(")
			targets++
			if seeds, err := os.ReadDir("testdata/fuzz/" + name); err != nil || len(seeds) == 0 {
				t.Errorf("%s: %d seeds, %v", name, len(seeds), err)
			}
		}
	}
	if targets != 5 {
		t.Errorf("%d fuzz targets, want 5", targets)
	}
}
