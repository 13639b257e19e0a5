package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/chaind/chaind/internal/daemon"
)

// apiFlags say whom a listing command asks: a running daemon, or the files of a
// stopped one.
type apiFlags struct {
	clientFlags
	URL          string `help:"HTTP address of the running daemon." default:"http://127.0.0.1:8477" env:"CHAIND_URL" placeholder:"URL"`
	DataDir      string `help:"Read the files of a stopped daemon instead." placeholder:"DIR"`
	ArtifactsDir string `help:"Its evidence files, when not in the data directory." placeholder:"DIR"`
}

// apiTimeout bounds one answer.
const apiTimeout = 30 * time.Second

// problemDocument is the API's error (RFC 9457).
type problemDocument struct {
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

// source answers requests of the API: a running daemon, or the files of a
// stopped one.
type source struct {
	fetch func(path string, limit int64) (status int, body []byte, err error)
	hint  string
	close func() error
}

func (f *apiFlags) source(a *app) (*source, error) {
	if f.DataDir == "" {
		return &source{
			fetch: func(path string, limit int64) (int, []byte, error) {
				return f.getUpTo(a, f.URL+path, apiTimeout, limit)
			},
			hint:  "is the daemon running, and is --url its HTTP address? --data-dir reads the files of a stopped one",
			close: func() error { return nil },
		}, nil
	}
	r, err := daemon.OpenReader(f.DataDir, f.ArtifactsDir)
	if err != nil {
		return nil, cannot(err, "while the daemon runs it holds the files: leave --data-dir out and ask it with --url")
	}
	if r.Unsynced != "" {
		a.warn(r.Unsynced + "; what is shown may in part not be on the disk: the next start of the daemon checks the database and writes it anew")
	}
	return &source{fetch: func(path string, _ int64) (int, []byte, error) { return r.Get(a.ctx, path) }, close: r.Close}, nil
}

// pages fetches a listing page by page and hands each body to visit, which
// returns the cursor of the next page, or nil at the end.
func (f *apiFlags) pages(a *app, path string, query url.Values, visit func(body []byte) (next *string, err error)) error {
	s, err := f.source(a)
	if err != nil {
		return err
	}
	return errors.Join(s.pages(path, query, visit), s.close())
}

func (s *source) pages(path string, query url.Values, visit func(body []byte) (next *string, err error)) error {
	for {
		body, err := s.get(path+"?"+query.Encode(), maxAnswer)
		if err != nil {
			return err
		}
		next, err := visit(body)
		if err != nil {
			return err
		}
		if next == nil {
			return nil
		}
		query.Set("after", *next)
	}
}

// get fetches one document of at most limit bytes.
func (s *source) get(path string, limit int64) ([]byte, error) {
	status, body, err := s.fetch(path, limit)
	if err != nil {
		return nil, cannot(err, s.hint)
	}
	if status != http.StatusOK {
		return nil, refused(status, body)
	}
	return body, nil
}

// refused makes an error of the API's answer: a wrong filter is usage.
func refused(status int, body []byte) error {
	var p problemDocument
	if err := json.Unmarshal(body, &p); err != nil || p.Title == "" {
		return cannot(fmt.Errorf("the daemon answered %d", status), "")
	}
	err := errors.New(p.Detail)
	switch status {
	case http.StatusBadRequest:
		return usageError("%w", err)
	case http.StatusUnauthorized:
		return cannot(err, "give --token-file, or set "+envToken+"; `chaind token` makes one for the daemon's token file")
	}
	return cannot(&answerError{status, err}, "")
}

// answerError is an answer that is no result.
type answerError struct {
	status int
	why    error
}

func (e *answerError) Error() string {
	return fmt.Sprintf("the daemon answered %d: %v", e.status, e.why)
}
func (e *answerError) Unwrap() error { return e.why }

// notServed tells whether the caller's token may not see what was asked for.
func notServed(err error) bool {
	var e *answerError
	return errors.As(err, &e) && e.status == http.StatusNotFound
}

// decodePage decodes a page of the API; members that this program does not know
// are left alone, duplicates are not JSON that the daemon writes.
func decodePage[T any](body []byte) (T, error) {
	var page T
	if err := json.Unmarshal(body, &page, jsontext.AllowDuplicateNames(false)); err != nil {
		return page, cannot(fmt.Errorf("read the daemon's answer: %w", err), "")
	}
	return page, nil
}

// filters keeps those that are set.
func filters(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

// chainKey is a chain's identity in the API.
type chainKey struct {
	Tenant     string `json:"tenant"`
	PromptHash string `json:"prompt_hash"`
	Session    string `json:"session"`
	Chain      string `json:"chain"`
}

// short gives the first digits of a long hexadecimal name, for tables.
func short(text string) string {
	const digits = 12
	if len(text) > digits {
		return text[:digits]
	}
	return text
}
