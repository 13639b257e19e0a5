package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/chaind/chaind/sidecar"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	vectorHash    = "74cca950dc3d33908181dcef52a1afe4255aed08b3c2b285d6bf182ebe416d50"
	vectorSession = "5e55107a5e55107a5e55107a5e55107a"
	vectorRun     = "prf666c6def78497125b71b1c0870a88b3cbd26b6f3718c713a18c5020be862630"
	vectorRun2    = "pr99b83e024d5ccf1769cbe0e265324eb11876b28c7558c33cbadd3c1897f59a0b"
	vectorHead    = "50b4a5b506b35c3947da7334ad2d21f7f0d74c8176896e0dd29e2758096bf6af"

	sessionDir = "execute/" + vectorHash + "/" + vectorSession + "/"
	headFile   = sessionDir + "evidence/heads/" + vectorHead + ".evidence.json"
	runFile    = sessionDir + "f666c6def78497125b71b1c0870a88b3cbd26b6f3718c713a18c5020be862630.artifact"
	runURL     = "/execute/" + vectorHash + "/" + vectorSession + "/artifacts/" + vectorRun + "/evidence"
	run2URL    = "/execute/" + vectorHash + "/" + vectorSession + "/artifacts/" + vectorRun2 + "/evidence"
	vectorURL  = "/execute/" + vectorHash + "/" + vectorSession + "/evidence/heads/" + vectorHead
)

// blobs is a sidecar store in memory that starts as one of the vector trees.
type blobs struct {
	*sidecar.Memory
	t *testing.T
}

func loadTree(t *testing.T, name string) *blobs {
	t.Helper()
	b := &blobs{sidecar.NewMemory(), t}
	root := filepath.Join("../testdata/plasm/store", name)
	n := 0
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return err
		}
		n++
		b.put(path, content)
		return nil
	})
	if err != nil || n == 0 {
		t.Fatalf("load tree %s: %d files, %v", name, n, err)
	}
	return b
}

func (b *blobs) put(name string, content []byte) {
	b.t.Helper()
	if err := b.Put(context.Background(), name, sidecar.Bytes(content)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *blobs) get(name string) []byte {
	b.t.Helper()
	r, err := b.Open(context.Background(), name)
	if err != nil {
		b.t.Fatal(err)
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	if err != nil {
		b.t.Fatal(err)
	}
	return content
}

// change edits a blob; the edit must change something.
func (b *blobs) change(name string, edit func([]byte) []byte) {
	b.t.Helper()
	before := b.get(name)
	after := edit(bytes.Clone(before))
	if bytes.Equal(before, after) {
		b.t.Fatalf("%s was not changed", name)
	}
	b.put(name, after)
}

func (b *blobs) sidecars() *sidecar.Sidecars {
	b.t.Helper()
	s, err := sidecar.Open(context.Background(), sidecar.Config{Blobs: b})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func newHandler(t *testing.T, cfg Config) http.Handler {
	t.Helper()
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// vectorHandler serves the two-run tree without a store.
func vectorHandler(t *testing.T) (http.Handler, *blobs) {
	t.Helper()
	b := loadTree(t, "two-run")
	return newHandler(t, Config{Sidecars: b.sidecars()}), b
}

// get sends a request past any client library, so that the path arrives as
// written. Header fields come in pairs.
func get(h http.Handler, method, path string, fields ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://chaind.test/", nil)
	raw, query, _ := strings.Cut(path, "?")
	if err := setPath(r, raw); err != nil {
		panic(err)
	}
	r.URL.RawQuery = query
	for i := 0; i+1 < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func setPath(r *http.Request, raw string) error {
	parsed, err := r.URL.Parse(raw)
	if err != nil {
		return err
	}
	// Parse resolves dot segments; an HTTP request line does not.
	r.URL.Path, r.URL.RawPath = unescape(raw), raw
	if parsed.RawPath == "" && parsed.Path == raw {
		r.URL.RawPath = ""
	}
	r.RequestURI = raw
	return nil
}

func unescape(raw string) string {
	var out []byte
	for i := 0; i < len(raw); i++ {
		if raw[i] == '%' && i+2 < len(raw) {
			out = append(out, nibble(raw[i+1])<<4|nibble(raw[i+2]))
			i += 2
			continue
		}
		out = append(out, raw[i])
	}
	return string(out)
}

func nibble(c byte) byte {
	return byte(strings.IndexByte("0123456789abcdef", strings.ToLower(string(c))[0]))
}

// problemOf decodes a problem answer and checks its form.
func problemOf(t *testing.T, w *httptest.ResponseRecorder) problem {
	t.Helper()
	if got := w.Header().Get("Content-Type"); got != "application/problem+json; charset=utf-8" {
		t.Fatalf("status %d with content type %q, body %.200q", w.Code, got, w.Body)
	}
	var p problem
	d := json.NewDecoder(bytes.NewReader(w.Body.Bytes()))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		t.Fatalf("decode problem: %v in %q", err, w.Body)
	}
	if p.Status != w.Code || p.Type == "" || p.Title == "" || p.Detail == "" {
		t.Fatalf("problem %+v with status %d", p, w.Code)
	}
	return p
}

func wantProblem(t *testing.T, w *httptest.ResponseRecorder, status int, typ string) problem {
	t.Helper()
	p := problemOf(t, w)
	if p.Status != status || p.Type != typ {
		t.Fatalf("got %d %s (%s), want %d %s", p.Status, p.Type, p.Detail, status, typ)
	}
	return p
}

func decode[T any](t *testing.T, w *httptest.ResponseRecorder) T {
	t.Helper()
	if w.Code != http.StatusOK {
		t.Fatalf("status %d, body %.300q", w.Code, w.Body)
	}
	var v T
	d := json.NewDecoder(bytes.NewReader(w.Body.Bytes()))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("decode %T: %v in %.300q", v, err, w.Body)
	}
	return v
}

func testLogger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}
