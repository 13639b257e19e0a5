package verifier

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestReportGolden freezes the JSON of reports that between them have every
// member and every kind of value. See testdata/report/README.md.
func TestReportGolden(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"p02-full-run-signed", "p01-full-run-unsigned", "p05-optional-fields-present", "n06-steps-reordered", "n10-empty-chain", "n13-key-not-trusted",
		"n24-middle-segment-removed", "n36-decode-short-digest", "q05-truncated-head-recomputed", "q12-unknown-members", "q23-weak-public-key",
	} {
		for _, mode := range []Mode{Strict, Reference} {
			v := loadVector(t, name)
			got := verifyBytes(v.bundle, v.options(t, mode)).AppendJSON(nil)
			// One member a line reads better and is the same JSON.
			pretty := jsontext.Value(bytes.Clone(got))
			if err := pretty.Indent(); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, got)
			}
			golden(t, name+"."+string(mode)+".json", append(pretty, '\n'))
		}
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "report", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(readFile(t, path)), string(got)); diff != "" {
		t.Errorf("%s differs from what was frozen: %s", name, diff)
	}
}

// TestV07 compares what JSON says with the report that a text is made of, for
// all vectors in both modes.
func TestV07JSONAgrees(t *testing.T) {
	t.Parallel()
	for _, v := range loadVectors(t) {
		for _, mode := range []Mode{Strict, Reference} {
			r := verifyBytes(v.bundle, v.options(t, mode))
			var got struct {
				Report, Verdict, Summary string
				ExitCode                 int `json:"exit_code"`
				Checks                   []Check
				Errors                   []struct{ Code Code }
			}
			if err := json.Unmarshal(r.AppendJSON(nil), &got); err != nil {
				t.Fatalf("%s: %v", v.Name, err)
			}
			if got.Report != ReportName || got.Verdict != string(r.Verdict) || got.ExitCode != r.ExitCode || got.Summary != r.Summary || len(got.Errors) != len(r.Errors) {
				t.Errorf("%s: %+v is not %+v", v.Name, got, r)
			}
			if diff := cmp.Diff(r.Checks, got.Checks); diff != "" {
				t.Errorf("%s: %s", v.Name, diff)
			}
			coherent(t, v.Name, r)
		}
	}
}

// coherent holds verdict, exit code, errors and checks of one report together.
func coherent(t *testing.T, name string, r *Report) {
	t.Helper()
	failed := 0
	for _, c := range r.Checks {
		if c.Status == StatusFail {
			failed++
		}
		if c.Detail == "" {
			t.Errorf("%s: check %s says nothing", name, c.Name)
		}
	}
	passes := r.Verdict == Pass || r.Verdict == Unsealed
	if passes != (len(r.Errors) == 0) || passes != (failed == 0) || passes != (r.ExitCode == ExitPass || r.ExitCode == ExitDegraded) {
		t.Errorf("%s: %s with exit code %d, %d errors, %d failed checks", name, r.Verdict, r.ExitCode, len(r.Errors), failed)
	}
	for _, f := range r.Errors {
		if !owned(r.Mode, f.Code) {
			t.Errorf("%s: no check of %s mode owns %s", name, r.Mode, f.Code)
		}
	}
}

func owned(mode Mode, code Code) bool {
	list := strictChecks
	if mode == Reference {
		list = referenceChecks
	}
	for _, c := range list {
		for _, own := range c.codes {
			if own == code {
				return true
			}
		}
	}
	return false
}

// Equal inputs give equal bytes.
func TestReportIsDeterministic(t *testing.T) {
	t.Parallel()
	for _, v := range loadVectors(t) {
		a := verifyBytes(v.bundle, v.options(t, Strict)).AppendJSON(nil)
		b := verifyBytes(v.bundle, v.options(t, Strict)).AppendJSON(nil)
		if !bytes.Equal(a, b) {
			t.Errorf("%s:\n%s\n%s", v.Name, a, b)
		}
	}
}
