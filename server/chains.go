package server

import (
	"errors"
	"net/http"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/store"
)

// chainFilters are the parameters that [query.chains] reads.
func chainFilters() []string {
	return []string{"tenant", "prompt_hash", "session", "chain", "outcome", "conformity", "run_id", "trace_id", "since", "until", "after", "limit"}
}

// chainDocument is one line of a list of chains. Missing facts are null.
type chainDocument struct {
	keyDocument
	Outcome    events.Outcome    `json:"outcome"`
	Reason     string            `json:"reason"` // as given with the seal
	Conformity events.Conformity `json:"conformity"`
	Segments   uint64            `json:"segments"`
	Head       *string           `json:"head"`
	RunIDs     []string          `json:"run_ids"`
	Duplicates uint64            `json:"duplicates"`
	Late       uint64            `json:"late"`
	Rejected   uint64            `json:"rejected"`
	Epoch      uint32            `json:"epoch"`
	StreamSeq  uint64            `json:"stream_seq"` // last event of any effect
	Sealed     *sealDocument     `json:"sealed"`     // null until the evidence has been written
	URL        string            `json:"url"`
	Coverage   events.Coverage   `json:"coverage"`   // as far as the producer's numbers and the broker's tell
	Damage     string            `json:"damage"`     // why the stored chain cannot be read; "": it can
	LastAtMS   uint64            `json:"last_at_ms"` // of the last event that took effect; the producer's clock, or the broker's
	Anchors    anchorDocument    `json:"anchors"`
}

// anchorDocument is where the producer says that the run hangs: not hashed,
// the last one given.
type anchorDocument struct {
	TraceID       *string `json:"trace_id"` // UUID; the digits of an OpenTelemetry trace id
	PlanCommitRef *string `json:"plan_commit_ref"`
	PlanCallIndex *uint64 `json:"plan_call_index"`
}

// sealDocument is what became of a finished chain.
type sealDocument struct {
	Class      string  `json:"class"` // heads, unplanned, nonconforming; "" without segments
	Head       *string `json:"head"`
	Path       string  `json:"path"` // below the sidecar root; "" without segments
	Bytes      uint64  `json:"bytes"`
	SHA256     *string `json:"sha256"`
	Signed     bool    `json:"signed"`
	BundlePath string  `json:"bundle_path"` // "" when no trust bundle was made
	BundleRoot *string `json:"bundle_root"`
	SealedMS   int64   `json:"sealed_ms"` // Unix milliseconds

	BundleBytes  uint64  `json:"bundle_bytes"`
	BundleSHA256 *string `json:"bundle_sha256"`
}

type chainPage struct {
	Chains []chainDocument `json:"chains"`
	Next   *string         `json:"next"`
}

func describeSeal(r *store.SealResult) *sealDocument {
	if r == nil {
		return nil
	}
	d := &sealDocument{Class: r.Class, Head: hexOf(r.Head), Path: r.Path, Bytes: r.Bytes, Signed: r.Signed,
		BundlePath: r.BundlePath, BundleBytes: r.BundleBytes, SealedMS: r.SealedMS}
	if r.Path != "" {
		d.SHA256 = hexOf(&r.SHA256)
	}
	if r.BundlePath != "" {
		d.BundleRoot, d.BundleSHA256 = hexOf(&r.BundleRoot), hexOf(&r.BundleSHA256)
	}
	return d
}

func describeSummary(c *store.ChainSummary) chainDocument {
	return chainDocument{
		keyDocument: describeKey(c.Key), Outcome: c.Outcome, Reason: c.Reason, Conformity: c.Conformity, Segments: c.Segments,
		Head: hexOf(c.Head), RunIDs: notNil(c.RunIDs), Duplicates: c.Duplicates, Late: c.Late, Rejected: c.Rejected,
		Epoch: c.Epoch, StreamSeq: c.StreamSeq, Sealed: describeSeal(c.Sealed), URL: chainURL(c.Key),
		Coverage: c.Coverage, Damage: c.Damage, LastAtMS: c.LastAtMS, Anchors: describeAnchors(&c.Anchors),
	}
}

func describeAnchors(a *segments.Anchors) anchorDocument {
	return anchorDocument{a.TraceID, a.PlanCommitRef, a.PlanCallIndex}
}

// notNil makes an absent list an empty one, so that it is written as [].
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// chains lists chains.
func (s *server) chains(w http.ResponseWriter, r *http.Request, a access) error {
	q := newQuery(r)
	ask := q.chains(a)
	if q.err != nil {
		return q.err
	}
	if s.Store == nil {
		return unavailable("this server has no store")
	}
	found, next, err := s.Store.Chains(ask)
	if err != nil {
		return err
	}
	page := chainPage{Chains: make([]chainDocument, len(found)), Next: cursor(next)}
	for i := range found {
		page.Chains[i] = describeSummary(&found[i])
	}
	return s.writeJSON(w, r, page)
}

// chains reads the filters that the lists of chains and of runs have.
func (q *query) chains(a access) store.ChainQuery {
	return store.ChainQuery{
		Tenant:     q.tenant(a),
		PromptHash: q.hex("prompt_hash", 64),
		Session:    q.hex("session", 32),
		Chain:      q.token("chain"),
		Outcome:    events.Outcome(q.oneOf("outcome", outcomeNames()...)),
		Conformity: events.Conformity(q.oneOf("conformity", conformityNames()...)),
		RunID:      q.runID(),
		TraceID:    q.traceID(),
		SinceMS:    q.time("since"),
		UntilMS:    q.time("until"),
		After:      q.after(),
		Limit:      q.limit(),
	}
}

func outcomeNames() []string {
	return []string{string(events.Open), string(events.Succeeded), string(events.Failed), string(events.Cancelled), string(events.Abandoned)}
}

func conformityNames() []string {
	return []string{string(events.Conforming), string(events.Unplanned), string(events.Nonconforming)}
}

// find reads the chain that a path names. What the caller may not read, what
// no path of ours can name and what is not there are one answer.
func (s *server) find(r *http.Request, a access) (*store.ChainRecord, error) {
	key, err := chainKey(r)
	if err != nil {
		return nil, err
	}
	if !a.may(key.Tenant) {
		return nil, unknownChain()
	}
	if s.Store == nil {
		return nil, unavailable("this server has no store")
	}
	record, err := s.Store.Chain(key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, unknownChain()
	}
	return record, err
}

func chainKey(r *http.Request) (events.Key, error) {
	tenant, err := pathTenant(r.PathValue("tenant"))
	if err != nil {
		return events.Key{}, err
	}
	promptHash, err := foldHex("prompt_hash", r.PathValue("prompt_hash"), 64)
	if err != nil {
		return events.Key{}, err
	}
	session, err := foldHex("session_id", r.PathValue("session"), 32)
	if err != nil {
		return events.Key{}, err
	}
	chain := r.PathValue("chain")
	if !isToken(chain) {
		return events.Key{}, invalidPath("chain", "expected 1 to 64 letters, digits, hyphens or underscores")
	}
	return events.Key{Tenant: tenant, PromptHash: promptHash, Session: session, Chain: chain}, nil
}

func unknownChain() *problem {
	return &problem{typeUnknownChain, http.StatusNotFound, "Not Found", "no event of this chain has been seen"}
}
