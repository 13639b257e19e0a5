package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChainPagesAndFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.handler(t)
	for _, c := range []struct {
		name, query string
		want        func(*expectedChain) bool
	}{
		{"all", "", func(*expectedChain) bool { return true }},
		{"tenant", "tenant=acme", func(c *expectedChain) bool { return c.Tenant == "acme" }},
		{"empty tenant", "tenant=_", func(c *expectedChain) bool { return c.Tenant == "_" }},
		{"unknown tenant", "tenant=nobody", func(*expectedChain) bool { return false }},
		{"outcome", "outcome=failed", func(c *expectedChain) bool { return c.Outcome == "failed" }},
		{"conformity", "conformity=nonconforming", func(c *expectedChain) bool { return c.Conformity == "nonconforming" }},
		{"both", "outcome=succeeded&conformity=conforming", func(c *expectedChain) bool { return c.Outcome == "succeeded" && c.Conformity == "conforming" }},
		{"session, upper case", "session=" + strings.ToUpper(w.chains[0].Session), func(c *expectedChain) bool { return c.Session == w.chains[0].Session }},
		{"prompt", "prompt_hash=" + w.chains[0].PromptHash, func(c *expectedChain) bool { return c.PromptHash == w.chains[0].PromptHash }},
		{"chain", "chain=" + w.chains[0].Chain, func(c *expectedChain) bool { return c.Chain == w.chains[0].Chain }},
	} {
		for _, limit := range []string{"1", "3", "200"} {
			t.Run(c.name+" by "+limit, func(t *testing.T) {
				var want []string
				for i := range w.chains {
					if c.want(&w.chains[i]) {
						want = append(want, w.chains[i].url())
					}
				}
				slices.Sort(want)
				got := walk(t, h, "/v1/chains?limit="+limit+"&"+c.query, func(t *testing.T, path string) ([]string, *string) {
					page := decode[chainPage](t, get(h, "GET", path))
					var urls []string
					for _, d := range page.Chains {
						urls = append(urls, d.URL)
					}
					return urls, page.Next
				})
				slices.Sort(got)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

// walk follows a list to its end.
func walk(t *testing.T, _ http.Handler, path string, page func(*testing.T, string) ([]string, *string)) []string {
	t.Helper()
	path = strings.TrimSuffix(path, "&")
	var all []string
	after := ""
	for range 1000 {
		entries, next := page(t, path+after)
		all = append(all, entries...)
		if next == nil {
			return all
		}
		after = "&after=" + url.QueryEscape(*next)
	}
	t.Fatal("the list does not end")
	return nil
}

func TestRejectedAndRunPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.handler(t)
	var wantRejected, wantRuns []string
	total := w.strays
	for i := range w.chains {
		c := &w.chains[i]
		total += len(c.Rejected)
		for _, r := range c.Rejected {
			if c.Tenant == "acme" {
				wantRejected = append(wantRejected, r.PayloadSHA256+" "+r.Class)
			}
		}
		for _, id := range c.RunIDs {
			wantRuns = append(wantRuns, id+" "+c.url()+" "+c.Outcome+" "+c.Conformity)
		}
	}
	rejections := func(t *testing.T, path string) ([]string, *string) {
		page := decode[rejectionPage](t, get(h, "GET", path))
		var found []string
		for _, r := range page.Rejected {
			found = append(found, r.SHA256+" "+r.Class)
		}
		return found, page.Next
	}
	if got := walk(t, h, "/v1/rejected?limit=7", rejections); len(got) != total {
		t.Errorf("%d rejections, want %d", len(got), total)
	}
	got := walk(t, h, "/v1/rejected?limit=3&tenant=acme", rejections)
	slices.Sort(got)
	slices.Sort(wantRejected)
	if diff := cmp.Diff(wantRejected, got); diff != "" {
		t.Errorf("rejected of one tenant (-want +got):\n%s", diff)
	}
	for _, entry := range walk(t, h, "/v1/rejected?class=conflict", rejections) {
		if !strings.HasSuffix(entry, " conflict") {
			t.Errorf("asked for conflicts, got %s", entry)
		}
	}
	gotRuns := walk(t, h, "/v1/runs?limit=2", func(t *testing.T, path string) ([]string, *string) {
		page := decode[runPage](t, get(h, "GET", path))
		var found []string
		for _, r := range page.Runs {
			found = append(found, r.RunID+" "+r.ChainURL+" "+string(r.Outcome)+" "+string(r.Conformity))
		}
		return found, page.Next
	})
	slices.Sort(gotRuns)
	slices.Sort(wantRuns)
	if diff := cmp.Diff(wantRuns, gotRuns); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
}

func TestBadQueries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.handler(t)
	chain := w.chains[0].url()
	for _, path := range []string{
		"/v1/chains?limit=0", "/v1/chains?limit=201", "/v1/chains?limit=-1", "/v1/chains?limit=x", "/v1/chains?limit=", "/v1/chains?limit=1&limit=2",
		"/v1/chains?outcome=won", "/v1/chains?outcome=", "/v1/chains?conformity=x", "/v1/chains?tenant=", "/v1/chains?tenant=a.b", "/v1/chains?session=abc",
		"/v1/chains?prompt_hash=zz", "/v1/chains?chain=a/b", "/v1/chains?tennant=acme", "/v1/chains?after=", "/v1/chains?after=%21", "/v1/chains?after=AAAA",
		"/v1/chains?after=" + strings.Repeat("A", maxCursorBytes+4), "/v1/chains?a;b", "/v1/chains?tenant=%zz", "/v1/chains?=1",
		"/v1/runs?run_id=x", "/v1/runs?class=malformed", "/v1/rejected?class=x", "/v1/rejected?after=eHg", "/v1/rejected?tenant=%00",
		chain + "?x=1", chain + "/evidence?x=1", chain + "/addenda?after=LTE", chain + "/addenda?limit=1000", "/healthz?x=1", runURL + "?x=1", "/metrics?name[]=x",
	} {
		t.Run(path, func(t *testing.T) {
			wantProblem(t, get(h, "GET", path), http.StatusBadRequest, typeInvalidQuery)
		})
	}
}

// TestListsAreConditional asks for a list again with its tag.
func TestListsAreConditional(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.handler(t)
	first := get(h, "GET", "/v1/chains")
	if got := first.Header().Get("Cache-Control"); got != "public, no-cache" {
		t.Errorf("cache control %q", got)
	}
	again := get(h, "GET", "/v1/chains", "If-None-Match", first.Header().Get("ETag"))
	if again.Code != http.StatusNotModified || again.Body.Len() != 0 {
		t.Errorf("status %d with %d bytes", again.Code, again.Body.Len())
	}
	w.seal(t)
	if changed := get(h, "GET", "/v1/chains", "If-None-Match", first.Header().Get("ETag")); changed.Code != http.StatusOK || bytes.Equal(changed.Body.Bytes(), first.Body.Bytes()) {
		t.Errorf("after sealing: status %d", changed.Code)
	}
}

// TestShapesAreAsDocumented compares the members of real documents, in order,
// with the list in the package documentation.
func TestShapesAreAsDocumented(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seal(t)
	h := newHandler(t, Config{Store: w.store, Sidecars: w.sidecars, Ready: func() []Cause { return []Cause{{CauseLag, "far"}} }})
	late := w.chains[slices.IndexFunc(w.chains, func(c expectedChain) bool { return len(c.Late) > 0 && c.Sidecar != nil })]
	chains := members(t, get(h, "GET", "/v1/chains").Body.Bytes())
	chain := members(t, chains.first("chains"))
	detail := members(t, get(h, "GET", late.url()).Body.Bytes())
	runs := members(t, get(h, "GET", "/v1/runs").Body.Bytes())
	rejections := members(t, get(h, "GET", "/v1/rejected").Body.Bytes())
	addenda := members(t, get(h, "GET", late.url()+"/addenda").Body.Bytes())
	epochs := members(t, get(h, "GET", "/v1/epochs").Body.Bytes())
	ready := members(t, get(h, "GET", "/readyz").Body.Bytes())
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for name, names := range map[string]string{
		"chains":          chains.names(),
		"chain in a list": chain.names(),
		"chain alone":     "the same, and " + strings.TrimPrefix(detail.names(), chain.names()+" "),
		"sealed":          members(t, detail.value("sealed")).names(),
		"step":            members(t, detail.first("steps")).names(),
		"addenda":         addenda.names(),
		"addendum":        members(t, addenda.first("addenda")).names(),
		"runs":            runs.names(),
		"run":             members(t, runs.first("runs")).names(),
		"rejections":      rejections.names(),
		"rejection":       members(t, rejections.first("rejected")).names(),
		"epochs":          epochs.names(),
		"epoch":           members(t, epochs.first("epochs")).names(),
		"lost ranges":     members(t, get(h, "GET", "/v1/lost").Body.Bytes()).names(),
		"readiness":       ready.names(),
		"cause":           members(t, ready.first("causes")).names(),
	} {
		if line := "//\t" + name + ": " + names + "\n"; !strings.Contains(string(doc), line) {
			t.Errorf("not in the documentation: %s", line)
		}
	}
}

// object is a JSON object with its order of members.
type object struct {
	t     *testing.T
	order []string
	found map[string]json.RawMessage
}

func members(t *testing.T, text []byte) *object {
	t.Helper()
	o := &object{t: t, found: map[string]json.RawMessage{}}
	d := json.NewDecoder(bytes.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		t.Fatalf("%.100q is no object: %v", text, err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		o.order = append(o.order, name.(string))
		o.found[name.(string)] = v
	}
	return o
}

func (o *object) names() string { return strings.Join(o.order, " ") }

func (o *object) value(name string) []byte { return o.found[name] }

func (o *object) first(name string) []byte {
	o.t.Helper()
	var list []json.RawMessage
	if err := json.Unmarshal(o.found[name], &list); err != nil || len(list) == 0 {
		o.t.Fatalf("%s has %d entries, %v", name, len(list), err)
	}
	return list[0]
}
