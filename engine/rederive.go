package engine

import (
	"fmt"

	"github.com/chaind/chaind/bundle"
)

// Rederive re-executes the content of a bundle: the router over the packaged
// evidence, every claim's grammar, every embedded bundle. It believes no stored
// verdict. It does not look at the bundle's own integrity or signature, which
// package bundle checks; Judge does both. The error is a *bundle.FormatError:
// the engine section, the result or the closure is malformed.
//
// Steps and their order are those of the Tessera trust bundle format, section
// 5.1, rows 9 to 20.
func Rederive(b *bundle.Bundle, known Registry) (*Result, error) {
	r := &Result{Answer: AnswerNotPerformed, Withheld: b.Withheld()}
	var err error
	if r.Domain, err = engineText(b, "domain"); err != nil {
		return nil, err
	}
	if r.Version, err = engineText(b, "tessera_version"); err != nil {
		return nil, err
	}
	if r.Recorded, err = ReadDecision(b.Result); err != nil {
		return nil, err
	}
	r.Structural = invariants(r.Recorded, r.Domain)
	domain := r.classify(b, known)
	if domain != nil {
		run := &execution{b: b, known: known, domain: domain, result: r}
		if run.closure, err = ReadClosure(b); err != nil {
			return nil, err
		}
		r.Closure = run.closure
		run.all()
	}
	if kind := b.Action.Kind(); kind != bundle.Object && kind != bundle.Null {
		r.structural(ActionMalformed, "action", "the action section is %s, not an object or null", kind)
	}
	return r, nil
}

func engineText(b *bundle.Bundle, name string) (string, error) {
	r := &reader{}
	text := r.text(b.Engine, name)
	if r.fault != nil {
		r.fault.Where = "engine." + name
		return "", r.fault
	}
	return text, nil
}

func (r *Result) structural(code Code, where, format string, args ...any) {
	r.Structural = append(r.Structural, Finding{Code: code, Where: where, Detail: fmt.Sprintf(format, args...)})
}

// invariants checks that the recorded decision is grounded or refused, and
// nothing between.
func invariants(d *Decision, domain string) []Finding {
	var out []Finding
	for _, rule := range []struct {
		broken bool
		code   Code
		detail string
	}{
		{d.Grounded == d.Refused, InvalidMode, fmt.Sprintf("the result must be either grounded or refused; both are %t", d.Grounded)},
		{d.Refused && len(d.Claims) > 0, InvalidMode, "the result is a refusal and has claims"},
		{d.Refused && d.Refusal == "", InvalidMode, "the result is a refusal without a reason"},
		{d.Grounded && len(d.Claims) == 0, InvalidMode, "the result is grounded and has no claims"},
		{d.Grounded && d.HasRefusal, InvalidMode, "the result is grounded and has a refusal"},
		{d.Domain != domain, OtherDomain, "the result is of domain " + bundle.Quote(d.Domain) + ", the bundle was sealed for " + bundle.Quote(domain)},
	} {
		if rule.broken {
			out = append(out, Finding{Code: rule.code, Where: "result", Detail: rule.detail})
		}
	}
	return out
}

// classify sets the taxonomy, and returns the domain when the content can be
// re-executed. It looks at what is there, never at the label of the closure.
func (r *Result) classify(b *bundle.Bundle, known Registry) *Domain {
	for _, d := range known {
		if d.Name == r.Domain {
			r.Installed = appendNew(r.Installed, d.Version)
		}
	}
	domain, reason := known.Find(b)
	if reason != nil {
		r.Taxonomy, r.Reason = NotEvaluable, reason
		return nil
	}
	nodes := b.Closure.Get("graph").Get("nodes")
	if nodes.Kind() != bundle.Array || nodes.Len() == 0 || b.Closure.Get("kb").Kind() != bundle.Object {
		r.Taxonomy = IntegrityOnly
		r.Reason = &Finding{Code: NoGraph, Where: "evidence_closure",
			Detail: "the file packages no graph and kb that the verdicts could be re-executed from; only digests were checked"}
		return nil
	}
	r.Taxonomy = ReDerived
	return domain
}

// sealedShapes reads engine.claim_shapes. What is not a list of strings equals
// no list of ours.
func sealedShapes(b *bundle.Bundle) []string {
	list := b.Engine.Get("claim_shapes")
	shapes := []string{}
	for _, item := range list.Items() {
		if item.Kind() != bundle.String {
			return []string{""}
		}
		shapes = append(shapes, item.Text())
	}
	if list.Kind() != bundle.Array {
		return []string{""}
	}
	return shapes
}

// execution is one re-execution.
type execution struct {
	b       *bundle.Bundle
	known   Registry
	domain  *Domain
	closure *Closure
	result  *Result
}

// chain says that the evidence is other bundles.
func (e *execution) chain() bool { return e.domain.Name == ChainDomain }

func (e *execution) all() {
	e.checkKind()
	if !e.checkReferences() {
		return
	}
	if e.chain() {
		e.checkChain()
	}
	if err := e.checkClaims(); err != nil {
		e.failed(err)
		return
	}
	if !e.closure.Partial {
		if err := e.checkAnswer(); err != nil {
			e.failed(err)
			return
		}
	}
	if e.b.Action.Kind() == bundle.Object {
		if err := e.checkAction(); err != nil {
			e.failed(err)
		}
	}
}

func (e *execution) failed(err error) {
	e.result.Answer, e.result.AnswerCause = AnswerDiffers, nil
	e.result.structural(ReexecutionFailed, "evidence_closure", "the packaged evidence cannot be evaluated: %s", bundle.Quote(err.Error()))
}

func (e *execution) checkKind() {
	want := bundle.KindFull
	if e.chain() {
		want = bundle.KindChain
	}
	if kind := e.b.Closure.Get("kind"); kind.Kind() != bundle.String || kind.Text() != want {
		e.result.structural(WrongClosureKind, "evidence_closure.kind",
			"the closure is not of kind %q, as domain %q demands; the label does not change what is re-executed", want, e.domain.Name)
	}
}

// maxReferences bounds the list of dangling references that is kept.
const maxReferences = 1000

// references collects dangling references, each text once.
type references struct {
	e    *execution
	seen map[string]bool
	more int
}

// checkReferences demands that whatever an edge, a resolution, a mention or a
// claim names is a node, and says whether it is. Names of withheld nodes are
// not judged.
func (e *execution) checkReferences() bool {
	r := &references{e: e, seen: map[string]bool{}}
	g := e.closure.Graph
	for i := range g.Edges {
		r.need(g.Edges[i].Src, func() string { return "an edge " + bundle.Quote(g.Edges[i].Relation) + " starts at" })
		r.need(g.Edges[i].Dst, func() string { return "an edge " + bundle.Quote(g.Edges[i].Relation) + " ends at" })
	}
	for i := range g.Resolutions {
		r.need(g.Resolutions[i].NodeA, func() string { return "a resolution names" })
		r.need(g.Resolutions[i].NodeB, func() string { return "a resolution names" })
	}
	for i := range g.Mentions {
		r.need(g.Mentions[i].Chunk, func() string { return "a mention names" })
		r.need(g.Mentions[i].Node, func() string { return "a mention names" })
	}
	for i := range e.result.Recorded.Claims {
		for _, s := range e.result.Recorded.Claims[i].Support {
			r.need(s.ID, func() string { return fmt.Sprintf("claim %d cites", i) })
		}
	}
	if r.more > 0 {
		e.result.structural(MoreFindings, "evidence_closure", "%d more references to absent nodes", r.more)
	}
	return len(r.seen) == 0
}

// need records a reference to a node that is not there; who says who refers
// to it.
func (r *references) need(id string, who func() string) {
	if r.e.closure.Graph.Node(id) != nil || r.e.closure.Withheld[id] {
		return
	}
	detail := who() + " " + bundle.Quote(id) + ", which is absent from the packaged evidence"
	if r.seen[detail] {
		return
	}
	if len(r.seen) == maxReferences {
		r.more++
		return
	}
	r.seen[detail] = true
	r.e.result.structural(DanglingReference, "node:"+id, "%s", detail)
}
