package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
)

const keyPath = "_/" + vectorHash + "/" + vectorSession + "/c1"

// samples has one request for every pattern in the table of routes, and the
// status that it gets from a server without a store.
var samples = map[string]struct {
	path   string
	status int
}{
	sessionPath + "/artifacts/{run_id}/evidence":              {runURL, 200},
	tenantPath + sessionPath + "/artifacts/{run_id}/evidence": {"/tenants/_" + runURL, 200},
	sessionPath + "/evidence/heads/{head}":                    {vectorURL, 200},
	tenantPath + sessionPath + "/evidence/heads/{head}":       {"/tenants/acme" + vectorURL, 404},
	"/v1/chains":            {"/v1/chains", 503},
	chainPath:               {"/v1/chains/" + keyPath, 503},
	chainPath + "/evidence": {"/v1/chains/" + keyPath + "/evidence", 503},
	sessionPath + "/artifacts/{run_id}/bundle":              {strings.Replace(runURL, "/evidence", "/bundle", 1), 503},
	tenantPath + sessionPath + "/artifacts/{run_id}/bundle": {"/tenants/_" + strings.Replace(runURL, "/evidence", "/bundle", 1), 503},
	chainPath + "/bundle":                                   {"/v1/chains/" + keyPath + "/bundle", 503},
	chainPath + "/addenda":                                  {"/v1/chains/" + keyPath + "/addenda", 503},
	chainPath + "/segments":                                 {"/v1/chains/" + keyPath + "/segments", 503},
	chainPath + "/attempts":                                 {"/v1/chains/" + keyPath + "/attempts", 503},
	"/v1/keys":                                              {"/v1/keys", 200},
	"/{$}":                                                  {"/", 200},
	"/verify":                                               {"/verify", 200},
	"/verifier.wasm.gz":                                     {"/verifier.wasm.gz", 200},
	"/v1/runs":                                              {"/v1/runs", 503},
	"/v1/rejected":                                          {"/v1/rejected", 503},
	"/v1/epochs":                                            {"/v1/epochs", 503},
	"/v1/lost":                                              {"/v1/lost", 503},
	"/openapi.json":                                         {"/openapi.json", 200},
	"/healthz":                                              {"/healthz", 200},
	"/readyz":                                               {"/readyz", 200},
	"/metrics":                                              {"/metrics", 200},
	"/":                                                     {"/nothing/here", 404},
}

func TestEveryRouteAndMethod(t *testing.T) {
	t.Parallel()
	h, _ := vectorHandler(t)
	p := servePipes(t, h)
	for _, r := range routes() {
		sample, ok := samples[r.pattern]
		if !ok {
			t.Errorf("route %s has no sample", r.pattern)
			continue
		}
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW"} {
			t.Run(method+" "+r.pattern, func(t *testing.T) {
				status := sample.status
				if method != "GET" && method != "HEAD" {
					status = http.StatusMethodNotAllowed
				}
				resp, _ := send(t, p, method+" "+sample.path+" HTTP/1.1\r\nHost: chaind.test\r\n\r\n")
				if resp.StatusCode != status {
					t.Fatalf("status %d, want %d", resp.StatusCode, status)
				}
				checkProtection(t, resp.Header)
				if status == http.StatusMethodNotAllowed && resp.Header.Get("Allow") != "GET, HEAD" {
					t.Errorf("Allow %q", resp.Header.Get("Allow"))
				}
			})
		}
	}
}

func checkProtection(t *testing.T, h http.Header) {
	t.Helper()
	if h.Get("X-Content-Type-Options") != "nosniff" {
		t.Error("no nosniff")
	}
	if !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("content security policy %q", h.Get("Content-Security-Policy"))
	}
	if h.Get("Cache-Control") == "" && h.Get("Content-Type") == "application/json" {
		t.Error("no cache control")
	}
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("cross-origin header %s", name)
		}
	}
}

// TestH08_HeadEqualsGet compares all header fields but the date.
func TestH08_HeadEqualsGet(t *testing.T) {
	t.Parallel()
	h, _ := vectorHandler(t)
	p := servePipes(t, h)
	for pattern, sample := range samples {
		if pattern == "/metrics" {
			continue // its values differ from request to request
		}
		t.Run(pattern, func(t *testing.T) {
			ask := " " + sample.path + " HTTP/1.1\r\nHost: chaind.test\r\n\r\n"
			get, body := send(t, p, "GET"+ask)
			head, none := send(t, p, "HEAD"+ask)
			if none != "" || body == "" {
				t.Errorf("HEAD has %d bytes of body, GET %d", len(none), len(body))
			}
			get.Header.Del("Date")
			head.Header.Del("Date")
			if a, b := flat(get.Header), flat(head.Header); a != b || get.StatusCode != head.StatusCode {
				t.Errorf("GET %d %s\nHEAD %d %s", get.StatusCode, a, head.StatusCode, b)
			}
			if head.ContentLength != int64(len(body)) {
				t.Errorf("HEAD has content length %d, GET sent %d", head.ContentLength, len(body))
			}
		})
	}
}

func flat(h http.Header) string {
	var b bytes.Buffer
	h.Write(&b) // sorted by name
	return b.String()
}

// TestH02_HostilePaths sends request lines past any client library.
func TestH02_HostilePaths(t *testing.T) {
	t.Parallel()
	h, _ := vectorHandler(t)
	p := servePipes(t, h)
	head, tail, _ := strings.Cut(runURL, vectorRun)
	for _, path := range []string{
		"/a%00b", "/a%0d%0aX-Evil:1", "/a%5cb", `/a\b`, "/a%1b[2Jb", "/a%7fb", "/a%c2%85b", "/a%80b", "/%ff%fe",
		"/a/../b", "/a/./b", "/..", "/.", "/a/..", "//a", "/a//b", "/%2e%2e/a", "/a/%2E%2E/b", "/a%2fb", "/a%2Fb",
		"/a%252fb", "/a%25b", head + "..%2f..%2fetc%2fcron.d%2fx" + tail, head + "../../etc/cron.d/x" + tail,
		head + ".." + tail, head + "." + tail, head + "%2fabs" + tail, head + vectorRun + "%00" + tail,
	} {
		t.Run(path, func(t *testing.T) {
			resp, body := send(t, p, "GET "+path+" HTTP/1.1\r\nHost: chaind.test\r\n\r\n")
			if resp.StatusCode != http.StatusBadRequest {
				t.Fatalf("status %d, body %q", resp.StatusCode, body)
			}
			if resp.Header.Get("X-Evil") != "" {
				t.Error("header was injected")
			}
		})
	}
}

// TestF01_TraversalThroughIDs asks with ids that would name other files.
func TestF01_TraversalThroughIDs(t *testing.T) {
	t.Parallel()
	h, b := vectorHandler(t)
	b.put("secret", []byte("secret"))
	head, tail, _ := strings.Cut(runURL, vectorRun)
	for _, id := range []string{"abs", "etc", "pr", "pr" + strings.Repeat("g", 64), "PR" + vectorRun[2:], vectorRun[:65], vectorRun + "0", "C:", "CON", "run-1"} {
		wantProblem(t, get(h, "GET", head+id+tail), http.StatusBadRequest, typeInvalidPath)
	}
	for _, path := range []string{"/tenants/a.b" + runURL, "/tenants/a:b" + runURL, "/tenants/" + strings.Repeat("a", 65) + runURL, "/tenants/é" + runURL} {
		wantProblem(t, get(h, "GET", path), http.StatusBadRequest, typeInvalidPath)
	}
}

func TestRefusesBodiesAndLongQueries(t *testing.T) {
	t.Parallel()
	h, _ := vectorHandler(t)
	p := servePipes(t, h)
	for _, c := range []struct {
		name, request string
		status        int
	}{
		{"V19 compressed body", "GET /healthz HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\nContent-Length: 400000\r\n\r\n", 413},
		{"chunked body", "GET /healthz HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", 413},
		{"long query", "GET /v1/runs?" + strings.Repeat("a", maxQueryBytes+1) + " HTTP/1.1\r\nHost: h\r\n\r\n", 414},
		{"headers of 17 KiB", "GET /healthz HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("a", maxHeaderBytes/2) + "\r\nY: " + strings.Repeat("a", maxHeaderBytes/2) + "\r\n\r\n", 431},
		{"long header", "GET /healthz HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("a", 2*maxHeaderBytes) + "\r\n\r\n", 431},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, _ := send(t, p, c.request)
			if resp.StatusCode != c.status || resp.Header.Get("Content-Type") != problemMediaType {
				t.Errorf("status %d as %s, want %d", resp.StatusCode, resp.Header.Get("Content-Type"), c.status)
			}
			if !resp.Close {
				t.Error("the connection stays open for what follows")
			}
		})
	}
}

// TestLibraryAnswersWhatIsNoRequest: the few answers that are no problem
// documents, as docs/reference/http.md lists them.
func TestLibraryAnswersWhatIsNoRequest(t *testing.T) {
	t.Parallel()
	h, _ := vectorHandler(t)
	p := servePipes(t, h)
	for request, status := range map[string]int{
		"GET /healthz HTTP/1.1\r\n\r\n":                                                      400,
		"GET /health z HTTP/1.1\r\nHost: h\r\n\r\n":                                          400,
		"GET /healthz HTTP/1.1\r\nHost: h\r\nExpect: tea\r\n\r\n":                            417,
		"GET /healthz HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("a", 70<<10) + "\r\n\r\n": 431,
		"GET /healthz HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n":       501,
		"GET /healthz HTTP/3.1\r\nHost: h\r\n\r\n":                                           505,
		"GET /healthz HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("a", 15<<10) + "\r\n\r\n": 200,
	} {
		if resp, body := send(t, p, request); resp.StatusCode != status || status != 200 && resp.Header.Get("Content-Type") == problemMediaType {
			t.Errorf("%.60q: status %d, want %d: %.60s", request, resp.StatusCode, status, body)
		}
	}
}

// brokenSidecars fail in a way that the test chooses.
type brokenSidecars struct {
	Sidecars
	err   error
	panic any
}

func (b *brokenSidecars) ReadRun(ctx context.Context, p sidecar.Place, runID string) (*sidecar.Found, error) {
	if b.panic != nil {
		panic(b.panic)
	}
	if b.err != nil {
		return nil, b.err
	}
	return b.Sidecars.ReadRun(ctx, p, runID)
}

func TestPanicsAnswer500AndAreLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	b := loadTree(t, "two-run")
	m := NewMetrics("test", nil)
	h := newHandler(t, Config{Sidecars: &brokenSidecars{Sidecars: b.sidecars(), panic: "boom"}, Metrics: m,
		Verifications: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	// More often than there are verifications: a panic must give its slot back.
	for range 3 {
		wantProblem(t, get(h, "GET", runURL), http.StatusInternalServerError, typeInternal)
	}
	if !strings.Contains(log.String(), "boom") {
		t.Errorf("log has no panic: %s", log.String())
	}
	if got := metricValue(t, m, "chaind_http_panics_total"); got != 3 {
		t.Errorf("%v panics counted", got)
	}
}

func TestH06PanicAfterFirstByteBreaksTheConnection(t *testing.T) {
	t.Parallel()
	g := &guard{next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte("half of "))
		panic("late")
	}), logger: testLogger(t), metrics: NewMetrics("test", nil), now: testNow, stall: writeStall}
	defer func() {
		if v := recover(); v != http.ErrAbortHandler {
			t.Errorf("recovered %v", v)
		}
	}()
	g.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	t.Error("the handler returned as if the answer were whole")
}

func TestUnreadableIsNotUnknown(t *testing.T) {
	t.Parallel()
	b := loadTree(t, "two-run")
	h := newHandler(t, Config{Sidecars: &brokenSidecars{Sidecars: b.sidecars(), err: errors.New("input/output error")}})
	w := get(h, "GET", runURL)
	p := wantProblem(t, w, http.StatusServiceUnavailable, typeUnavailable)
	if strings.Contains(p.Detail, "input/output") {
		t.Error("the cause leaked")
	}
	if w.Header().Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

func TestAccessLogHasNoQueryValues(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	b := loadTree(t, "two-run")
	h := newHandler(t, Config{Sidecars: b.sidecars(), Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	get(h, "GET", vectorURL+"?sha256="+segments.Digest{}.String(), "Authorization", "Bearer hidden")
	get(h, "GET", "/v1/runs?token=hidden")
	get(h, "GET", "/v1/chains/chaind_hidden-hidden_hidden0123456789012345678901234/x")
	if !strings.Contains(log.String(), vectorHead) {
		t.Errorf("no access log: %s", log.String())
	}
	if strings.Contains(log.String(), "hidden") || strings.Contains(log.String(), "sha256=") {
		t.Errorf("log holds query or credentials: %s", log.String())
	}
}

func TestLogLinesCannotBeForged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	h := newHandler(t, Config{Sidecars: loadTree(t, "two-run").sidecars(),
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	get(h, "GET", "/a%0d%0atime=2026%20level=ERROR%20msg=forged%1b[2K")
	if lines := strings.Count(log.String(), "\n"); lines != 1 || strings.ContainsAny(log.String(), "\r\x1b") {
		t.Errorf("%d lines: %q", lines, log.String())
	}
}

func TestHosts(t *testing.T) {
	t.Parallel()
	b := loadTree(t, "two-run")
	for _, c := range []struct {
		hosts  []string
		host   string
		status int
	}{
		{nil, "anything.test", 200},
		{[]string{}, "127.0.0.1:8080", 200},
		{[]string{}, "127.0.0.1", 200},
		{[]string{}, "[::1]:8080", 200},
		{[]string{}, "[::1]", 200},
		{[]string{}, "LocalHost:8080", 200},
		{[]string{}, "rebound.test", 421},
		{[]string{}, "rebound.test:8080", 421},
		{[]string{}, "127.0.0.1.rebound.test", 421},
		{[]string{}, "localhost.rebound.test", 421},
		{[]string{"chaind.test"}, "Chaind.test:443", 200},
		{[]string{"chaind.test"}, "other.test", 421},
	} {
		h := newHandler(t, Config{Sidecars: b.sidecars(), Hosts: c.hosts})
		r := httptest.NewRequest("GET", runURL, nil)
		r.Host = c.host
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != c.status {
			t.Errorf("%v asked as %s: %d, want %d", c.hosts, c.host, w.Code, c.status)
		}
	}
}
