package server

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// query reads the parameters of a list. The first thing wrong is kept in err.
type query struct {
	values url.Values
	err    error
}

func newQuery(r *http.Request) *query { return &query{values: r.URL.Query()} }

func (q *query) fail(detail string) {
	if q.err == nil {
		q.err = invalidQuery(detail)
	}
}

// limit is the number of entries asked for.
func (q *query) limit() int { return q.upTo(maxPage) }

// upTo is limit for lists with another bound.
func (q *query) upTo(most int) int {
	text := q.values.Get("limit")
	if !q.values.Has("limit") {
		return defaultPage
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		q.fail("limit must be a number from 1 to " + strconv.Itoa(most))
		return defaultPage
	}
	return n
}

// after is the cursor of the page before, as the store gave it; "" starts.
func (q *query) after() string {
	if !q.values.Has("after") {
		return ""
	}
	text := q.values.Get("after")
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) == 0 || len(text) > maxCursorBytes {
		q.fail("after is not a cursor that this server gave")
		return ""
	}
	return string(raw)
}

// number is after for lists that the store counts.
func (q *query) number() uint64 {
	text := q.after()
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		q.fail("after is not a cursor that this server gave")
	}
	return n
}

func (q *query) hex(name string, n int) string {
	if !q.values.Has(name) {
		return ""
	}
	text := q.values.Get(name)
	if !isHex(text, n) {
		q.fail(name + " must be " + strconv.Itoa(n) + " hex digits")
		return ""
	}
	return strings.ToLower(text)
}

func (q *query) token(name string) string {
	if !q.values.Has(name) {
		return ""
	}
	text := q.values.Get(name)
	if !isToken(text) {
		q.fail(name + " must be 1 to 64 letters, digits, hyphens or underscores")
		return ""
	}
	return text
}

// traceID reads a trace id as UUID or, as OpenTelemetry spells it, as 32 hex
// digits.
func (q *query) traceID() string {
	if !q.values.Has("trace_id") {
		return ""
	}
	digits := strings.ToLower(strings.ReplaceAll(q.values.Get("trace_id"), "-", ""))
	if !isHex(digits, 32) {
		q.fail("trace_id must be 32 hex digits, with or without the hyphens of a UUID")
		return ""
	}
	return strings.Join([]string{digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]}, "-")
}

// time reads a moment as RFC 3339 or as Unix milliseconds; 0: not given.
func (q *query) time(name string) uint64 {
	if !q.values.Has(name) {
		return 0
	}
	text := q.values.Get(name)
	if ms, err := strconv.ParseUint(text, 10, 53); err == nil {
		return ms
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.UnixMilli() < 0 {
		q.fail(name + " must be a time such as 2026-05-01T12:00:00Z, or Unix milliseconds")
		return 0
	}
	return uint64(t.UnixMilli())
}

// oneOf reads a parameter with few values.
func (q *query) oneOf(name string, known ...string) string {
	if !q.values.Has(name) {
		return ""
	}
	text := q.values.Get(name)
	for _, k := range known {
		if text == k {
			return text
		}
	}
	q.fail(name + " must be one of " + strings.Join(known, ", "))
	return ""
}

// tenant is the tenant asked for; nil means all that the caller may read,
// which must then be all there are, or exactly one.
func (q *query) tenant(a access) *string {
	if text := q.token("tenant"); text != "" {
		tenant := parseTenant(text)
		if !a.may(tenant) && q.err == nil {
			q.err = notFound()
		}
		return &tenant
	}
	if a.all {
		return nil
	}
	if len(a.tenants) != 1 {
		q.fail("tenant is needed: the token may read several")
		return nil
	}
	return &a.tenants[0]
}

// cursor makes the store's position opaque, so that nobody builds one.
func cursor(position string) *string {
	if position == "" {
		return nil
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(position))
	return &text
}

func countCursor(position uint64) *string {
	if position == 0 {
		return nil
	}
	return cursor(strconv.FormatUint(position, 10))
}

// writeJSON answers with a document that caches must ask about each time.
func (s *server) writeJSON(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c := newContent(jsonMediaType, body)
	c.private = s.Tokens != nil
	c.serve(w, r)
	return nil
}

// hexOf spells a digest that may be missing.
func hexOf(d *segments.Digest) *string {
	if d == nil {
		return nil
	}
	text := d.String()
	return &text
}

// keyDocument names a chain. Tenant "" is the empty tenant.
type keyDocument struct {
	Tenant     string `json:"tenant"`
	PromptHash string `json:"prompt_hash"`
	Session    string `json:"session"`
	Chain      string `json:"chain"`
}

func describeKey(k events.Key) keyDocument {
	return keyDocument{Tenant: k.Tenant, PromptHash: k.PromptHash, Session: k.Session, Chain: k.Chain}
}

// chainURL is the address of a chain below /v1.
func chainURL(k events.Key) string {
	return "/v1/chains/" + tenantSegment(k.Tenant) + "/" + k.PromptHash + "/" + k.Session + "/" + k.Chain
}
