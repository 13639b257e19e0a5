package engine

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/chaind/chaind/bundle"
)

// The chain domain answers from the verified claims of other bundles, which
// the closure embeds whole.
const (
	ChainDomain  = "chain"
	ChainShape   = "tessera.bundle.chain.chain_citation"
	ChainVersion = "chaind-chain-1" // engine version of the chains that we write

	chainLocator  = "bundle-claim"
	chainIngested = "at-upstream-seal"
	chainHits     = 5
	sourcePrefix  = "bundle:"
)

// Chain is the chain domain under an engine version: ChainVersion, or
// ReferenceVersion for the chains of the reference. Router and grammar are the
// same.
func Chain(version string) *Domain {
	return &Domain{
		Name:     ChainDomain,
		Version:  version,
		Grammars: []Grammar{{ID: ChainShape, Judge: judgeCitation}},
		Route:    routeChain,
	}
}

func routeChain(question string, _ *Graph, kb []Record) (*Answer, error) {
	roots := map[string]bool{}
	for i := range kb {
		roots[kb[i].Source] = true
	}
	reason := fmt.Sprintf("cites the verifier-passing claims of %d upstream trust bundle(s)", len(roots))
	return Lookup(question, kb, chainHits, Route{Kind: "chain", Reason: reason})
}

// judgeCitation owns claims that rest on one upstream claim: they must be the
// text of that node.
func judgeCitation(c *Claim, g *Graph) (Opinion, error) {
	if len(c.Support) != 1 || c.Support[0].Locator.Kind != chainLocator {
		return NoOpinion, nil
	}
	n := g.Node(c.Support[0].ID)
	if n != nil && n.Locator.Kind == chainLocator && n.Text == c.Text {
		return Supported, nil
	}
	return Unsupported, nil
}

// derivedRecord is the record that a chain derives from a claim of an upstream.
func derivedRecord(root string, claim int, text string) Record {
	index := strconv.Itoa(claim)
	short := root[len("sha256:"):][:12]
	return Record{
		ID:         "chain:" + short + ":c" + index,
		Source:     sourcePrefix + root,
		Locator:    Locator{chainLocator, []Pair{{"bundle", root}, {"claim", index}}},
		IngestedAt: chainIngested,
		Text:       text,
	}
}

// derivedNode is the node of a derived record.
func derivedNode(r Record) Node { return Node{Record: r, Kind: chainLocator} }

// citable appends the derived records of a passing upstream: one for each
// claim that is recorded as verified and re-derived here.
func citable(records []Record, root string, j *Judgement) []Record {
	for i := range j.Claims {
		if j.Claims[i].Recorded && j.Claims[i].Rederived {
			records = append(records, derivedRecord(root, i, j.Claims[i].Text))
		}
	}
	return records
}

// checkChain verifies every embedded bundle, then that the evidence is what
// they yield.
func (e *execution) checkChain() {
	usable := e.checkUpstreams()
	records := e.closure.KB
	if e.b.Closure.Get("kb").Withheld() {
		records = mapped(e.closure.Graph.Nodes, func(n Node) Record { return n.Record })
	}
	for i := range records {
		if code, detail := citationFault(&records[i], usable); code != "" {
			e.result.structural(code, "node:"+records[i].ID, "the chain record %s %s", bundle.Quote(records[i].ID), detail)
		}
	}
	e.checkCorpus(usable)
}

// checkUpstreams judges the embedded bundles in order and returns those that
// pass, by root.
func (e *execution) checkUpstreams() map[string]*Judgement {
	usable := map[string]*Judgement{}
	list := e.b.Upstream()
	if list.Kind() != bundle.Array {
		e.result.structural(UpstreamsMissing, "evidence_closure.upstream", "the chain embeds no list of bundles")
	}
	for i, item := range list.Items() {
		if item.Kind() != bundle.Object {
			e.result.structural(UpstreamMalformed, fmt.Sprintf("upstream[%d]", i), "upstream[%d] is %s, not a bundle", i, item.Kind())
			continue
		}
		u := judgeUpstream(i, item, e.known)
		e.result.Upstreams = append(e.result.Upstreams, u)
		if u.Verdict == Pass {
			usable[u.Root] = u.Judgement
			continue
		}
		e.result.structural(UpstreamFails, "upstream:"+u.Root, "the embedded bundle %s does not re-verify (%s): %s", shortRoot(u.Root), u.Verdict, u.Cause)
	}
	return usable
}

func judgeUpstream(i int, item bundle.Value, known Registry) Upstream {
	u := Upstream{Root: fmt.Sprintf("upstream[%d]", i), Verdict: Tampered}
	b, err := bundle.Open(item)
	if err == nil {
		if root := b.StoredRoot(); root != "" {
			u.Root = root
		}
		u.Judgement, err = Judge(b, known)
	}
	if err != nil {
		u.Cause = err.Error()
		return u
	}
	u.Verdict, u.Cause = u.Judgement.Verdict(), u.Judgement.Cause()
	return u
}

// shortRoot is a root for people: its first 19 characters.
func shortRoot(root string) string {
	if !bundle.IsDigest(root) {
		return bundle.Quote(root)
	}
	return root[:19] + "…"
}

// citationFault says how a record fails to be an honest citation; "": it does
// not.
func citationFault(r *Record, usable map[string]*Judgement) (Code, string) {
	root, hasRoot := r.Locator.Part("bundle")
	index, hasIndex := r.Locator.Part("claim")
	if r.Locator.Kind != chainLocator || !hasRoot || !hasIndex {
		return NotACitation, "does not cite a claim of an embedded bundle, and a chain may rest on nothing else"
	}
	j := usable[root]
	if j == nil {
		return CitesUnusable, fmt.Sprintf("cites the bundle %s, which is not embedded or does not pass", shortRoot(root))
	}
	i, ok := decimalIndex(index, len(j.Recorded.Claims))
	if !ok {
		return CitesNoClaim, fmt.Sprintf("cites claim %s of %s, which does not exist", bundle.Quote(index), shortRoot(root))
	}
	switch {
	case r.Text != j.Recorded.Claims[i].Text:
		return CitedTextAltered, fmt.Sprintf("does not have the text of claim %d of %s", i, shortRoot(root))
	case !j.Recorded.Claims[i].Verified:
		return CitesUnverified, fmt.Sprintf("cites claim %d of %s, which is not verified", i, shortRoot(root))
	case i >= len(j.Claims) || !j.Claims[i].Rederived:
		return CitesUnderived, fmt.Sprintf("cites claim %d of %s, which does not re-derive from its own evidence", i, shortRoot(root))
	}
	return "", ""
}

// decimalIndex reads an index below n in its one spelling.
func decimalIndex(s string, n int) (int, bool) {
	i, err := strconv.Atoi(s)
	if err != nil || i < 0 || i >= n || strconv.Itoa(i) != s {
		return 0, false
	}
	return i, true
}

// checkCorpus demands that kb and graph are exactly what the passing upstreams
// yield, in their order. Withheld nodes must have the right id at their place.
func (e *execution) checkCorpus(usable map[string]*Judgement) {
	var want []Record
	for _, u := range e.result.Upstreams {
		if j := usable[u.Root]; j != nil && j == u.Judgement && bundle.IsDigest(u.Root) {
			want = citable(want, u.Root, j)
		}
	}
	graph := e.b.Closure.Get("graph")
	same := sameList(graph.Get("nodes"), want, func(v bundle.Value, r *Record) bool {
		if v.Withheld() {
			return v.Get("record").Get("id").Text() == r.ID
		}
		n := derivedNode(*r)
		return v.EqualCanonical(n.Append(nil))
	})
	for _, name := range []string{"edges", "resolutions", "mentions"} {
		same = same && graph.Get(name).Len() == 0
	}
	if kb := e.b.Closure.Get("kb"); !kb.Withheld() {
		same = same && kb.Len() == 1 && sameList(kb.Get("records"), want, func(v bundle.Value, r *Record) bool {
			return v.EqualCanonical(r.Append(nil))
		})
	}
	if !same {
		e.result.structural(OtherCorpus, "evidence_closure", "the evidence of the chain is not the one that its upstream bundles yield")
	}
}

func sameList(list bundle.Value, want []Record, same func(bundle.Value, *Record) bool) bool {
	if list.Len() != len(want) {
		return false
	}
	for i, v := range list.Items() {
		if !same(v, &want[i]) {
			return false
		}
	}
	return true
}

// ChainError says why a chain cannot be built over these upstreams.
type ChainError struct {
	Code     Code   // one of the codes below
	Upstream int    // position of the upstream at fault; -1: none in particular
	Root     string // of that upstream, as it states it
	Verdict  Verdict
	Detail   string
}

func (e *ChainError) Error() string { return e.Detail }

// Codes of a ChainError.
const (
	ChainEmpty     Code = "chain_empty"
	ChainUnsealed  Code = "chain_unsealed_upstream"
	ChainTwice     Code = "chain_upstream_twice"
	ChainNotPass   Code = "chain_upstream_not_pass"
	ChainNoClaims  Code = "chain_nothing_citable"
	ChainTooDeep   Code = "chain_too_deep"
	ChainMalformed Code = "chain_upstream_malformed"
)

// NewChain verifies the upstreams and prepares the chain bundle that answers a
// question from their claims, under the engine version of d, a Chain domain.
// Every upstream must pass: the error is a *ChainError that names the first
// that does not.
func NewChain(d *Domain, question string, upstreams []*bundle.Bundle, known Registry) (*bundle.Draft, *Decision, error) {
	if len(upstreams) == 0 {
		return nil, nil, &ChainError{Code: ChainEmpty, Upstream: -1, Detail: "a chain needs at least one upstream bundle"}
	}
	var records []Record
	var roots []string
	for i, b := range upstreams {
		j, err := admit(i, b, roots, known)
		if err != nil {
			return nil, nil, err
		}
		roots = append(roots, b.StoredRoot())
		records = citable(records, b.StoredRoot(), j)
	}
	if len(records) == 0 {
		return nil, nil, &ChainError{Code: ChainNoClaims, Upstream: -1, Detail: "there is nothing to cite: no upstream has a verified claim"}
	}
	g := NewGraph(mapped(records, derivedNode), nil, nil, nil)
	out, decision, err := NewDraft(d, question, g, records)
	if err != nil {
		return nil, nil, err
	}
	out.Kind, out.Upstream = bundle.KindChain, upstreams
	return out, decision, nil
}

// admit verifies the upstream at position i of a new chain.
func admit(i int, b *bundle.Bundle, before []string, known Registry) (*Judgement, error) {
	root := b.StoredRoot()
	refuse := func(code Code, format string, args ...any) (*Judgement, error) {
		return nil, &ChainError{Code: code, Upstream: i, Root: root, Detail: fmt.Sprintf(format, args...)}
	}
	switch {
	case root == "":
		return refuse(ChainUnsealed, "the upstream at position %d is not sealed: it has no root", i)
	case slices.Contains(before, root):
		return refuse(ChainTwice, "the upstream %s is given twice", shortRoot(root))
	case b.ChainDepth() >= bundle.MaxChain:
		return refuse(ChainTooDeep, "the upstream %s is itself a chain of %d links; no more fit", shortRoot(root), bundle.MaxChain)
	}
	j, err := Judge(b, known)
	if err != nil {
		return refuse(ChainMalformed, "the upstream %s cannot be verified: %v", shortRoot(root), err)
	}
	if verdict := j.Verdict(); verdict != Pass {
		return nil, &ChainError{Code: ChainNotPass, Upstream: i, Root: root, Verdict: verdict,
			Detail: fmt.Sprintf("a chain cites only what passes; the upstream %s is %s: %s", shortRoot(root), verdict, j.Cause())}
	}
	return j, nil
}
