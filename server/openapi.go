package server

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// openAPIVersion is the version of the OpenAPI specification that the
// description follows.
const openAPIVersion = "3.1.0"

// operation is what the description says about a route beyond the table of
// routes.
type operation struct {
	summary  string
	answer   any    // a value of the document's type; nil: not JSON of ours
	media    string // "" is JSON
	problems []int  // statuses of problem documents that are the route's own
}

// operations describes the routes by name.
func operations() map[string]operation {
	const (
		text  = "text/plain; version=0.0.4"
		page  = "text/html; charset=utf-8"
		chain = http.StatusNotFound
	)
	evidence := []int{http.StatusNotFound, http.StatusPreconditionFailed, http.StatusRequestedRangeNotSatisfiable, http.StatusUnprocessableEntity}
	return map[string]operation{
		"run_evidence":  {"Evidence bundle of a run, verified for this answer (docs/evidence-format.md).", evidenceBundle{}, "", evidence},
		"head_evidence": {"Evidence bundle by the head of its chain.", evidenceBundle{}, "", evidence},
		"run_bundle": {"Trust bundle of a run, verified for this answer (docs/trust-bundles.md): of several chains the last conforming one; Link names the others.",
			evidenceBundle{}, bundleMediaType, append([]int{http.StatusConflict}, evidence...)},
		"chain_bundle": {"Trust bundle of a chain: the sealed one or, while the chain is open, an unsigned one as of its last event.",
			evidenceBundle{}, bundleMediaType, append([]int{http.StatusConflict}, evidence...)},
		"chains":         {"Chains, by tenant, prompt hash, session and name, in pages.", chainPage{}, "", nil},
		"chain":          {"One chain with everything that is known about it.", chainDetail{}, "", []int{chain}},
		"chain_evidence": {"Evidence bundle of a chain, of any class.", evidenceBundle{}, "", append([]int{http.StatusConflict}, evidence...)},
		"addenda":        {"Well-formed events that came after the end of the chain.", addendumPage{}, "", []int{chain}},
		"segments":       {"Segments of a chain, open or ended.", segmentPage{}, "", []int{chain}},
		"attempts":       {"Begins and failures of a chain's steps.", attemptPage{}, "", []int{chain}},
		"runs":           {"Pairs of run id and chain, in pages. A run id is not an identity: many chains may carry it.", runPage{}, "", nil},
		"rejected":       {"Rejected events, oldest first, without their payloads. Those of one chain: tenant, prompt_hash, session and chain together, none of the last three alone.", rejectionPage{}, "", nil},
		"epochs":         {"Histories of the stream; callers that are bound to tenants get 404.", epochPage{}, "", []int{http.StatusNotFound}},
		"lost":           {"Ranges of stream sequences that never came; callers that are bound to tenants get 404.", lostPage{}, "", []int{http.StatusNotFound}},
		"keys":           {"Public keys: what is signed with, and who is trusted. Comments are for callers that may read all.", keysDocument{}, "", nil},
		"console":        {"Pages for people.", nil, page, nil},
		"verify":         {"A page that verifies a file in the browser; nothing is uploaded.", nil, page, nil},
		"engine":         {"The verifier for that page (WebAssembly, compressed).", nil, "application/gzip", nil},
		"openapi":        {"This description.", map[string]any{}, "", nil},
		"healthz":        {"The process answers.", map[string]string{}, "", nil},
		"readyz":         {"Whether the daemon does its work; 503 names why not. With a token file, details are for tokens of all tenants.", readiness{}, "", nil},
		"metrics":        {"Metrics for Prometheus; callers that are bound to tenants get 404.", nil, text, []int{http.StatusNotFound}},
	}
}

// evidenceBundle stands for a document that is not described here.
type evidenceBundle struct{}

// everywhere are the problems that any route may answer with.
var everywhere = []int{
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong,
	http.StatusMisdirectedRequest, http.StatusRequestHeaderFieldsTooLarge, http.StatusInternalServerError, http.StatusServiceUnavailable,
}

// tree is a JSON object of the description; its members are written sorted.
type tree = map[string]any

// parameters describes every path and query parameter by name.
func parameters() map[string]tree {
	hex := func(n int, text string) tree {
		return tree{"description": text, "schema": tree{"type": "string", "pattern": "^[0-9A-Fa-f]{" + strconv.Itoa(n) + "}$"}}
	}
	token := func(text string) tree {
		return tree{"description": text, "schema": tree{"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}}
	}
	oneOf := func(text string, words []string) tree {
		return tree{"description": text, "schema": tree{"type": "string", "enum": words}}
	}
	plain := func(text string) tree { return tree{"description": text, "schema": tree{"type": "string"}} }
	return map[string]tree{
		"tenant":      token("Tenant; _ is the empty one."),
		"prompt_hash": hex(64, "Prompt hash."),
		"session":     hex(32, "Session."),
		"chain":       token("Name of the chain."),
		"head":        hex(64, "Digest of the chain's last segment."),
		"sha256":      hex(64, "The bytes sent must have this digest; the answer is then immutable."),
		"run_id": {"description": "Run id; in a list, a run id or the beginning of one.",
			"schema": tree{"type": "string", "pattern": "^pr[0-9A-Fa-f]{1,64}$"}},
		"trace_id": {"description": "Trace id of the anchors: 32 hex digits, with or without the hyphens of a UUID.",
			"schema": tree{"type": "string", "pattern": "^[0-9A-Fa-f-]{32,36}$"}},
		"outcome":    oneOf("How the run ended.", outcomeNames()),
		"conformity": oneOf("How the chain stands to its plan.", conformityNames()),
		"class":      oneOf("Why the event was rejected.", classNames()),
		"since":      plain("Last event at or after this: RFC 3339, or Unix milliseconds."),
		"until":      plain("Last event before this: RFC 3339, or Unix milliseconds."),
		"after":      plain("The next of the page before."),
		"from":       {"description": "Position of the first one wanted, instead of after.", "schema": tree{"type": "integer", "minimum": 0}},
		"limit":      limitParameter(maxPage),
	}
}

func limitParameter(most int) tree {
	return tree{"description": "Entries of a page: 1 to " + strconv.Itoa(maxPage) + ", of segments and attempts up to " + strconv.Itoa(maxTimelinePage) + ".",
		"schema": tree{"type": "integer", "minimum": 1, "maximum": most, "default": defaultPage}}
}

// queryParameter describes a parameter as the route takes it.
func queryParameter(r *route, name string, known map[string]tree) tree {
	if name == "limit" && slices.Contains(r.query, "from") { // a timeline
		return limitParameter(maxTimelinePage)
	}
	return known[name]
}

var pathParameter = regexp.MustCompile(`\{([a-z_]+)\}`)

// describeAPI builds the description from the table of routes.
func describeAPI() tree {
	schemas := schemaSet{}
	paths, known, said := tree{}, parameters(), operations()
	for _, r := range routes() {
		if r.name == otherRoute {
			continue
		}
		var list []any
		for _, m := range pathParameter.FindAllStringSubmatch(r.pattern, -1) {
			list = append(list, parameter(m[1], "path", known[m[1]]))
		}
		for _, name := range r.query {
			list = append(list, parameter(name, "query", queryParameter(&r, name, known)))
		}
		op := said[r.name]
		get := tree{"operationId": operationID(&r), "summary": op.summary, "responses": responses(&r, op, schemas)}
		if list != nil {
			get["parameters"] = list
		}
		if r.open {
			get["security"] = []any{}
		}
		paths[strings.TrimSuffix(r.pattern, "{$}")] = tree{"get": get}
	}
	return tree{
		"openapi": openAPIVersion,
		"info": tree{"title": "chaind", "version": "1", "description": "The read side of chaind. HEAD is answered wherever GET is. Nothing is ever written. " +
			"Members of documents are always there; later versions may add some at the end."},
		"paths":    paths,
		"security": []any{tree{"bearer": []any{}}},
		"components": tree{
			"schemas":         schemas,
			"securitySchemes": tree{"bearer": tree{"type": "http", "scheme": "bearer", "description": "Where the daemon has a token file."}},
		},
	}
}

// operationID is unique although two patterns may lead to one handler.
func operationID(r *route) string {
	if strings.HasPrefix(r.pattern, tenantPath) {
		return "tenant_" + r.name
	}
	return r.name
}

func parameter(name, in string, about tree) tree {
	p := tree{"name": name, "in": in, "required": in == "path"}
	for k, v := range about {
		p[k] = v
	}
	return p
}

func responses(r *route, op operation, schemas schemaSet) tree {
	answer := tree{"schema": tree{"type": "string"}}
	media := op.media
	if media == "" {
		media = jsonMediaType
	}
	if op.answer != nil {
		answer = tree{"schema": schemas.of(op.answer)}
	}
	all := tree{"200": tree{"description": op.summary, "content": tree{media: answer}}}
	problems := tree{"description": "Problem document (RFC 9457).",
		"content": tree{"application/problem+json": tree{"schema": schemas.of(problem{})}}}
	for _, status := range append(everywhere, op.problems...) {
		all[strconv.Itoa(status)] = problems
	}
	if r.name == "readyz" {
		all["503"] = tree{"description": "Not ready, and why.", "content": tree{media: answer}}
	}
	return all
}

// openAPI serves the description, which is the same for everybody.
func (s *server) openAPI(w http.ResponseWriter, r *http.Request, _ access) error {
	body, err := json.Marshal(describeAPI())
	if err != nil {
		return err
	}
	newContent(jsonMediaType, body).serve(w, r)
	return nil
}
