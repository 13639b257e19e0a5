package server

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// listed fetches all pages of a list of chains.
func listedChains(t *testing.T, h http.Handler, query url.Values) []chainDocument {
	t.Helper()
	var all []chainDocument
	for {
		w := get(h, "GET", "/v1/chains?"+query.Encode())
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", query.Encode(), w.Code, w.Body)
		}
		var page chainPage
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Chains...)
		if page.Next == nil {
			return all
		}
		query.Set("after", *page.Next)
	}
}

// TestFiltersSelectWhatTheySay compares each filter with the same choice made
// from the whole list.
func TestFiltersSelectWhatTheySay(t *testing.T) {
	t.Parallel()
	h := newHandler(t, Config{Store: newWorld(t).store, Sidecars: loadTree(t, "two-run").sidecars()})
	all := listedChains(t, h, url.Values{"limit": {"200"}})
	middle := slices.SortedFunc(slices.Values(all), func(a, b chainDocument) int { return int(a.LastAtMS) - int(b.LastAtMS) })[len(all)/2].LastAtMS
	moment := time.UnixMilli(int64(middle)).UTC().Format(time.RFC3339Nano)
	withRun := all[slices.IndexFunc(all, func(c chainDocument) bool { return len(c.RunIDs) > 0 })]
	withTrace := all[slices.IndexFunc(all, func(c chainDocument) bool { return c.Anchors.TraceID != nil })]
	trace := *withTrace.Anchors.TraceID
	hasTrace := func(c chainDocument) bool { return c.Anchors.TraceID != nil && *c.Anchors.TraceID == trace }
	hasRun := func(prefix string) func(chainDocument) bool {
		return func(c chainDocument) bool {
			return slices.ContainsFunc(c.RunIDs, func(id string) bool { return strings.HasPrefix(id, prefix) })
		}
	}
	for _, c := range []struct {
		name, value string
		want        func(chainDocument) bool
	}{
		{"tenant", "_", func(c chainDocument) bool { return c.Tenant == "" }},
		{"session", withRun.Session, func(c chainDocument) bool { return c.Session == withRun.Session }},
		{"prompt_hash", withRun.PromptHash, func(c chainDocument) bool { return c.PromptHash == withRun.PromptHash }},
		{"chain", withRun.Chain, func(c chainDocument) bool { return c.Chain == withRun.Chain }},
		{"outcome", "failed", func(c chainDocument) bool { return c.Outcome == "failed" }},
		{"conformity", "unplanned", func(c chainDocument) bool { return c.Conformity == "unplanned" }},
		{"run_id", withRun.RunIDs[0], hasRun(withRun.RunIDs[0])},
		{"run_id", withRun.RunIDs[0][:5], hasRun(withRun.RunIDs[0][:5])},
		{"trace_id", trace, hasTrace},
		{"trace_id", strings.ReplaceAll(strings.ToUpper(trace), "-", ""), hasTrace},
		{"since", moment, func(c chainDocument) bool { return c.LastAtMS >= middle }},
		{"since", strconv.FormatUint(middle, 10), func(c chainDocument) bool { return c.LastAtMS >= middle }},
		{"until", moment, func(c chainDocument) bool { return c.LastAtMS < middle }},
	} {
		var want []chainDocument
		for _, chain := range all {
			if c.want(chain) {
				want = append(want, chain)
			}
		}
		got := listedChains(t, h, url.Values{c.name: {c.value}, "limit": {"3"}})
		if len(want) == 0 || len(want) == len(all) {
			t.Errorf("%s=%s: %d of %d chains show nothing about the filter", c.name, c.value, len(want), len(all))
		}
		if !slices.EqualFunc(got, want, func(a, b chainDocument) bool { return a.URL == b.URL }) {
			t.Errorf("%s=%s: %d chains, want %d", c.name, c.value, len(got), len(want))
		}
	}
	for _, bad := range []string{"run_id=pr", "run_id=prxyz", "run_id=" + strings.Repeat("a", 66), "trace_id=1234", "since=yesterday", "until=-1", "since=1e3"} {
		wantProblem(t, get(h, "GET", "/v1/chains?"+bad), http.StatusBadRequest, typeInvalidQuery)
	}
}

// TestRunsByPrefix asks for runs by the beginning of a run id.
func TestRunsByPrefix(t *testing.T) {
	t.Parallel()
	h := newHandler(t, Config{Store: newWorld(t).store, Sidecars: loadTree(t, "two-run").sidecars()})
	runs := func(query string) []runDocument {
		w := get(h, "GET", "/v1/runs?limit=200"+query)
		var page runPage
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s: %d %v", query, w.Code, err)
		}
		return page.Runs
	}
	all := runs("")
	for _, digits := range []int{1, 2, 8, 64} {
		prefix := all[len(all)-1].RunID[:2+digits]
		n := 0
		for _, r := range all {
			if strings.HasPrefix(r.RunID, prefix) {
				n++
			}
		}
		if got := runs("&run_id=" + prefix); n == 0 || len(got) != n {
			t.Errorf("%s: %d runs, want %d", prefix, len(got), n)
		}
	}
}
