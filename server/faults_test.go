package server

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/store"
)

// brokenStore fails every query.
type brokenStore struct{ err error }

func (b brokenStore) Chain(events.Key) (*store.ChainRecord, error) { return nil, b.err }
func (b brokenStore) Chains(store.ChainQuery) ([]store.ChainSummary, string, error) {
	return nil, "", b.err
}
func (b brokenStore) Runs(store.RunQuery) ([]store.RunRecord, string, error)     { return nil, "", b.err }
func (b brokenStore) Ended(store.EndedQuery, func(*store.EndedChain) bool) error { return b.err }
func (b brokenStore) Addenda(events.Key, uint64, int) ([]store.Addendum, error) {
	return nil, b.err
}
func (b brokenStore) Segments(events.Key, uint64, int) ([]store.SegmentRecord, error) {
	return nil, b.err
}
func (b brokenStore) Attempts(events.Key, uint64, int) ([]store.AttemptRecord, error) {
	return nil, b.err
}
func (b brokenStore) Epochs() ([]store.Epoch, error)                    { return nil, b.err }
func (b brokenStore) LostRanges(uint64, int) ([]store.LostRange, error) { return nil, b.err }
func (b brokenStore) Rejected(store.RejectedQuery) ([]events.Rejection, uint64, error) {
	return nil, 0, b.err
}

// TestStoreFailuresAreNeitherEmptyNorUnknown breaks the store in the ways that
// it can break.
func TestStoreFailuresAreNeitherEmptyNorUnknown(t *testing.T) {
	t.Parallel()
	missing := strings.Replace(runURL, vectorRun, "pr"+strings.Repeat("e", 64), 1)
	for name, c := range map[string]struct {
		err    error
		status int
		typ    string
	}{
		"corrupt": {&store.CorruptError{Bucket: "chains", Detail: "digest differs"}, 500, typeInternal},
		"I/O":     {errors.New("read /secret/path: input/output error"), 500, typeInternal},
		"closed":  {store.ErrClosed, 503, typeUnavailable},
	} {
		for _, path := range []string{"/v1/chains", "/v1/runs", "/v1/rejected", "/v1/epochs", "/v1/lost", "/v1/chains/" + keyPath, "/v1/chains/" + keyPath + "/evidence", "/v1/chains/" + keyPath + "/bundle", strings.Replace(missing, "/evidence", "/bundle", 1),
			"/v1/chains/" + keyPath + "/addenda", "/v1/chains/" + keyPath + "/segments", "/v1/chains/" + keyPath + "/attempts", missing,
			runURL, vectorURL} { // what may be ours cannot be compared with its record
			t.Run(name+" "+path, func(t *testing.T) {
				t.Parallel()
				var log bytes.Buffer
				h := newHandler(t, Config{Sidecars: loadTree(t, "two-run").sidecars(), Store: brokenStore{c.err},
					Logger: slog.New(slog.NewTextHandler(&log, nil))})
				w := get(h, "GET", path)
				wantProblem(t, w, c.status, c.typ)
				if strings.Contains(w.Body.String(), "secret") || strings.Contains(w.Body.String(), "digest differs") {
					t.Errorf("the cause leaked: %s", w.Body)
				}
				if c.status == 500 && !strings.Contains(log.String(), c.err.Error()[:10]) {
					t.Errorf("the cause is not in the log: %s", log.String())
				}
			})
		}
	}
}

// TestHTTP2 serves the same over TLS and HTTP/2.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	h, b := vectorHandler(t)
	ts := httptest.NewUnstartedServer(nil)
	ts.Config = NewHTTPServer("", h, nil)
	ts.EnableHTTP2 = true
	ts.StartTLS()
	defer ts.Close()
	for _, c := range []struct {
		method, path string
		status       int
	}{{"GET", runURL, 200}, {"HEAD", runURL, 200}, {"GET", "/a%00", 400}, {"DELETE", runURL, 405}, {"GET", "/readyz", 200}} {
		r, err := http.NewRequest(c.method, ts.URL+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := ts.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != c.status || resp.ProtoMajor != 2 || resp.TLS.Version != tls.VersionTLS13 {
			t.Errorf("%s %s: %s %d, %v", c.method, c.path, resp.Proto, resp.StatusCode, err)
		}
		if c.method == "GET" && c.path == runURL && !bytes.Equal(body, b.get(headFile)) {
			t.Error("other bytes")
		}
	}
}
