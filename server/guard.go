package server

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const allowedMethods = "GET, HEAD"

// tokenText is a bearer token that somebody put into a path.
var tokenText = regexp.MustCompile(`chaind_[A-Za-z0-9_-]{43}`)

// guard is what every request passes before it is routed: limits, refusals,
// headers, the moving write deadline, and the last resort for panics.
type guard struct {
	next    http.Handler
	logger  *slog.Logger
	metrics *Metrics
	now     func() time.Time
	stall   time.Duration
	names   map[string]string // pattern to route name
	hosts   []string          // see Config.Hosts
}

func (g *guard) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	start := g.now()
	w := newProgressWriter(rw, g.stall)
	g.metrics.inFlight.Inc()
	defer func() {
		g.metrics.inFlight.Dec()
		g.metrics.request(g.route(r), w.status, g.now().Sub(start))
		g.logger.Debug("http request", "method", r.Method, "path", tokenText.ReplaceAllString(r.URL.Path, "chaind_…"), "status", w.status,
			"bytes", w.bytes, "elapsed", g.now().Sub(start))
	}()
	defer g.recover(w, r)
	protect(w.Header())
	p := refuse(r)
	if p == nil && !g.knowsHost(r.Host) {
		p = &problem{typeHost, http.StatusMisdirectedRequest, "Misdirected Request", "this server is not asked by that name"}
	}
	if p != nil {
		if p.Status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", allowedMethods)
		}
		// What follows on the connection may be the refused body.
		w.Header().Set("Connection", "close")
		p.write(w)
		return
	}
	g.next.ServeHTTP(w, r)
}

// knowsHost tells whether a request came under a name of this server. Names
// point wherever their owner wants; addresses and localhost do not.
func (g *guard) knowsHost(host string) bool {
	if g.hosts == nil {
		return true
	}
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil || strings.EqualFold(name, "localhost") {
		return true
	}
	return slices.ContainsFunc(g.hosts, func(known string) bool { return strings.EqualFold(known, name) })
}

// route names the route that the multiplexer chose, if it came that far.
func (g *guard) route(r *http.Request) string {
	if name, ok := g.names[r.Pattern]; ok {
		return name
	}
	return otherRoute
}

// recover turns a panic into a 500, or, when part of an answer has left,
// breaks the connection so that the part cannot be taken for the whole.
func (g *guard) recover(w *progressWriter, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler {
		panic(v)
	}
	g.metrics.panics.Inc()
	g.logger.Error("http handler panicked", "method", r.Method, "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
	if w.status != 0 {
		panic(http.ErrAbortHandler)
	}
	internalError().write(w)
}

// protect sets the headers that every answer has.
func protect(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
}

// refuse finds what makes a request unacceptable whatever it asks for.
func refuse(r *http.Request) *problem {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return &problem{typeMethod, http.StatusMethodNotAllowed, "Method Not Allowed", "this server is read-only: GET and HEAD are served"}
	case r.ContentLength != 0 || len(r.TransferEncoding) > 0:
		return &problem{typeBody, http.StatusRequestEntityTooLarge, "Content Too Large", "requests with a body are not accepted"}
	case headerBytes(r) > maxHeaderBytes:
		return &problem{typeHeader, http.StatusRequestHeaderFieldsTooLarge, "Request Header Fields Too Large", "the header of the request is too long"}
	case len(r.URL.RawQuery) > maxQueryBytes:
		return &problem{typeQueryTooLong, http.StatusRequestURITooLong, "URI Too Long", "the query is too long"}
	case !plainPath(r.URL.Path, r.URL.EscapedPath()):
		return badRequest("the path contains a character, an encoding or a dot segment that no resource has")
	}
	return nil
}

// headerBytes is about the size of what came before a body.
func headerBytes(r *http.Request) int {
	n := len(r.RequestURI) + len(r.Host)
	for name, values := range r.Header {
		for _, v := range values {
			n += len(name) + len(v) + len(": \r\n")
		}
	}
	return n
}

// plainPath tells whether a path is one that could name something here. It
// looks at the path as sent and as decoded: an encoded slash, dot, backslash,
// percent sign or control character is refused, never decoded a second time,
// never cleaned into another path.
func plainPath(decoded, escaped string) bool {
	if !strings.HasPrefix(decoded, "/") || !utf8.ValidString(decoded) || strings.ContainsAny(decoded, `\%`) {
		return false
	}
	lower := strings.ToLower(escaped)
	if strings.Contains(lower, "%2f") || strings.Contains(lower, "%2e") {
		return false
	}
	if strings.ContainsFunc(decoded, func(c rune) bool { return c < ' ' || c >= 0x7f && c < 0xa0 }) {
		return false
	}
	for segment := range strings.SplitSeq(decoded[1:], "/") {
		if segment == "." || segment == ".." {
			return false
		}
	}
	return !strings.Contains(decoded, "//")
}
