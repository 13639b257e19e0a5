package server

import (
	"log/slog"
	"net/http"
)

// NewHTTPServer returns a server for the handler of [New] with the timeouts
// that keep slow and silent clients from holding connections: 10 s for the
// header fields, 15 s for the whole request, 60 s idle. There is no timeout
// for a whole answer; the handler moves a deadline along with every chunk.
// The caller listens (with TLS, unless on loopback) and shuts down.
func NewHTTPServer(addr string, handler http.Handler, logger *slog.Logger) *http.Server {
	s := &http.Server{
		Addr:              addr,
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxReadBytes,
	}
	if logger != nil {
		s.ErrorLog = slog.NewLogLogger(logger.Handler(), slog.LevelDebug)
	}
	return s
}
