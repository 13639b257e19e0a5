package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// readAPI fetches the description as a client does.
func readAPI(t *testing.T, h http.Handler) map[string]any {
	t.Helper()
	w := get(h, "GET", "/openapi.json")
	var doc map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %v", w.Code, err)
	}
	return doc
}

func at(t *testing.T, v any, path ...string) any {
	t.Helper()
	for _, name := range path {
		m, ok := v.(map[string]any)
		if !ok || m[name] == nil {
			t.Fatalf("no %s in %s", name, strings.Join(path, " › "))
		}
		v = m[name]
	}
	return v
}

func TestDescriptionNamesEveryRouteAndParameter(t *testing.T) {
	t.Parallel()
	h, _ := vectorHandler(t)
	paths := at(t, readAPI(t, h), "paths").(map[string]any)
	var described []string
	for _, r := range routes() {
		if r.name == otherRoute {
			continue
		}
		path := strings.TrimSuffix(r.pattern, "{$}")
		described = append(described, path)
		op := at(t, paths, path, "get").(map[string]any)
		if op["summary"] == "" {
			t.Errorf("%s has no summary: add %q to operations", path, r.name)
		}
		var in []string
		list, _ := op["parameters"].([]any)
		for _, p := range list {
			name := at(t, p, "name").(string)
			in = append(in, at(t, p, "in").(string)+" "+name)
			if at(t, p, "description") == "" {
				t.Errorf("%s: parameter %s is not described", path, name)
			}
		}
		var want []string
		for _, m := range regexp.MustCompile(`\{([^}]+)\}`).FindAllStringSubmatch(path, -1) {
			want = append(want, "path "+m[1])
		}
		for _, name := range r.query {
			want = append(want, "query "+name)
		}
		if !slices.Equal(in, want) {
			t.Errorf("%s: parameters %v, want %v", path, in, want)
		}
		askEachParameter(t, h, path, r.query)
	}
	if got := slices.Sorted(maps.Keys(paths)); !slices.Equal(got, slices.Sorted(slices.Values(described))) {
		t.Errorf("described %v\nserved %v", got, described)
	}
}

// askEachParameter asks the handler itself: what is described is understood, and
// what is not described is refused.
func askEachParameter(t *testing.T, h http.Handler, path string, query []string) {
	t.Helper()
	real := strings.NewReplacer("{tenant}", "_", "{prompt_hash}", vectorHash, "{session}", vectorSession, "{run_id}", vectorRun,
		"{head}", vectorHead, "{chain}", "c1").Replace(path)
	for _, name := range append([]string{"no_such_parameter"}, query...) {
		w := get(h, "GET", real+"?"+name+"=%21%21")
		unknown := strings.Contains(w.Body.String(), "unknown query parameter")
		if unknown == slices.Contains(query, name) {
			t.Errorf("%s?%s: answered %d %s", real, name, w.Code, w.Body)
		}
	}
}

// TestAnswersAreAsDescribed asks a full server for everything and holds each
// answer to the description.
func TestAnswersAreAsDescribed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := newHandler(t, Config{Store: w.store, Sidecars: w.sidecars})
	doc := readAPI(t, h)
	seen := map[string]int{}
	ask := func(pattern, path string) {
		t.Helper()
		seen[pattern]++
		a := get(h, "GET", path)
		content := at(t, doc, "paths", pattern, "get", "responses", strconv.Itoa(a.Code), "content").(map[string]any)
		media, _, _ := strings.Cut(a.Header().Get("Content-Type"), ";")
		for described, body := range content {
			if kind, _, _ := strings.Cut(described, ";"); kind != media {
				t.Errorf("%s answers %d with %s, described is %s", path, a.Code, media, described)
				continue
			}
			if !strings.HasSuffix(media, "json") {
				continue
			}
			var v any
			if err := json.Unmarshal(a.Body.Bytes(), &v); err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			for _, why := range conforms(doc, at(t, body, "schema"), v, "$") {
				t.Errorf("%s: %d: %s", path, a.Code, why)
			}
		}
	}
	for _, c := range w.chains {
		for _, below := range []string{"", "/evidence", "/bundle", "/addenda", "/segments", "/attempts"} {
			if _, served := doc["paths"].(map[string]any)[chainPath+below]; served {
				ask(chainPath+below, c.url()+below)
			}
		}
		for _, run := range c.RunIDs {
			session := "/execute/" + c.PromptHash + "/" + c.Session
			if c.Tenant == "_" || c.Tenant == "" {
				ask(sessionPath+"/artifacts/{run_id}/evidence", session+"/artifacts/"+run+"/evidence")
			} else {
				ask(tenantPath+sessionPath+"/artifacts/{run_id}/evidence", "/tenants/"+c.Tenant+session+"/artifacts/"+run+"/evidence")
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(doc["paths"].(map[string]any))) {
		if !strings.Contains(path, "{") {
			ask(path, path)
		}
	}
	for _, list := range []string{"/v1/chains", "/v1/runs", "/v1/rejected"} {
		ask(list, list+"?limit=200")
		ask(list, list+"?limit=0")
		ask(list, list+"?tenant=acme")
	}
	ask(chainPath, "/v1/chains/_/"+vectorHash+"/"+vectorSession+"/none")
	ask("/v1/chains", "/v1/chains?limit=%zz")
	if len(seen) < 15 {
		t.Errorf("only %d routes were asked", len(seen))
	}
}

// conforms lists what contradicts a schema, for the keywords that the
// description uses. Members that are not described are contradictions, too.
func conforms(doc map[string]any, s, v any, where string) []string {
	schema := s.(map[string]any)
	if ref, ok := schema["$ref"].(string); ok {
		name := strings.TrimPrefix(ref, "#/components/schemas/")
		return conforms(doc, doc["components"].(map[string]any)["schemas"].(map[string]any)[name], v, where)
	}
	if any, ok := schema["anyOf"].([]any); ok {
		for _, one := range any {
			if len(conforms(doc, one, v, where)) == 0 {
				return nil
			}
		}
		return conforms(doc, any[0], v, where)
	}
	if enum, ok := schema["enum"].([]any); ok && !slices.Contains(enum, v) {
		return []string{fmt.Sprintf("%s: %v is none of %v", where, v, enum)}
	}
	switch v := v.(type) {
	case map[string]any:
		return conformMembers(doc, schema, v, where)
	case []any:
		wrong := mismatch(schema, "array", where)
		for i, item := range v {
			wrong = append(wrong, conforms(doc, schema["items"], item, where+"["+strconv.Itoa(i)+"]")...)
		}
		return wrong
	case string:
		return mismatch(schema, "string", where)
	case bool:
		return mismatch(schema, "boolean", where)
	case nil:
		return mismatch(schema, "null", where)
	case float64:
		if v == float64(int64(v)) && schema["type"] == "integer" {
			return nil
		}
		return mismatch(schema, "number", where)
	}
	return []string{where + ": unknown value"}
}

func conformMembers(doc, schema, v map[string]any, where string) []string {
	wrong := mismatch(schema, "object", where)
	properties, described := schema["properties"].(map[string]any)
	if !described {
		return wrong // of another format
	}
	for name, value := range v {
		one, ok := properties[name]
		if !ok {
			wrong = append(wrong, where+": "+name+" is not described")
			continue
		}
		wrong = append(wrong, conforms(doc, one, value, where+"."+name)...)
	}
	for _, name := range schema["required"].([]any) {
		if _, ok := v[name.(string)]; !ok {
			wrong = append(wrong, fmt.Sprintf("%s: %s is missing", where, name))
		}
	}
	return wrong
}

func mismatch(schema map[string]any, is, where string) []string {
	if schema["type"] != is {
		return []string{fmt.Sprintf("%s: %s, described is %v", where, is, schema["type"])}
	}
	return nil
}
