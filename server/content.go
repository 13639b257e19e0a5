package server

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/chaind/chaind/segments"
)

const (
	// revalidate lets caches keep an answer but makes them ask each time: what
	// a run id or a list names may change.
	revalidate = "no-cache"
	// forever is only for addresses that contain the digest of the bytes.
	forever = "max-age=31536000, immutable"
	// maxRanges is how many ranges one answer may have.
	maxRanges = 16
)

// content is an answer held in memory: its bytes, and so its length and its
// digest, are known before the first one is sent, so an answer is whole or
// visibly broken off.
type content struct {
	mediaType string
	body      []byte
	sum       segments.Digest // of body
	immutable bool            // the address contains the digest
	private   bool            // tokens decide who may read it
}

func newContent(mediaType string, body []byte) *content {
	return &content{mediaType: mediaType, body: body, sum: segments.Sum(body)}
}

// serve answers GET and HEAD with the content: strong entity tag (RFC 9110,
// section 8.8.3), If-Match, If-None-Match, Range and If-Range (sections 13 and
// 14), and the representation digest (RFC 9530). A range request that carries
// If-Range with an older tag gets the whole new content, so two versions are
// never mixed.
func (c *content) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", c.mediaType)
	h.Set("ETag", `"`+c.sum.String()+`"`)
	h.Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(c.sum[:])+":")
	h.Set("Cache-Control", c.cacheControl())
	if c.private {
		h.Add("Vary", "Authorization")
	}
	if given := r.Header.Get("Range"); given != "" && (strings.Count(given, ",") >= maxRanges || !isRange(given)) {
		// A server may ignore the header (RFC 9110, section 14.2): each range
		// costs a part of its own, many small ones more than the whole. One that is
		// invalid, or in other units, it ignores anyway (sections 14.1.1 and 14.2).
		r = r.Clone(r.Context())
		r.Header.Del("Range")
	}
	// No modification time: the digest is the only validator.
	http.ServeContent(&contentWriter{ResponseWriter: w}, r, "", time.Time{}, bytes.NewReader(c.body))
}

// isRange tells whether a Range header is a valid one in bytes: whether it can be
// satisfied is another question.
func isRange(header string) bool {
	set, ok := strings.CutPrefix(header, "bytes=")
	if !ok {
		return false
	}
	for spec := range strings.SplitSeq(set, ",") {
		first, last, ok := strings.Cut(strings.Trim(spec, " \t"), "-")
		from, fromErr := strconv.ParseInt(first, 10, 64)
		to, toErr := strconv.ParseInt(last, 10, 64)
		switch {
		case !ok, first == "" && last == "", first != "" && !isDigits(first), last != "" && !isDigits(last):
			return false
		case first != "" && last != "" && fromErr == nil && toErr == nil && from > to:
			return false
		}
	}
	return true
}

func isDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

func (c *content) cacheControl() string {
	scope := "public, "
	if c.private {
		scope = "private, "
	}
	if c.immutable {
		return scope + forever
	}
	return scope + revalidate
}

// contentWriter turns the plain-text errors of http.ServeContent into
// problems.
type contentWriter struct {
	http.ResponseWriter
	replaced bool
}

func (w *contentWriter) WriteHeader(status int) {
	switch status {
	case http.StatusPreconditionFailed:
		w.replace(&problem{typePrecondition, status, "Precondition Failed", "the content's entity tag does not fit the request's condition"})
	case http.StatusRequestedRangeNotSatisfiable:
		w.replace(&problem{typeRange, status, "Range Not Satisfiable", "no part of the content lies in the range; its size is " + w.Header().Get("Content-Range")})
	case http.StatusInternalServerError:
		w.replace(internalError())
	default:
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *contentWriter) replace(p *problem) {
	w.replaced = true
	p.write(w.ResponseWriter)
}

func (w *contentWriter) Write(b []byte) (int, error) {
	if w.replaced {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}
