package verifier

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
)

const vectorDir = "../testdata/plasm"

// vector is a folder of testdata/plasm with its expected.json. The expectations
// are ours and trusted, so encoding/json may read them.
type vector struct {
	Name   string
	Inputs struct {
		Artifact string
		RunID    string   `json:"run_id"`
		Trusted  []string `json:"trusted_public_keys"`
		Location *struct {
			PromptHash string `json:"prompt_hash"`
			SessionID  string `json:"session_id"`
		}
	}
	RecomputedHead *string `json:"recomputed_head"`
	Reference      struct {
		Decode           expectedOutcome
		Verify, Serve    *expectedOutcome
		ServeWithRunSeal *expectedOutcome `json:"serve_with_run_seal"`
	}
	Strict struct {
		Outcome          string
		Errors, Warnings []Code
	}

	dir    string
	bundle []byte
}

type expectedOutcome struct{ Outcome, Error, Message, Head string }

func loadVectors(t testing.TB) []*vector {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(vectorDir, "*", "expected.json"))
	if err != nil || len(dirs) != 73 {
		t.Fatalf("found %d vectors, want 73 (%v)", len(dirs), err)
	}
	list := make([]*vector, len(dirs))
	for i, path := range dirs {
		list[i] = loadVector(t, filepath.Base(filepath.Dir(path)))
	}
	return list
}

func loadVector(t testing.TB, name string) *vector {
	t.Helper()
	v := &vector{dir: filepath.Join(vectorDir, name)}
	if err := json.Unmarshal(readFile(t, filepath.Join(v.dir, "expected.json")), v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	v.bundle = readFile(t, filepath.Join(v.dir, "bundle.json"))
	return v
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// options are the vector's inputs.
func (v *vector) options(t testing.TB, mode Mode) Options {
	t.Helper()
	o := Options{Mode: mode, RunID: v.Inputs.RunID, Trust: trustOf(t, v.Inputs.Trusted...)}
	if v.Inputs.Artifact != "" {
		doc, err := segments.DecodeSealDocument(readFile(t, filepath.Join(v.dir, v.Inputs.Artifact)))
		if err != nil {
			t.Fatalf("%s: %v", v.Name, err)
		}
		o.Artifact = doc
	}
	if loc := v.Inputs.Location; loc != nil {
		o.Location = &Location{PromptHash: loc.PromptHash, Session: loc.SessionID}
	}
	return o
}

func trustOf(t testing.TB, hexes ...string) *keys.TrustList {
	t.Helper()
	entries, err := keys.ParseFlags(hexes)
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := keys.Merge(entries)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func verifyBytes(bundle []byte, o Options) *Report {
	return Evidence(context.Background(), bytes.NewReader(bundle), o)
}

func TestVectorsStrict(t *testing.T) {
	t.Parallel()
	for _, v := range loadVectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			r := verifyBytes(v.bundle, v.options(t, Strict))
			if got := Codes(r.Errors); !slices.Equal(got, v.Strict.Errors) {
				t.Errorf("errors %v, want %v", got, v.Strict.Errors)
			}
			if got := Codes(r.Warnings); !slices.Equal(got, v.Strict.Warnings) {
				t.Errorf("warnings %v, want %v", got, v.Strict.Warnings)
			}
			if accepted := r.ExitCode == ExitPass || r.ExitCode == ExitDegraded; accepted != (v.Strict.Outcome == "accept") {
				t.Errorf("exit code %d, want outcome %s", r.ExitCode, v.Strict.Outcome)
			}
			// A bundle that does not decode gives no head, and the vectors
			// compute none for a broken chain.
			if got := text(r.ComputedHead); v.Reference.Decode.Outcome == "accept" && got != text2(v.RecomputedHead) {
				t.Errorf("head %s, want %s", got, text2(v.RecomputedHead))
			}
		})
	}
}

func text(d *segments.Digest) string {
	if d == nil {
		return "none"
	}
	return d.String()
}

func text2(s *string) string {
	if s == nil {
		return "none"
	}
	return *s
}

func TestVectorsReference(t *testing.T) {
	t.Parallel()
	for _, v := range loadVectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			o := v.options(t, Reference)
			r := verifyBytes(v.bundle, o)
			if r.Reference.Decoded != (v.Reference.Decode.Outcome == "accept") {
				t.Fatalf("decoded %v, want %s", r.Reference.Decoded, v.Reference.Decode.Outcome)
			}
			if o.Artifact == nil || !r.Reference.Decoded {
				v.Reference.ServeWithRunSeal = nil
			}
			compareOutcome(t, "verify", r.Reference.Verify, v.Reference.Verify)
			compareOutcome(t, "serve", r.Reference.Serve, v.Reference.Serve)
			compareOutcome(t, "serve_with_run_seal", r.Reference.ServeWithRunSeal, v.Reference.ServeWithRunSeal)
			if len(r.Errors) > 1 {
				t.Errorf("%d errors, want the first one alone", len(r.Errors))
			}
		})
	}
}

func compareOutcome(t *testing.T, name string, got *Outcome, want *expectedOutcome) {
	t.Helper()
	switch {
	case got == nil || want == nil:
		if (got == nil) != (want == nil) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	case got.Err != nil:
		if string(got.Err.Failure) != want.Error || got.Err.Problem() != want.Message {
			t.Errorf("%s: got %s %q, want %s %q", name, got.Err.Failure, got.Err.Problem(), want.Error, want.Message)
		}
	case want.Outcome != "accept" || got.Head.String() != want.Head:
		t.Errorf("%s: got head %s, want %+v", name, got.Head, want)
	}
}
