package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
	"github.com/chaind/chaind/verifier"
)

// bundleMediaType is that of trust bundles. Nobody registered one; it says that
// the text is JSON.
const bundleMediaType = "application/vnd.chaind.tsb+json"

// classBundle marks questions about trust bundles among those about evidence.
const classBundle sidecar.Class = "bundle"

// chainBundle serves the trust bundle of a chain: the one that was sealed or,
// while the chain is open, one as of its last event.
func (s *server) chainBundle(w http.ResponseWriter, r *http.Request, a access) error {
	record, err := s.find(r, a)
	if err != nil {
		return err
	}
	sum, err := wantedSum(r)
	if err != nil {
		return err
	}
	return s.bundle(w, r, record, sum)
}

// wantedSum is the digest that the bytes sent must have; nil: any.
func wantedSum(r *http.Request) (*segments.Digest, error) {
	q := newQuery(r)
	if !q.values.Has("sha256") {
		return nil, nil
	}
	sum, err := segments.ParseDigest(q.hex("sha256", 64))
	if err != nil {
		return nil, invalidQuery("sha256 must be 64 hex digits")
	}
	return &sum, nil
}

// runBundle serves the trust bundle of a chain that sealed a run. Of several it
// is the one that best stands for the run: a conforming chain that has ended
// before another one, that before an open one, and of equal ones the last. The
// others are named in Link fields.
func (s *server) runBundle(w http.ResponseWriter, r *http.Request, a access) error {
	place, err := pathPlace(r)
	if err != nil {
		return err
	}
	runID, err := foldRunID(r.PathValue("run_id"))
	if err != nil {
		return err
	}
	if !a.may(place.Tenant) {
		return unknownBundle()
	}
	if s.Store == nil {
		return unavailable("this server has no store")
	}
	records, err := s.chainsOfRun(place, runID)
	if err != nil {
		return err
	}
	if len(records) == 0 {
		return unknownBundle()
	}
	best := slices.MaxFunc(records, standsFor)
	for _, other := range records {
		if other != best {
			w.Header().Add("Link", "<"+chainURL(other.Key)+`/bundle>; rel="alternate"; type="`+bundleMediaType+`"`)
		}
	}
	return s.bundle(w, r, best, nil)
}

func unknownBundle() *problem {
	return &problem{typeUnknownArtifact, http.StatusNotFound, "Not Found", "trust bundle not found for this run_id"}
}

// chainsOfRun reads the chains of a session that carry a run id, as far as one
// answer looks for them.
func (s *server) chainsOfRun(place sidecar.Place, runID string) ([]*store.ChainRecord, error) {
	var out []*store.ChainRecord
	q := store.RunQuery{RunID: runID, Tenant: &place.Tenant, Limit: store.MaxPage}
	for range maxRunPages {
		page, next, err := s.Store.Runs(q)
		if err != nil {
			return nil, err
		}
		for _, found := range page {
			if found.Key.PromptHash != place.PromptHash || found.Key.Session != place.Session || len(out) == maxAlternates {
				continue
			}
			record, err := s.Store.Chain(found.Key)
			if err != nil {
				return nil, err
			}
			out = append(out, record)
		}
		if next == "" {
			break
		}
		q.After = next
	}
	return out, nil
}

// standsFor orders the chains of a run by how well they stand for it.
func standsFor(a, b *store.ChainRecord) int {
	return cmp.Or(cmp.Compare(standing(a), standing(b)), cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.StreamSeq, b.StreamSeq))
}

func standing(c *store.ChainRecord) int {
	conformity, _ := c.State.Conformity()
	switch {
	case c.Fixed == nil:
		return 0
	case conformity != events.Conforming:
		return 1
	}
	return 2
}

// bundle finds or makes, verifies and sends a trust bundle.
func (s *server) bundle(w http.ResponseWriter, r *http.Request, record *store.ChainRecord, sum *segments.Digest) error {
	if record.Fixed == nil {
		return s.openBundle(w, r, record, sum)
	}
	if record.Seal == nil {
		return &problem{typeSealPending, http.StatusServiceUnavailable, "Evidence is being written", "the chain has ended and its trust bundle has not been written yet"}
	}
	if record.Seal.BundlePath == "" {
		return &problem{typeBundleNone, http.StatusNotFound, "Not Found", "the chain was sealed by a program that made no trust bundles"}
	}
	if sum != nil && *sum != record.Seal.BundleSHA256 {
		return &problem{typeUnknownArtifact, http.StatusNotFound, "Not Found", "the chain's trust bundle has other bytes"}
	}
	c, v, err := s.verifiedBundle(r.Context(), record.Seal)
	if err != nil {
		return err
	}
	if v.problem != nil {
		return v.problem
	}
	c.immutable = sum != nil
	h := w.Header()
	h.Set("Chaind-Root", record.Seal.BundleRoot.String())
	h.Set("Chaind-Signature", string(v.signature))
	h.Set("Content-Location", chainURL(record.Key)+"/bundle?sha256="+c.sum.String())
	return s.sendBundle(w, r, c)
}

func (s *server) sendBundle(w http.ResponseWriter, r *http.Request, c *content) error {
	release, err := s.held.take(int64(len(c.body)))
	if err != nil {
		return err
	}
	defer release()
	c.private = s.Tokens != nil
	c.serve(w, r)
	return nil
}

// verifiedBundle reads a sealed trust bundle and gives the verdict on exactly
// the bytes that were read, from memory when they were judged before.
func (s *server) verifiedBundle(ctx context.Context, seal *store.SealResult) (*content, verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	leave, err := s.gate.enter(ctx)
	if err != nil {
		return nil, verdict{}, s.unreadable(err)
	}
	defer leave()
	text, err := s.Sidecars.ReadBundle(ctx, seal.BundleRoot)
	if errors.Is(err, sidecar.ErrNotFound) {
		return nil, verdict{}, s.gone("trust bundle", seal.BundlePath)
	}
	if err != nil {
		return nil, verdict{}, s.unreadable(err)
	}
	c := newContent(bundleMediaType, text)
	q := question{class: classBundle, head: seal.BundleRoot, file: c.sum, trust: s.Trust(), allowUnsigned: s.AllowUnsigned}
	v, known := s.verdicts.get(q)
	s.Metrics.lookup(known)
	if !known {
		if v, err = judgeBundle(ctx, &q, text); err != nil {
			return nil, verdict{}, err
		}
		s.verdicts.put(q, v)
	}
	if c.sum != seal.BundleSHA256 && v.problem == nil {
		v.problem, v.result = refused("the stored bytes are not those that were written when the chain was sealed"), resultRefused
	}
	s.Metrics.verified(v.result)
	if v.problem != nil {
		s.Logger.Error("refuse stored trust bundle", "file", seal.BundlePath, "sha256", c.sum.String(), "why", v.problem.Detail)
	}
	return c, v, nil
}

// judgeBundle verifies a trust bundle as everybody can. One that is degraded
// says itself what it does not establish, and is served.
func judgeBundle(ctx context.Context, q *question, text []byte) (verdict, error) {
	report := verifier.TrustBundle(ctx, bytes.NewReader(text), verifier.Options{Trust: q.trust, AllowUnsigned: q.allowUnsigned})
	if err := ctx.Err(); err != nil {
		return verdict{}, err
	}
	v := verdict{result: resultPassed, signature: report.Signature.State}
	switch {
	case report.ExitCode != 0 && report.ExitCode != 3:
		v.problem, v.result = refused(report.Summary), resultRefused
	case report.Content == nil || report.Content.StoredRoot != "sha256:"+q.head.String():
		v.problem, v.result = refused("the bundle has another root than its name"), resultRefused
	}
	return v, nil
}

// openBundle makes the trust bundle of a chain that has not ended. It is not
// signed: what may change with the next event is not for a key to vouch for.
func (s *server) openBundle(w http.ResponseWriter, r *http.Request, record *store.ChainRecord, sum *segments.Digest) error {
	if s.Pack == nil {
		return &problem{typeChainOpen, http.StatusConflict, "Chain is open", "the chain has not ended, and this server makes no bundles of open ones"}
	}
	text, err := s.packed(r.Context(), record)
	if err != nil {
		return err
	}
	c := newContent(bundleMediaType, text)
	if sum != nil && *sum != c.sum {
		return &problem{typeUnknownArtifact, http.StatusNotFound, "Not Found", "the chain is open and its trust bundle has other bytes by now"}
	}
	h := w.Header()
	h.Set("Chaind-Signature", string(keys.StateUnsigned))
	h.Set("Chaind-As-Of", fmt.Sprintf("%d.%d", record.Epoch, record.StreamSeq))
	return s.sendBundle(w, r, c)
}

func (s *server) packed(ctx context.Context, record *store.ChainRecord) ([]byte, error) {
	if n := record.State.Segments; n > maxOpenPacked {
		return nil, &problem{typeChainOpen, http.StatusConflict, "Chain is open",
			"the chain has not ended and is too long to be packed for one answer: " + strconv.FormatUint(n, 10) + " segments so far"}
	}
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	leave, err := s.gate.enter(ctx)
	if err != nil {
		return nil, s.unreadable(err)
	}
	defer leave()
	return s.Pack(ctx, record)
}
