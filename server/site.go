package server

import (
	"net/http"

	"github.com/chaind/chaind/web"
)

const (
	htmlMediaType = "text/html; charset=utf-8"
	gzipMediaType = "application/gzip"
)

// site are the pages for people. Joining and hashing them takes some
// milliseconds and megabytes, which commands that only read do not need.
type site struct {
	console, verify web.Page
	engine          *content
	pages           map[string]*content
}

func newSite() *site {
	st := &site{console: web.Console(), verify: web.Verify(), engine: newContent(gzipMediaType, web.Engine())}
	st.pages = map[string]*content{
		"console": newContent(htmlMediaType, st.console.HTML),
		"verify":  newContent(htmlMediaType, st.verify.HTML),
	}
	return st
}

// console serves the page that shows what the read API says. The page itself
// tells nothing, so that it needs no token; what it asks for does.
func (s *server) console(w http.ResponseWriter, r *http.Request, _ access) error {
	return s.servePage(w, r, "console", s.site().console.Policy)
}

// verifyPage serves the page that verifies files in the browser.
func (s *server) verifyPage(w http.ResponseWriter, r *http.Request, _ access) error {
	return s.servePage(w, r, "verify", s.site().verify.Policy)
}

func (s *server) servePage(w http.ResponseWriter, r *http.Request, name, policy string) error {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	s.site().pages[name].serve(w, r)
	return nil
}

// engine serves the verifier that the console runs.
func (s *server) engine(w http.ResponseWriter, r *http.Request, _ access) error {
	s.site().engine.serve(w, r)
	return nil
}
