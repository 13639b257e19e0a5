package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
)

// target is what an evidence request asks for.
type target struct {
	place sidecar.Place
	runID string // "": asked for by head
	class sidecar.Class
	head  segments.Digest
	sum   *segments.Digest // the bytes sent must have this digest; nil: any
	// recorded is the digest that the stored bytes had when the chain was
	// sealed; nil: nobody recorded it.
	recorded *segments.Digest
}

// runEvidence serves the evidence of a run (Plasm evidence format, section 15).
func (s *server) runEvidence(w http.ResponseWriter, r *http.Request, a access) error {
	place, err := pathPlace(r)
	if err != nil {
		return err
	}
	runID, err := foldRunID(r.PathValue("run_id"))
	if err != nil {
		return err
	}
	return s.evidence(w, r, a, target{place: place, runID: runID})
}

// headEvidence serves the evidence of a conforming chain by its head. With
// sha256 the address names the bytes themselves.
func (s *server) headEvidence(w http.ResponseWriter, r *http.Request, a access) error {
	place, err := pathPlace(r)
	if err != nil {
		return err
	}
	text, err := foldHex("head", r.PathValue("head"), 64)
	if err != nil {
		return err
	}
	head, err := segments.ParseDigest(text)
	if err != nil {
		return err
	}
	t := target{place: place, class: sidecar.Heads, head: head}
	q := newQuery(r)
	if q.values.Has("sha256") {
		sum, err := segments.ParseDigest(q.hex("sha256", 64))
		if err != nil {
			return invalidQuery("sha256 must be 64 hex digits")
		}
		t.sum = &sum
	}
	return s.evidence(w, r, a, t)
}

func pathPlace(r *http.Request) (sidecar.Place, error) {
	var p sidecar.Place
	var err error
	if text := r.PathValue("tenant"); text != "" {
		if p.Tenant, err = pathTenant(text); err != nil {
			return sidecar.Place{}, err
		}
	}
	if p.PromptHash, err = foldHex("prompt_hash", r.PathValue("prompt_hash"), 64); err != nil {
		return sidecar.Place{}, err
	}
	if p.Session, err = foldHex("session_id", r.PathValue("session"), 32); err != nil {
		return sidecar.Place{}, err
	}
	return p, nil
}

// evidence finds, verifies and sends one bundle.
func (s *server) evidence(w http.ResponseWriter, r *http.Request, a access, t target) error {
	if !a.may(t.place.Tenant) {
		return unknownEvidence(&t)
	}
	j, err := s.verified(r.Context(), t)
	if err != nil {
		return err
	}
	// A bundle that lies without a tenant in its path may still name one.
	if !a.may(j.tenant) {
		return unknownEvidence(&t)
	}
	if j.problem != nil {
		return j.problem
	}
	c, err := j.content()
	if err != nil {
		return err
	}
	release, err := s.held.take(int64(len(c.body)))
	if err != nil {
		return err
	}
	defer release()
	if t.sum != nil && *t.sum != c.sum {
		return unknownEvidence(&t)
	}
	c.immutable, c.private = t.sum != nil, s.Tokens != nil
	h := w.Header()
	h.Set("Chaind-Head", j.head)
	h.Set("Chaind-Class", string(j.found.Class))
	h.Set("Chaind-Signature", string(j.signature))
	h.Set("Chaind-Seal-Check", j.seal)
	h.Set("Chaind-Record", j.record)
	if j.found.Class == sidecar.Heads && j.found.Head != nil {
		h.Set("Content-Location", headURL(t.place, *j.found.Head)+"?sha256="+c.sum.String())
	}
	c.serve(w, r)
	return nil
}

// judged is a stored bundle with the verdict on exactly its bytes.
type judged struct {
	verdict
	found *sidecar.Found
	sum   segments.Digest // of the stored bytes
}

// content is the bundle in the format's own form.
func (j *judged) content() (*content, error) {
	if j.asStored {
		return &content{mediaType: jsonMediaType, body: j.found.Bytes, sum: j.sum}, nil
	}
	body, err := rewrite(j.found.Bytes)
	if err != nil {
		return nil, fmt.Errorf("write bundle anew: %w", err)
	}
	return newContent(jsonMediaType, body), nil
}

func headURL(p sidecar.Place, head segments.Digest) string {
	path := "/execute/" + p.PromptHash + "/" + p.Session + "/evidence/heads/" + head.String()
	if p.Tenant != "" {
		path = "/tenants/" + p.Tenant + path
	}
	return path
}

// verified reads what is asked for and gives the verdict on exactly the bytes
// that were read, from memory when the same bytes were judged before. Reading
// and judging happen behind the gate.
func (s *server) verified(ctx context.Context, t target) (*judged, error) {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	leave, err := s.gate.enter(ctx)
	if err != nil {
		return nil, s.unreadable(err)
	}
	defer leave()
	found, snapshot, err := s.read(ctx, t)
	if err != nil {
		return nil, err
	}
	q := question{place: t.place, class: found.Class, file: segments.Sum(found.Bytes), runID: t.runID,
		trust: s.Trust(), allowUnsigned: s.AllowUnsigned}
	if found.Head != nil {
		q.head = *found.Head
	}
	if snapshot != nil {
		q.snapshot = segments.Sum(snapshot)
	}
	v, known := s.verdicts.get(q)
	s.Metrics.lookup(known)
	if !known {
		if v, err = judge(ctx, &q, found.Bytes, snapshot); err != nil {
			return nil, err
		}
		s.verdicts.put(q, v)
	}
	if err := s.compare(t, &q, &v); err != nil {
		return nil, err
	}
	if v.record == recordMatched {
		s.verdicts.put(q, v)
	}
	s.Metrics.verified(v.result)
	if v.problem != nil {
		s.Logger.Error("refuse stored evidence", "file", found.Path, "sha256", q.file.String(), "why", v.problem.Detail)
	}
	return &judged{v, found, q.file}, nil
}

// read finds the bundle and, for a run, its snapshot (nil: none).
func (s *server) read(ctx context.Context, t target) (*sidecar.Found, []byte, error) {
	if t.runID == "" {
		found, err := s.Sidecars.ReadHead(ctx, t.place, t.class, t.head)
		if errors.Is(err, sidecar.ErrNotFound) {
			return nil, nil, s.missingHead(t)
		}
		return found, nil, s.unreadable(err)
	}
	found, err := s.Sidecars.ReadRun(ctx, t.place, t.runID)
	if errors.Is(err, sidecar.ErrNotFound) {
		return nil, nil, s.missingRun(t)
	}
	if err != nil {
		return nil, nil, s.unreadable(err)
	}
	snapshot, err := s.Sidecars.ReadSnapshot(ctx, t.place, t.runID)
	if errors.Is(err, sidecar.ErrNotFound) {
		return found, nil, nil
	}
	// A snapshot that cannot be read is not one that is absent: the check that
	// it is for would silently not run.
	return found, snapshot, s.unreadable(err)
}

// unreadable counts a reading that failed and turns it into an answer that is
// neither "not found" nor a verdict.
func (s *server) unreadable(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	s.Metrics.verified(resultUnavailable)
	if errors.Is(err, errBusy) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	s.Logger.Error("read stored evidence", "err", err)
	if errors.Is(err, sidecar.ErrTooLarge) { // asking again will not help
		return internalProblem("stored evidence is larger than this server reads; verify the file where it lies")
	}
	return unavailable("stored evidence cannot be read at the moment")
}

// rewrite decodes a bundle and writes it in the format's own form.
func rewrite(stored []byte) ([]byte, error) {
	bundle, _, err := segments.ReadBundle(bytes.NewReader(stored))
	if err != nil {
		return nil, err
	}
	return segments.AppendBundle(make([]byte, 0, len(stored)), bundle), nil
}
