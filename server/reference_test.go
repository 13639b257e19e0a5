package server

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

var update = flag.Bool("update", false, "write the reference pages anew")

// current compares a page with what the code says, or writes it.
func current(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the code says; go test ./server -run Reference -update writes it anew", path)
	}
}

const generated = "<!-- Made from the code by `go test ./server -run Reference -update`; do not edit. -->\n\n"

// TestReferenceOfMetrics holds docs/reference/metrics.md to what a scrape
// shows: every metric in one is in the other.
func TestReferenceOfMetrics(t *testing.T) {
	t.Parallel()
	families, err := NewMetrics("v1", nil).registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	page.WriteString(generated + `# Metrics

` + "`/metrics`" + ` in the text format of Prometheus. All series below are there with zero from the start, so that an alert on one can
fire. Besides them there are the usual ` + "`go_…` and `process_…`" + ` ones. With tokens, only a token of all tenants reads them.
Alert rules: [` + "`configs/alerts.yaml`" + `](../../configs/alerts.yaml); what to do about each: [alerts.md](../alerts.md).

| metric | type | labels | meaning |
| --- | --- | --- | --- |
`)
	n := 0
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "chaind_") {
			continue
		}
		n++
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n", f.GetName(), strings.ToLower(f.GetType().String()), labels(f), f.GetHelp())
	}
	if n < 25 {
		t.Errorf("only %d metrics", n)
	}
	current(t, "../docs/reference/metrics.md", page.String())
}

func labels(f *dto.MetricFamily) string {
	values := map[string][]string{}
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			if v := l.GetValue(); l.GetName() != "version" && !slices.Contains(values[l.GetName()], v) {
				values[l.GetName()] = append(values[l.GetName()], v)
			} else if l.GetName() == "version" {
				values["version"] = nil
			}
		}
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		text := "`" + name + "`"
		words := slices.DeleteFunc(slices.Sorted(slices.Values(values[name])), func(v string) bool { return v == "" })
		if len(words) > 0 {
			text += ": " + strings.Join(words, ", ")
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// TestReferenceOfHTTP makes docs/reference/http.md from the description that
// the server gives of itself.
func TestReferenceOfHTTP(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	page.WriteString(generated + `# HTTP

Read-only: GET and HEAD. ` + "`/openapi.json`" + ` is this page for programs, with the shape of every answer. Members of a document are always
there; later versions may add some at the end. Lists come in pages: ` + "`next`" + ` of one is ` + "`after`" + ` of the following, and null on the
last. An unknown or repeated query parameter is refused. In paths and filters the tenant ` + "`_`" + ` is the empty one.

Every error is a problem document (RFC 9457, ` + "`application/problem+json`" + `) with ` + "`type`, `status`, `title`, `detail`" + `. Any route may answer
400 (path or query), 405, 413 (a body was sent), 414, 421 (asked by an unknown name), 431 (more than 16 KiB of headers), 500 and 503; with a token file
also 401. Only what cannot be read as a request at all is answered in plain text, by the HTTP library: 400 (malformed, without ` + "`Host`" + `, or plain HTTP on the
HTTPS port), 417 (` + "`Expect`" + `), 431 (beyond 64 KiB), 501 (` + "`Transfer-Encoding`" + `) and 505.
What a token may not read looks as if it did not exist: 404. Headers of evidence, caching and problem types: ` + "`go doc ./server`" + `.

| path | answer | of its own |
| --- | --- | --- |
`)
	said := operations()
	for _, r := range routes() {
		if r.name == otherRoute {
			continue
		}
		op := said[r.name]
		var own []string
		for _, status := range op.problems {
			own = append(own, fmt.Sprint(status))
		}
		if r.open {
			own = append(own, "no token needed")
		}
		path := strings.TrimSuffix(r.pattern, "{$}")
		if r.query != nil {
			path += "?" + strings.Join(r.query, "&")
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s |\n", path, op.summary, strings.Join(own, ", "))
	}
	page.WriteString("\n| parameter | meaning |\n| --- | --- |\n")
	known := parameters()
	for _, name := range slices.Sorted(maps.Keys(known)) {
		meaning := known[name]["description"].(string)
		if words, ok := known[name]["schema"].(tree)["enum"].([]string); ok {
			meaning += " One of " + strings.Join(words, ", ") + "."
		}
		fmt.Fprintf(&page, "| `%s` | %s |\n", name, meaning)
	}
	current(t, "../docs/reference/http.md", page.String())
}
