package devex

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chaind/chaind/engine"
)

const (
	// Name and GitHubActions are the names of the domains served here.
	Name          = "devex"
	GitHubActions = "github_actions"

	// Version is the engine version of the bundles that we write.
	Version = "chaind-devex-1"

	hits = 5 // of a lookup
)

// Kinds of nodes, prefixes of their ids, and relations.
const (
	documentKind = "document"
	ticketKind   = "Ticket"
	runPrefix    = "Run:"
	prPrefix     = "PR:"
	ticketPrefix = "Ticket:"
	logOf        = "log_of"
	diffOf       = "diff_of"
	motivatedBy  = "motivated_by"
)

// New returns the domain Name or GitHubActions under an engine version:
// Version, or engine.ReferenceVersion for the bundles of the reference. The
// rules are the same.
func New(name, version string) *engine.Domain {
	d := &engine.Domain{Name: name, Version: version, Route: route}
	Actions(name).Install(d)
	return d
}

func route(question string, g *engine.Graph, kb []engine.Record) (*engine.Answer, error) {
	if run := findRun(question); run != "" {
		return routed("rca", fmt.Sprintf("names pipeline run %s — root-cause analysis", run), causeOf(run, g))
	}
	if pr := findPR(question); pr != "" {
		return routed("summary", fmt.Sprintf("names pull request %s — change summary", pr), summaryOf(pr, g))
	}
	if entities := findServices(question, g); len(entities) > 0 {
		return routed("service", "names a catalog service — ownership/catalog lookup", ownersOf(entities, g))
	}
	return engine.Lookup(question, kb, hits, engine.Route{Kind: "lookup", Reason: "no run, PR, or service named — lexical lookup"})
}

func routed(kind, reason string, a *answer) (*engine.Answer, error) {
	if a.tooLong {
		return nil, ErrAnswerTooLong
	}
	return &engine.Answer{Route: engine.Route{Kind: kind, Reason: reason}, Claims: a.claims, Refusal: a.refusal}, nil
}

// Bounds of an answer.
const (
	maxClaims = 1 << 16
	maxSize   = 1 << 28 // bytes
)

// ErrAnswerTooLong says that the evidence yields more claims than are kept.
var ErrAnswerTooLong = errors.New("the evidence yields an answer that is too long")

// answer collects claims up to the bounds, or holds a refusal.
type answer struct {
	claims  []engine.Claim
	refusal string
	size    int // bytes of claims and of the texts they cite
	tooLong bool
}

func refuse(format string, args ...any) *answer {
	return &answer{refusal: fmt.Sprintf(format, args...)}
}

func (a *answer) add(text string, support ...*engine.Record) {
	a.size += len(text)
	for _, r := range support {
		a.size += len(r.Text)
	}
	if a.size > maxSize || len(a.claims) == maxClaims {
		a.tooLong = true
	}
	if !a.tooLong {
		a.claims = append(a.claims, engine.Claim{Text: text, Support: support})
	}
}

// quote claims what a node says, word for word.
func (a *answer) quote(nodes ...*engine.Node) {
	for _, n := range nodes {
		a.add(n.Text, &n.Record)
	}
}

// share claims that a fragment appears in several nodes.
func (a *answer) share(label, fragment string, nodes ...*engine.Node) {
	if a.tooLong {
		return // and make no more long texts
	}
	support := make([]*engine.Record, len(nodes))
	sources := make([]string, len(nodes))
	for i, n := range nodes {
		support[i] = &n.Record
		sources[i] = n.Source
	}
	slices.Sort(sources)
	sources = slices.Compact(sources)
	a.add(fmt.Sprintf(`%s: "%s" appears in '%s'.`, label, fragment, strings.Join(sources, "' and '")), support...)
}

// sourcesOf are the nodes from which edges of a relation lead to an id, by id;
// two edges count twice.
func sourcesOf(g *engine.Graph, id, relation string) []*engine.Node {
	var out []*engine.Node
	for e := range g.To(id) {
		if n := g.Node(e.Src); n != nil && e.Relation == relation {
			out = append(out, n)
		}
	}
	slices.SortStableFunc(out, byID)
	return out
}

func byID(x, y *engine.Node) int { return strings.Compare(x.ID, y.ID) }
