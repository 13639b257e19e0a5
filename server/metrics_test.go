package server

import (
	"bufio"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chaind/chaind/events"
)

func testNow() time.Time { return time.Unix(1767225600, 0) }

// scrape reads all samples of the text exposition.
func scrape(t *testing.T, m *Metrics) map[string]float64 {
	t.Helper()
	w := httptest.NewRecorder()
	m.handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	samples := map[string]float64{}
	for lines := bufio.NewScanner(w.Body); lines.Scan(); {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			t.Fatal(err)
		}
		samples[line[:at]] = v
	}
	return samples
}

func metricValue(t *testing.T, m *Metrics, series string) float64 {
	t.Helper()
	v, ok := scrape(t, m)[series]
	if !ok {
		t.Fatalf("series %s does not exist", series)
	}
	return v
}

// TestH14_MetricsExistFromTheStart looks for every series that an alert may
// want before anything has happened.
func TestH14_MetricsExistFromTheStart(t *testing.T) {
	t.Parallel()
	m := NewMetrics("v1", nil)
	samples := scrape(t, m)
	want := []string{
		"chaind_batches_total", "chaind_batch_events_count", "chaind_commit_seconds_count", "chaind_http_in_flight",
		"chaind_http_panics_total", "chaind_intake_connected", "chaind_intake_applied_sequence", "chaind_intake_lag_messages", "chaind_intake_lag_seconds",
		`chaind_seal_jobs{state="pending"}`, `chaind_seal_jobs{state="failed"}`, "chaind_rejections_unpublished",
		"chaind_lost_ranges", "chaind_lost_messages", "chaind_stream_epochs", "chaind_store_bytes",
		`chaind_verdict_lookups_total{outcome="hit"}`, `chaind_verdict_lookups_total{outcome="miss"}`,
		`chaind_key_state{state="ready"}`, `chaind_key_state{state="stale"}`,
	}
	for _, v := range []string{"appended", "attempt", "finished", "duplicate", "late"} {
		want = append(want, `chaind_events_total{class="",verdict="`+v+`"}`)
	}
	for _, c := range []string{"bad_subject", "too_large", "malformed", "too_deep", "duplicate_name", "bad_id", "unsafe_integer", "unknown_member",
		"conflict", "scope_contradiction", "digest_mismatch", "topo_mismatch", "run_id_mismatch"} {
		want = append(want, `chaind_events_total{class="`+c+`",verdict="rejected"}`)
	}
	for _, c := range []string{"heads", "unplanned", "nonconforming", "empty"} {
		want = append(want, `chaind_seals_total{class="`+c+`"}`)
	}
	for _, r := range []string{"passed", "refused", "undecodable", "missing", "unavailable"} {
		want = append(want, `chaind_verifications_total{result="`+r+`"}`)
	}
	for _, c := range CauseNames() {
		want = append(want, `chaind_not_ready{cause="`+c+`"}`)
	}
	for _, s := range Weaknesses() {
		want = append(want, `chaind_stream_weakness{setting="`+s+`"}`)
	}
	for _, route := range routeNames() {
		for _, code := range []string{"2xx", "3xx", "4xx", "5xx"} {
			want = append(want, `chaind_http_requests_total{route="`+route+`",code="`+code+`"}`)
		}
	}
	for _, series := range want {
		series = sortLabels(series)
		if v, ok := samples[series]; !ok || v != 0 {
			t.Errorf("series %s: exists %v, value %v", series, ok, v)
		}
	}
	for _, series := range []string{`chaind_build_info{version="v1"}`, "chaind_ready", `chaind_key_state{state="none"}`} {
		if samples[series] != 1 {
			t.Errorf("series %s is %v, want 1", series, samples[series])
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(samples)), func(s string) bool { return strings.HasPrefix(s, "go_") }) {
		t.Error("no series of the runtime")
	}
}

// sortLabels writes labels in the order of the exposition.
func sortLabels(series string) string {
	name, rest, found := strings.Cut(series, "{")
	if !found {
		return series
	}
	labels := strings.Split(strings.TrimSuffix(rest, "}"), ",")
	slices.Sort(labels)
	return name + "{" + strings.Join(labels, ",") + "}"
}

func TestMetricsCount(t *testing.T) {
	t.Parallel()
	m := NewMetrics("v1", func() Snapshot {
		return Snapshot{IntakeConnected: true, AppliedSequence: 41, LagMessages: 7, LagSeconds: 1.5, SealsPending: 3, SealsFailed: 2, RejectionsWaiting: 5,
			LostRanges: 1, LostMessages: 9, StreamEpochs: 2, StreamWeaknesses: []string{"discard_old", "new_one"}, Key: KeyStale,
			StoreBytes: 4096, Causes: []Cause{{CauseDisk, "d"}, {"own_cause", "d"}}}
	})
	m.Committed([]events.Effect{
		{Verdict: events.Appended}, {Verdict: events.Appended}, {Verdict: events.Finished}, {Verdict: events.Duplicate},
		{Verdict: events.Rejected, Fault: &events.Fault{Class: events.Conflict}},
	}, 3*time.Millisecond)
	m.Sealed("")
	m.Sealed("heads")
	samples := scrape(t, m)
	for series, want := range map[string]float64{
		`chaind_events_total{class="",verdict="appended"}`:         2,
		`chaind_events_total{class="",verdict="finished"}`:         1,
		`chaind_events_total{class="",verdict="duplicate"}`:        1,
		`chaind_events_total{class="conflict",verdict="rejected"}`: 1,
		"chaind_batches_total":                                     1,
		"chaind_batch_events_sum":                                  5,
		"chaind_commit_seconds_sum":                                0.003,
		`chaind_seals_total{class="empty"}`:                        1,
		`chaind_seals_total{class="heads"}`:                        1,
		"chaind_intake_connected":                                  1,
		"chaind_intake_applied_sequence":                           41,
		"chaind_intake_lag_messages":                               7,
		"chaind_intake_lag_seconds":                                1.5,
		`chaind_seal_jobs{state="pending"}`:                        3,
		`chaind_seal_jobs{state="failed"}`:                         2,
		"chaind_rejections_unpublished":                            5,
		"chaind_lost_ranges":                                       1,
		"chaind_lost_messages":                                     9,
		"chaind_stream_epochs":                                     2,
		`chaind_stream_weakness{setting="discard_old"}`:            1,
		`chaind_stream_weakness{setting="new_one"}`:                1,
		`chaind_stream_weakness{setting="max_age"}`:                0,
		`chaind_key_state{state="stale"}`:                          1,
		`chaind_key_state{state="none"}`:                           0,
		"chaind_store_bytes":                                       4096,
		"chaind_ready":                                             0,
		`chaind_not_ready{cause="disk_nearly_full"}`:               1,
		`chaind_not_ready{cause="own_cause"}`:                      1,
		`chaind_not_ready{cause="lag"}`:                            0,
	} {
		if got, ok := samples[series]; !ok || got != want {
			t.Errorf("%s = %v (exists %v), want %v", series, got, ok, want)
		}
	}
}

func TestRequestsAreCountedByRoute(t *testing.T) {
	t.Parallel()
	b := loadTree(t, "two-run")
	m := NewMetrics("test", nil)
	h := newHandler(t, Config{Sidecars: b.sidecars(), Metrics: m})
	get(h, "GET", runURL)
	get(h, "GET", runURL, "If-None-Match", "*")
	get(h, "GET", "/nope")
	get(h, "POST", runURL)
	b.put(headFile, []byte("{}"))
	get(h, "GET", runURL)
	samples := scrape(t, m)
	for series, want := range map[string]float64{
		`chaind_http_requests_total{code="2xx",route="run_evidence"}`: 1,
		`chaind_http_requests_total{code="3xx",route="run_evidence"}`: 1,
		`chaind_http_requests_total{code="5xx",route="run_evidence"}`: 1,
		`chaind_http_requests_total{code="4xx",route="other"}`:        2,
		`chaind_verifications_total{result="passed"}`:                 2,
		`chaind_verifications_total{result="undecodable"}`:            1,
		`chaind_verdict_lookups_total{outcome="hit"}`:                 1,
		`chaind_verdict_lookups_total{outcome="miss"}`:                2,
		"chaind_http_in_flight":                                       0,
		`chaind_http_request_seconds_count{route="run_evidence"}`:     3,
	} {
		if got := samples[series]; got != want {
			t.Errorf("%s = %v, want %v", series, got, want)
		}
	}
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	b := loadTree(t, "two-run")
	causes := []Cause{{CauseDisconnected, "no connection to the broker for 12s"}, {CauseStoreReadOnly, "the file system is read-only"}}
	for _, c := range []struct {
		name   string
		ready  func() []Cause
		status int
		body   string
	}{
		{"no check", nil, 200, `{"ready":true,"causes":[]}`},
		{"ready", func() []Cause { return nil }, 200, `{"ready":true,"causes":[]}`},
		{"two causes", func() []Cause { return causes }, 503, `{"ready":false,"causes":[{"cause":"intake_disconnected","detail":"no connection to the broker for 12s"},` +
			`{"cause":"store_read_only","detail":"the file system is read-only"}]}`},
		{"check panics", func() []Cause { panic("readiness") }, 503, `{"ready":false,"causes":[{"cause":"check_panicked","detail":"the readiness check itself failed; the log says why"}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHandler(t, Config{Sidecars: b.sidecars(), Ready: c.ready})
			w := get(h, "GET", "/readyz")
			if w.Code != c.status || w.Body.String() != c.body {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if w := get(h, "GET", "/healthz"); w.Code != 200 || w.Body.String() != `{"status":"ok"}` {
				t.Errorf("health: %d %s", w.Code, w.Body)
			}
		})
	}
}

// TestSeriesAreAsDocumented compares the names in the documentation of Metrics
// with the names that a scrape finds, in both directions.
func TestSeriesAreAsDocumented(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("metrics.go")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for line := range strings.Lines(string(source)) {
		if text, isDoc := strings.CutPrefix(line, "//\t"); isDoc {
			for _, name := range regexp.MustCompile(`chaind_[a-z_]+`).FindAllString(text, -1) {
				documented[name] = true
			}
		}
	}
	found := map[string]bool{}
	for series := range scrape(t, NewMetrics("v1", nil)) {
		name, _, _ := strings.Cut(series, "{")
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base := strings.TrimSuffix(name, suffix); documented[base] {
				name = base
			}
		}
		if strings.HasPrefix(name, "chaind_") {
			found[name] = true
		}
	}
	if len(found) < 20 {
		t.Fatalf("only %d series", len(found))
	}
	if diff := cmp.Diff(documented, found); diff != "" {
		t.Errorf("series (-documented +found):\n%s", diff)
	}
}
