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

// allPages fetches a list; read takes one apart.
func allPages[D any](t *testing.T, h http.Handler, path string, query url.Values, read func(page []byte) (list []D, next *string, err error)) []D {
	t.Helper()
	var all []D
	for {
		w := get(h, "GET", path+"?"+query.Encode())
		list, next, err := read(w.Body.Bytes())
		if err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s: %d %v %s", query.Encode(), w.Code, err, w.Body)
		}
		all = append(all, list...)
		if next == nil {
			return all
		}
		query.Set("after", *next)
	}
}

func listedChains(t *testing.T, h http.Handler, query url.Values) []chainDocument {
	t.Helper()
	return allPages(t, h, "/v1/chains", query, func(text []byte) ([]chainDocument, *string, error) {
		var page chainPage
		err := json.Unmarshal(text, &page)
		return page.Chains, page.Next, err
	})
}

func listedRuns(t *testing.T, h http.Handler, query url.Values) []runDocument {
	t.Helper()
	return allPages(t, h, "/v1/runs", query, func(text []byte) ([]runDocument, *string, error) {
		var page runPage
		err := json.Unmarshal(text, &page)
		return page.Runs, page.Next, err
	})
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

// TestRunFiltersSelectByTheChain compares each filter of the list of runs, in
// pages of one, with the runs of those chains that the list of chains selects.
func TestRunFiltersSelectByTheChain(t *testing.T) {
	t.Parallel()
	h := newHandler(t, Config{Store: newWorld(t).store, Sidecars: loadTree(t, "two-run").sidecars()})
	all := listedRuns(t, h, url.Values{"limit": {"200"}})
	chains := map[string]chainDocument{}
	var times []uint64
	for _, c := range listedChains(t, h, url.Values{"limit": {"200"}}) {
		chains[c.URL] = c
		if len(c.RunIDs) > 0 {
			times = append(times, c.LastAtMS)
		}
	}
	slices.Sort(times)
	middle := strconv.FormatUint(times[len(times)/2], 10)
	one := chains[all[0].ChainURL]
	var trace string
	for _, r := range all {
		if id := chains[r.ChainURL].Anchors.TraceID; id != nil {
			trace = *id
		}
	}
	for _, c := range []struct {
		name, value string
		some        bool // of the runs, not all, not none
	}{
		{"tenant", "acme", true}, {"tenant", "_", true}, {"session", one.Session, true}, {"prompt_hash", one.PromptHash, true}, {"chain", one.Chain, true},
		{"outcome", "succeeded", true}, {"outcome", "failed", false}, {"outcome", "open", false},
		{"conformity", "conforming", true}, {"conformity", "nonconforming", false},
		{"run_id", all[0].RunID, true}, {"trace_id", trace, true}, {"since", middle, true}, {"until", middle, true},
	} {
		selected := map[string]bool{}
		for _, chain := range listedChains(t, h, url.Values{c.name: {c.value}, "limit": {"200"}}) {
			selected[chain.URL] = true
		}
		want := slices.DeleteFunc(slices.Clone(all), func(r runDocument) bool {
			return !selected[r.ChainURL] || c.name == "run_id" && r.RunID != c.value
		})
		got := listedRuns(t, h, url.Values{c.name: {c.value}, "limit": {"1"}})
		if c.some && (len(want) == 0 || len(want) == len(all)) {
			t.Errorf("%s=%s: %d of %d runs show nothing about the filter", c.name, c.value, len(want), len(all))
		}
		same := func(a, b runDocument) bool { return a.RunID == b.RunID && a.ChainURL == b.ChainURL }
		if !slices.EqualFunc(got, want, same) {
			t.Errorf("%s=%s: %d runs, want %d", c.name, c.value, len(got), len(want))
		}
	}
	for _, bad := range []string{"outcome=never", "conformity=x", "since=yesterday", "until=-1", "session=1", "trace_id=1234"} {
		wantProblem(t, get(h, "GET", "/v1/runs?"+bad), http.StatusBadRequest, typeInvalidQuery)
	}
}

// TestEveryListTakesItsDescribedLimit asks each list for as many entries as the
// description allows, and for one more.
func TestEveryListTakesItsDescribedLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := newHandler(t, Config{Store: w.store, Sidecars: w.sidecars})
	paths := at(t, readAPI(t, h), "paths").(map[string]any)
	lists := 0
	for _, r := range routes() {
		if !slices.Contains(r.query, "limit") {
			continue
		}
		lists++
		for _, p := range at(t, paths, r.pattern, "get", "parameters").([]any) {
			if at(t, p, "name") != "limit" {
				continue
			}
			path := strings.Replace(r.pattern, chainPath, w.chains[0].url(), 1)
			schema := at(t, p, "schema")
			least, most := int(at(t, schema, "minimum").(float64)), int(at(t, schema, "maximum").(float64))
			for n, want := range map[int]int{least: http.StatusOK, most: http.StatusOK, least - 1: http.StatusBadRequest, most + 1: http.StatusBadRequest} {
				if a := get(h, "GET", path+"?limit="+strconv.Itoa(n)); a.Code != want {
					t.Errorf("%s?limit=%d: %d, want %d", path, n, a.Code, want)
				}
			}
		}
	}
	if lists < 8 {
		t.Errorf("%d lists", lists)
	}
}
