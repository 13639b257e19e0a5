package server

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// Problem types. The first two are the evidence format's own (Plasm evidence
// format, section 15) and are spelled as there; the others are ours.
const (
	typeInvalidPath     = "https://plasm.invalid/problems/plasm-execute-invalid-path-param"
	typeUnknownArtifact = "https://plasm.invalid/problems/plasm-execute-unknown-artifact"

	typeRunOpen          = "urn:chaind:problem:run-open"
	typeRunNonconforming = "urn:chaind:problem:run-nonconforming"
	typeUnknownChain     = "urn:chaind:problem:unknown-chain"
	typeChainOpen        = "urn:chaind:problem:chain-open"
	typeChainEmpty       = "urn:chaind:problem:chain-empty"
	typeHeadTaken        = "urn:chaind:problem:head-taken"
	typeSealPending      = "urn:chaind:problem:seal-pending"
	typeBundleNone       = "urn:chaind:problem:bundle-none"
	typeEvidenceLost     = "urn:chaind:problem:evidence-missing"
	typeInvalidQuery     = "urn:chaind:problem:invalid-query"
	typeBadRequest       = "urn:chaind:problem:bad-request"
	typeNotFound         = "urn:chaind:problem:not-found"
	typeUnauthorized     = "urn:chaind:problem:unauthorized"
	typeHost             = "urn:chaind:problem:unknown-host"
	typeMethod           = "urn:chaind:problem:method-not-allowed"
	typeBody             = "urn:chaind:problem:body-not-accepted"
	typeHeader           = "urn:chaind:problem:header-too-long"
	typeQueryTooLong     = "urn:chaind:problem:query-too-long"
	typePrecondition     = "urn:chaind:problem:precondition-failed"
	typeRange            = "urn:chaind:problem:range-not-satisfiable"
	typeBusy             = "urn:chaind:problem:busy"
	typeUnavailable      = "urn:chaind:problem:unavailable"
	typeInternal         = "urn:chaind:problem:internal"
	problemMediaType     = "application/problem+json; charset=utf-8"
	jsonMediaType        = "application/json"
	retryAfterSeconds    = "Retry-After"
)

// problem is an RFC 9457 problem document. The member order is part of the
// exchanged format.
type problem struct {
	Type   string `json:"type"`
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

// Error makes a problem an error, so that handlers return it.
func (p *problem) Error() string { return p.Title + ": " + p.Detail }

func invalidPath(name, why string) *problem {
	return &problem{typeInvalidPath, http.StatusBadRequest, "Bad Request", "invalid `" + name + "` path segment: " + why}
}

func invalidQuery(detail string) *problem {
	return &problem{typeInvalidQuery, http.StatusBadRequest, "Bad Request", detail}
}

func badRequest(detail string) *problem {
	return &problem{typeBadRequest, http.StatusBadRequest, "Bad Request", detail}
}

func notFound() *problem {
	return &problem{typeNotFound, http.StatusNotFound, "Not Found", "nothing is served at this path"}
}

func unknownRun() *problem {
	return &problem{typeUnknownArtifact, http.StatusNotFound, "Not Found", "evidence bundle not found for this run_id"}
}

// unknownEvidence is the same answer for whatever was asked for.
func unknownEvidence(t *target) *problem {
	p := unknownRun()
	if t.runID == "" {
		p.Detail = "evidence bundle not found for this head"
	}
	return p
}

func refused(detail string) *problem {
	return &problem{typeUnknownArtifact, http.StatusUnprocessableEntity, "Evidence verification failed", detail}
}

func undecodable(cause string) *problem {
	return &problem{typeUnknownArtifact, http.StatusInternalServerError, "Evidence decode failed", "run artifact JSON: " + cause}
}

func busy(detail string) *problem {
	return &problem{typeBusy, http.StatusServiceUnavailable, "Service Unavailable", detail}
}

func unavailable(detail string) *problem {
	return &problem{typeUnavailable, http.StatusServiceUnavailable, "Service Unavailable", detail}
}

func internalError() *problem {
	return internalProblem("the request could not be answered; the server's log says why")
}

func internalProblem(detail string) *problem {
	return &problem{typeInternal, http.StatusInternalServerError, "Internal Server Error", detail}
}

// write answers with the problem. Problems are never cached.
func (p *problem) write(w http.ResponseWriter) {
	body, err := json.Marshal(p)
	if err != nil {
		panic("server: problem document: " + err.Error()) // four scalar members always encode
	}
	h := w.Header()
	for _, name := range []string{"ETag", "Accept-Ranges", "Content-Encoding", "Content-Location", "Repr-Digest"} {
		h.Del(name)
	}
	h.Set("Content-Type", problemMediaType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	if p.Status == http.StatusServiceUnavailable {
		h.Set(retryAfterSeconds, strconv.Itoa(retryAfter))
	}
	w.WriteHeader(p.Status)
	w.Write(body) // a failed write means that the caller has gone
}
