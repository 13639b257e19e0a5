package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/chaind/chaind/sidecar"
)

// halfBlobs gives the first half of the blobs whose name contains a text, and
// then an error of the disk.
type halfBlobs struct {
	sidecar.Blobs
	mu     sync.Mutex
	broken string // "": none
	met    int
}

func (h *halfBlobs) Open(ctx context.Context, name string) (io.ReadSeekCloser, error) {
	r, err := h.Blobs.Open(ctx, name)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil || h.broken == "" || !strings.Contains(name, h.broken) {
		return r, err
	}
	h.met++
	size, err := r.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = r.Seek(0, io.SeekStart)
	}
	return &halfReader{ReadSeekCloser: r, left: size / 2}, err
}

type halfReader struct {
	io.ReadSeekCloser
	left int64
}

func (h *halfReader) Read(b []byte) (int, error) {
	if h.left == 0 {
		return 0, errors.New("input/output error")
	}
	n, err := h.ReadSeekCloser.Read(b[:min(int64(len(b)), h.left)])
	h.left -= int64(n)
	return n, err
}

// Case H06: a file that cannot be read beyond its middle is an error, decided
// before the first byte is sent, and never a shorter answer with 200; when the
// file can be read again it is served again. (Where an answer breaks after its first byte the
// connection does: TestH06PanicAfterFirstByteBreaksTheConnection.)
func TestH06HalfReadableFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	half := &halfBlobs{Blobs: w.blobs}
	var err error
	if w.sidecars, err = sidecar.Open(t.Context(), sidecar.Config{Blobs: half}); err != nil {
		t.Fatal(err)
	}
	w.seal(t)
	h := newHandler(t, Config{Store: w.store, Sidecars: w.sidecars, Pack: w.pack})
	c := w.finishedChain(t)
	for url, file := range map[string]string{c.url() + "/evidence": ".evidence.json", c.url() + "/bundle": ".tsb"} {
		half.mu.Lock()
		half.broken = file
		half.mu.Unlock()
		for _, method := range []string{"GET", "HEAD"} {
			a := get(h, method, url)
			if a.Code < http.StatusInternalServerError {
				t.Errorf("%s %s: %d, %d bytes", method, url, a.Code, a.Body.Len())
			}
			if a.Header().Get("ETag") != "" {
				t.Errorf("%s %s: an error with an entity tag", method, url)
			}
		}
		half.mu.Lock()
		if half.broken = ""; half.met == 0 {
			t.Errorf("%s did not read the file", url)
		}
		half.met = 0
		half.mu.Unlock()
		if a := get(h, "GET", url); a.Code != http.StatusOK {
			t.Errorf("%s afterwards: %d %s", url, a.Code, a.Body)
		}
	}
}
