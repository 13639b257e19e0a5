package server

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/chaind/chaind/store"
	"github.com/chaind/chaind/web"
)

// route is one line of the table of routes.
type route struct {
	name    string // label in metrics
	pattern string
	query   []string // parameters it knows
	open    bool     // no token needed
	handle  func(s *server, w http.ResponseWriter, r *http.Request, a access) error
}

const (
	sessionPath = "/execute/{prompt_hash}/{session}"
	tenantPath  = "/tenants/{tenant}"
	chainPath   = "/v1/chains/{tenant}/{prompt_hash}/{session}/{chain}"
	otherRoute  = "other"

	// statusGone is for metrics and logs only: the caller has gone, so that
	// nobody reads it, and it is no failure of ours.
	statusGone = 499
)

func routes() []route {
	return []route{
		{"run_evidence", sessionPath + "/artifacts/{run_id}/evidence", nil, false, (*server).runEvidence},
		{"run_evidence", tenantPath + sessionPath + "/artifacts/{run_id}/evidence", nil, false, (*server).runEvidence},
		{"head_evidence", sessionPath + "/evidence/heads/{head}", []string{"sha256"}, false, (*server).headEvidence},
		{"head_evidence", tenantPath + sessionPath + "/evidence/heads/{head}", []string{"sha256"}, false, (*server).headEvidence},
		{"run_bundle", sessionPath + "/artifacts/{run_id}/bundle", nil, false, (*server).runBundle},
		{"run_bundle", tenantPath + sessionPath + "/artifacts/{run_id}/bundle", nil, false, (*server).runBundle},
		{"chains", "/v1/chains", chainFilters(), false, (*server).chains},
		{"chain", chainPath, nil, false, (*server).chain},
		{"chain_evidence", chainPath + "/evidence", nil, false, (*server).chainEvidence},
		{"chain_bundle", chainPath + "/bundle", []string{"sha256"}, false, (*server).chainBundle},
		{"addenda", chainPath + "/addenda", []string{"after", "limit"}, false, (*server).addenda},
		{"segments", chainPath + "/segments", []string{"after", "from", "limit"}, false, (*server).segments},
		{"attempts", chainPath + "/attempts", []string{"after", "from", "limit"}, false, (*server).attempts},
		{"runs", "/v1/runs", chainFilters(), false, (*server).runs},
		{"rejected", "/v1/rejected", rejectedFilters(), false, (*server).rejected},
		{"epochs", "/v1/epochs", []string{"after", "limit"}, false, (*server).epochs},
		{"lost", "/v1/lost", []string{"after", "limit"}, false, (*server).lost},
		{"keys", "/v1/keys", nil, false, (*server).keyList},
		{"console", "/{$}", nil, true, (*server).console},
		{"verify", "/verify", nil, true, (*server).verifyPage},
		{"engine", web.EnginePath, nil, true, (*server).engine},
		{"openapi", "/openapi.json", nil, true, (*server).openAPI},
		{"healthz", "/healthz", nil, true, (*server).healthz},
		{"readyz", "/readyz", nil, true, (*server).readyz},
		{"metrics", "/metrics", nil, false, (*server).metrics},
		{otherRoute, "/", nil, true, func(*server, http.ResponseWriter, *http.Request, access) error { return notFound() }},
	}
}

func routeNames() []string {
	var names []string
	for _, r := range routes() {
		names = append(names, r.name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// handler builds the routed and guarded handler.
func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	names := map[string]string{}
	for _, r := range routes() {
		names[r.pattern] = r.name
		mux.HandleFunc(r.pattern, func(w http.ResponseWriter, req *http.Request) { s.answer(&r, w, req) })
	}
	return &guard{next: mux, logger: s.Logger, metrics: s.Metrics, now: s.Now, stall: writeStall, names: names, hosts: s.Hosts}
}

// answer does what all routes have in common: who asks, whether the query is
// understood, and how an error is told.
func (s *server) answer(rt *route, w http.ResponseWriter, r *http.Request) {
	a := access{all: true}
	var err error
	if !rt.open {
		a, err = s.authorize(r)
	}
	if err == nil && rt.name != otherRoute {
		err = checkQuery(r, rt.query)
	}
	if err == nil {
		err = rt.handle(s, w, r, a)
	}
	if err != nil {
		s.tell(w, r, err)
	}
}

// tell answers with the problem that an error stands for. Causes that are not
// the caller's go to the log only.
func (s *server) tell(w http.ResponseWriter, r *http.Request, err error) {
	p, ok := errors.AsType[*problem](err)
	switch {
	case ok:
	case errors.Is(err, errBusy):
		p = busy("too many verifications or large answers are under way; try again")
	case errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		p = &problem{typeUnavailable, statusGone, "Client Closed Request", "the request was given up"}
	case errors.Is(err, context.DeadlineExceeded):
		p = unavailable("the answer took too long")
	case errors.Is(err, store.ErrCursor):
		p = invalidQuery("after is not a cursor that this server gave")
	case errors.Is(err, store.ErrClosed):
		p = unavailable("the server is stopping")
	default:
		s.Logger.Error("answer request", "path", r.URL.Path, "err", err)
		p = internalError()
		if s.TellCauses {
			p = internalProblem(err.Error())
		}
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="chaind"`)
	}
	p.write(w)
}

// checkQuery refuses what a route would ignore: a misspelt filter must not
// look like an answered one.
func checkQuery(r *http.Request, known []string) error {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return invalidQuery("the query is not well-formed")
	}
	for name, given := range values {
		if !slices.Contains(known, name) {
			return invalidQuery("unknown query parameter; known here: " + listed(known))
		}
		if len(given) > 1 {
			return invalidQuery("query parameter " + name + " is given twice")
		}
	}
	return nil
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
