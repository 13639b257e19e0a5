package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/chaind/chaind/segments"
)

type httpCase struct {
	Request  string
	Store    string
	Response struct {
		Status      int
		ContentType string `json:"content_type"`
		Body        json.RawMessage
	}
	Notes string
}

// TestHTTPCases runs the exchanged cases of the evidence format (Plasm evidence
// format, section 15).
func TestHTTPCases(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../testdata/plasm/http-cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []httpCase }
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) < 11 {
		t.Fatalf("only %d cases", len(file.Cases))
	}
	for i, c := range file.Cases {
		t.Run(strconv.Itoa(i)+" "+strconv.Itoa(c.Response.Status)+" "+c.Store, func(t *testing.T) {
			t.Parallel()
			for _, variant := range c.variants(t) {
				c.run(t, variant)
			}
		})
	}
}

// variants builds the stores that a case describes in words.
func (c *httpCase) variants(t *testing.T) []*blobs {
	t.Helper()
	b := loadTree(t, "two-run")
	switch c.Store {
	case "two-run":
	case "two-run with segments[2].kind.source_line changed in the head file":
		b.change(headFile, editBundle(t, func(bundle *segments.Bundle) {
			bundle.Segments[2].Kind.(*segments.StepExecuted).SourceLine += "!"
		}))
	case "two-run with a fingerprint changed inside the .artifact":
		b.change(runFile, func(blob []byte) []byte {
			at := bytes.Index(blob, []byte(`"request_fingerprints":["`))
			blob[at+len(`"request_fingerprints":["`)] ^= 1
			return blob
		})
	case "two-run with the .artifact deleted, or its body not a seal document":
		if err := b.Remove(t.Context(), runFile); err != nil {
			t.Fatal(err)
		}
		other := loadTree(t, "two-run")
		other.put(runFile, segments.AppendArtifactFrame(nil, []byte(`{}`), []byte(`{"no":"seal document"}`)))
		return []*blobs{b, other}
	case "two-run with a head file that is not JSON":
		b.put(headFile, []byte("not JSON"))
	default:
		t.Fatalf("unknown store %q", c.Store)
	}
	return []*blobs{b}
}

// editBundle changes the decoded bundle without mending any digest.
func editBundle(t *testing.T, edit func(*segments.Bundle)) func([]byte) []byte {
	return func(text []byte) []byte {
		bundle, _, err := segments.ReadBundle(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		edit(bundle)
		return segments.AppendBundle(nil, bundle)
	}
}

func (c *httpCase) run(t *testing.T, b *blobs) {
	t.Helper()
	h := newHandler(t, Config{Sidecars: b.sidecars(), Logger: testLogger(t)})
	// Twice: the verdict is remembered, the answer must be the same.
	for range 2 {
		w := get(h, http.MethodGet, c.Request)
		if w.Code != c.Response.Status {
			t.Fatalf("status %d, want %d; body %.300q", w.Code, c.Response.Status, w.Body)
		}
		if got := w.Header().Get("Content-Type"); got != c.Response.ContentType {
			t.Errorf("content type %q, want %q", got, c.Response.ContentType)
		}
		if c.Response.Status == http.StatusOK {
			if !bytes.Equal(w.Body.Bytes(), b.get(headFile)) {
				t.Errorf("body is not the bundle in reference member order")
			}
			continue
		}
		compareProblem(t, w.Body.Bytes(), c.Response.Body)
	}
}

// compareProblem compares text with text: the member order is part of it.
func compareProblem(t *testing.T, got []byte, want json.RawMessage) {
	t.Helper()
	var compact bytes.Buffer
	if err := json.Compact(&compact, want); err != nil {
		t.Fatal(err)
	}
	text := compact.String()
	if head, tail, found := strings.Cut(text, `"detail":"starts with \"`); found {
		text = head + `"detail":"` + strings.TrimSuffix(tail, `\""}`)
	}
	if !strings.HasPrefix(string(got), text) {
		t.Errorf("got  %s\nwant %s", got, text)
	}
}
