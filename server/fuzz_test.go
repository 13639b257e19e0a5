package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/verifier"
)

// seeded fails when a target has lost its committed corpus.
func seeded(f *testing.F, target string) {
	f.Helper()
	seeds, err := filepath.Glob(filepath.Join("testdata/fuzz", target, "*"))
	if err != nil || len(seeds) == 0 {
		f.Fatalf("%d seeds for %s, %v", len(seeds), target, err)
	}
}

// FuzzRequestTarget sends any path and query. An answer is well-formed, and
// not a failure of ours.
func FuzzRequestTarget(f *testing.F) {
	seeded(f, "FuzzRequestTarget")
	for _, s := range samples {
		f.Add(s.path)
	}
	b := fuzzTree(f)
	h, err := New(Config{Sidecars: b, Ready: func() []Cause { return nil }})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			t.Skip()
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.URL = u
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		checkProtection(t, w.Header())
		switch {
		case w.Code >= 400 && w.Header().Get("Content-Type") == problemMediaType:
			problemOf(t, w)
		case w.Code != http.StatusOK || w.Header().Get("Content-Type") == "":
			t.Errorf("%q: status %d, content type %q", target, w.Code, w.Header().Get("Content-Type"))
		}
		if w.Code == http.StatusInternalServerError {
			t.Errorf("%q: %s", target, w.Body)
		}
		for _, values := range w.Header() {
			if strings.ContainsAny(strings.Join(values, ""), "\r\n\x00") {
				t.Errorf("%q: header %q", target, values)
			}
		}
	})
}

// fuzzTree is a sidecar store with one honest head.
func fuzzTree(f *testing.F) *sidecar.Sidecars {
	f.Helper()
	s, err := sidecar.Open(context.Background(), sidecar.Config{Blobs: fuzzBlobs(f)})
	if err != nil {
		f.Fatal(err)
	}
	return s
}

func fuzzBlobs(f *testing.F) *sidecar.Memory {
	f.Helper()
	m := sidecar.NewMemory()
	for _, name := range []string{headFile, runFile, sessionDir + "evidence/run-heads/" + vectorRun + ".head"} {
		text, err := os.ReadFile(filepath.Join("../testdata/plasm/store/two-run", name))
		if err != nil {
			f.Fatal(err)
		}
		if err := m.Put(context.Background(), name, sidecar.Bytes(text)); err != nil {
			f.Fatal(err)
		}
	}
	return m
}

// FuzzStoredEvidence serves any bytes under a head's name. What is served is
// what strict verification accepts, and serving it again changes nothing.
func FuzzStoredEvidence(f *testing.F) {
	seeded(f, "FuzzStoredEvidence")
	m := fuzzBlobs(f)
	honest, err := os.ReadFile(filepath.Join("../testdata/plasm/store/two-run", headFile))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(honest)
	s, err := sidecar.Open(context.Background(), sidecar.Config{Blobs: m})
	if err != nil {
		f.Fatal(err)
	}
	h, err := New(Config{Sidecars: s})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		if err := m.Put(t.Context(), headFile, sidecar.Bytes(stored)); err != nil {
			t.Fatal(err)
		}
		w := get(h, "GET", runURL)
		if w.Code != http.StatusOK {
			problemOf(t, w)
			return
		}
		served := w.Body.Bytes()
		report := verifier.Evidence(t.Context(), bytes.NewReader(served), verifier.Options{RunID: vectorRun})
		if report.ExitCode != verifier.ExitPass || report.ComputedHead.String() != vectorHead {
			t.Errorf("served, and strict verification says %s", report.Summary)
		}
		if again, err := rewrite(served); err != nil || !bytes.Equal(again, served) || !json.Valid(served) {
			t.Errorf("served bytes are not in the format's own form: %v", err)
		}
	})
}
