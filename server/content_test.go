package server

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/chaind/chaind/segments"
)

func TestConditionsAndRanges(t *testing.T) {
	t.Parallel()
	h, b := vectorHandler(t)
	body := b.get(headFile)
	tag := `"` + segments.Sum(body).String() + `"`
	other := `"` + segments.Sum(nil).String() + `"`
	for _, c := range []struct {
		name   string
		fields []string
		status int
		want   []byte
	}{
		{"plain", nil, 200, body},
		{"none match, same", []string{"If-None-Match", tag}, 304, nil},
		{"none match, weak spelling", []string{"If-None-Match", "W/" + tag}, 304, nil},
		{"none match, one of several", []string{"If-None-Match", other + ", " + tag}, 304, nil},
		{"none match, any", []string{"If-None-Match", "*"}, 304, nil},
		{"none match, other", []string{"If-None-Match", other}, 200, body},
		{"modified since is no validator here", []string{"If-Modified-Since", "Mon, 30 Nov 2076 13:00:00 GMT"}, 200, body},
		{"match, same", []string{"If-Match", tag}, 200, body},
		{"match, any", []string{"If-Match", "*"}, 200, body},
		{"match, other", []string{"If-Match", other}, 412, nil},
		{"match, weak is not strong", []string{"If-Match", "W/" + tag}, 412, nil},
		{"range", []string{"Range", "bytes=0-99"}, 206, body[:100]},
		{"range, open", []string{"Range", "bytes=100-"}, 206, body[100:]},
		{"range, end", []string{"Range", "bytes=-10"}, 206, body[len(body)-10:]},
		{"range, beyond", []string{"Range", "bytes=99999999-"}, 416, nil},
		{"range, not one", []string{"Range", "bytes=x"}, 200, body},
		{"range, letters", []string{"Range", "bytes=abc"}, 200, body},
		{"range, no unit", []string{"Range", "0-99"}, 200, body},
		{"range, nothing", []string{"Range", "bytes="}, 200, body},
		{"range, dash", []string{"Range", "bytes=-"}, 200, body},
		{"range, backwards", []string{"Range", "bytes=9-7"}, 200, body},
		{"range, sign", []string{"Range", "bytes=+1-2"}, 200, body},
		{"range, one of two", []string{"Range", "bytes=0-9,x"}, 200, body},
		{"range, other unit", []string{"Range", "lines=1-2"}, 200, body},
		{"range, blanks", []string{"Range", "bytes= 0-9"}, 206, body[:10]},
		{"range if same", []string{"Range", "bytes=7-9", "If-Range", tag}, 206, body[7:10]},
		{"range if other", []string{"Range", "bytes=7-9", "If-Range", other}, 200, body},
		{"range if weak", []string{"Range", "bytes=7-9", "If-Range", "W/" + tag}, 200, body},
		{"range if date", []string{"Range", "bytes=7-9", "If-Range", "Mon, 30 Nov 2076 13:00:00 GMT"}, 200, body},
		{"range and match other", []string{"Range", "bytes=7-9", "If-Match", other}, 412, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := get(h, "GET", runURL, c.fields...)
			if w.Code != c.status {
				t.Fatalf("status %d, want %d", w.Code, c.status)
			}
			if c.status >= 400 {
				problemOf(t, w)
				if w.Header().Get("ETag") != "" {
					t.Error("a problem carries the content's tag")
				}
				return
			}
			if w.Header().Get("ETag") != tag {
				t.Errorf("tag %s, want %s", w.Header().Get("ETag"), tag)
			}
			if !bytes.Equal(w.Body.Bytes(), c.want) {
				t.Errorf("body of %d bytes, want %d", w.Body.Len(), len(c.want))
			}
		})
	}
}

func TestSeveralRangesAreOfOneVersion(t *testing.T) {
	t.Parallel()
	h, b := vectorHandler(t)
	body := b.get(headFile)
	w := get(h, "GET", runURL, "Range", "bytes=0-9,50-59")
	kind, params, err := mime.ParseMediaType(w.Header().Get("Content-Type"))
	if w.Code != http.StatusPartialContent || err != nil || kind != "multipart/byteranges" {
		t.Fatalf("status %d, %s, %v", w.Code, kind, err)
	}
	parts := multipart.NewReader(w.Body, params["boundary"])
	for _, want := range [][]byte{body[:10], body[50:60]} {
		part, err := parts.NextPart()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(part); err != nil || !bytes.Equal(got, want) {
			t.Errorf("part %q, %v; want %q", got, err, want)
		}
	}
}

// TestH08_ResumedDownloadCannotMixTwoHeads moves the pointer between the two
// halves of a download.
func TestH08_ResumedDownloadCannotMixTwoHeads(t *testing.T) {
	t.Parallel()
	h, b := vectorHandler(t)
	first := get(h, "GET", runURL, "Range", "bytes=0-99")
	tag := first.Header().Get("ETag")

	longer, head := extend(t, b.get(headFile))
	b.put(sessionDir+"evidence/heads/"+head+".evidence.json", longer)
	b.put(sessionDir+"evidence/run-heads/"+vectorRun+".head", []byte(head))

	rest := get(h, "GET", runURL, "Range", "bytes=100-", "If-Range", tag)
	if rest.Code != http.StatusOK || !bytes.Equal(rest.Body.Bytes(), longer) {
		t.Errorf("status %d with %d bytes, want the whole new bundle", rest.Code, rest.Body.Len())
	}
	wantProblem(t, get(h, "GET", runURL, "Range", "bytes=100-", "If-Match", tag), http.StatusPreconditionFailed, typePrecondition)
	if w := get(h, "GET", runURL, "If-None-Match", tag); w.Code != http.StatusOK || w.Header().Get("Chaind-Head") != head {
		t.Errorf("status %d, head %s", w.Code, w.Header().Get("Chaind-Head"))
	}
}

// extend appends another seal and gives the new bundle and its head.
func extend(t *testing.T, text []byte) (longer []byte, head string) {
	t.Helper()
	bundle, _, err := segments.ReadBundle(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	b := segments.Builder{Next: uint64(len(bundle.Segments)), Head: bundle.Head}
	sum := segments.Sum([]byte("another run"))
	bundle.Segments = append(bundle.Segments, b.Append(&segments.RunSealed{RunID: segments.RunID(sum), RunBundleDigest: sum}, nil))
	bundle.Head = b.Head
	return segments.AppendBundle(nil, bundle), b.Head.String()
}

// TestH16_OnlyDigestAddressesAreKept looks at the caching headers.
func TestH16_OnlyDigestAddressesAreKept(t *testing.T) {
	t.Parallel()
	h, b := vectorHandler(t)
	body := b.get(headFile)
	byRun := get(h, "GET", runURL)
	location := byRun.Header().Get("Content-Location")
	if want := vectorURL + "?sha256=" + segments.Sum(body).String(); location != want {
		t.Fatalf("content location %q, want %q", location, want)
	}
	if got := byRun.Header().Get("Cache-Control"); got != "public, no-cache" {
		t.Errorf("by run: %q", got)
	}
	if got := get(h, "GET", vectorURL).Header().Get("Cache-Control"); got != "public, no-cache" {
		t.Errorf("by head: %q", got)
	}
	exact := get(h, "GET", location)
	if got := exact.Header().Get("Cache-Control"); got != "public, max-age=31536000, immutable" {
		t.Errorf("by digest: %q", got)
	}
	if !bytes.Equal(exact.Body.Bytes(), body) {
		t.Error("by digest: other bytes")
	}
	sum := segments.Sum(body)
	if got, want := exact.Header().Get("Repr-Digest"), "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":"; got != want {
		t.Errorf("representation digest %s, want %s", got, want)
	}
	wantProblem(t, get(h, "GET", vectorURL+"?sha256="+strings.Repeat("0", 64)), http.StatusNotFound, typeUnknownArtifact)
	wantProblem(t, get(h, "GET", vectorURL+"?sha256=abc"), http.StatusBadRequest, typeInvalidQuery)
	wantProblem(t, get(h, "GET", strings.Replace(vectorURL, vectorHead, strings.Repeat("0", 64), 1)), http.StatusNotFound, typeUnknownArtifact)
	if got := get(h, "GET", "/execute/x"+runURL).Header().Get("Cache-Control"); got != "no-store" {
		t.Errorf("problem: %q", got)
	}
}
