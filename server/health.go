package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
)

// healthz says that the process answers; nothing else.
func (s *server) healthz(w http.ResponseWriter, _ *http.Request, _ access) error {
	return writeStatus(w, http.StatusOK, map[string]string{"status": "ok"})
}

// readyz names everything that keeps the daemon from doing its work. Details may
// name chains and files: where readers show tokens, they are for those who may
// read all, and probes get the names.
func (s *server) readyz(w http.ResponseWriter, r *http.Request, _ access) error {
	causes := s.causes()
	if a, err := s.authorize(r); err != nil || !a.all {
		causes = namesOnly(causes)
	}
	status := http.StatusOK
	if len(causes) > 0 {
		status = http.StatusServiceUnavailable
	}
	return writeStatus(w, status, readiness{Ready: len(causes) == 0, Causes: causes})
}

const detailElsewhere = "the daemon's log says more, and so does this page to a token of all tenants"

// namesOnly leaves of each cause what tells nothing about anybody's chains.
func namesOnly(causes []Cause) []Cause {
	names := []Cause{}
	for _, c := range causes {
		c.Detail = detailElsewhere
		if !slices.Contains(names, c) {
			names = append(names, c)
		}
	}
	return names
}

type readiness struct {
	Ready  bool    `json:"ready"`
	Causes []Cause `json:"causes"`
}

// causes asks the daemon. A readiness check that panics is itself a cause:
// "no answer" must not read as "ready".
func (s *server) causes() (causes []Cause) {
	defer func() {
		if v := recover(); v != nil {
			s.Logger.Error("readiness check panicked", "panic", v)
			causes = []Cause{{CauseReadinessCheck, "the readiness check itself failed; the log says why"}}
		}
	}()
	causes = s.Ready()
	if causes == nil {
		causes = []Cause{}
	}
	return causes
}

func (s *server) metrics(w http.ResponseWriter, r *http.Request, a access) error {
	if !a.all {
		return notFound()
	}
	s.Metrics.handler().ServeHTTP(w, r)
	return nil
}

// writeStatus answers with a short JSON document that nobody may keep.
func writeStatus(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", jsonMediaType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(body) // a failed write means that the caller has gone
	return nil
}
