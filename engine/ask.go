package engine

import (
	"errors"
	"fmt"

	"github.com/chaind/chaind/bundle"
)

// Errors of Ask. What is wrong is in the text of the error that wraps them.
var (
	ErrUnsound        = errors.New("the evidence of the bundle cannot be asked") // envelope broken, something withheld, references that lead nowhere
	ErrNoDomain       = errors.New("no domain to ask")
	ErrNoAction       = errors.New("no such action")
	ErrActionWithheld = errors.New("the answer yields no action")
)

// Question is what to ask of the evidence in a bundle.
type Question struct {
	Text    string
	Action  string // kind of the action to draft from the answer; "": none
	Version string // engine version to answer under; "": the one that the bundle was sealed under
}

// Ask answers a question from the evidence that a bundle packages, and prepares
// the bundle that seals evidence, question and answer: asked what the bundle
// records, under its version, it prepares the same bundle. A chain answers from
// its upstreams, which must all pass. The answer recorded in b is not looked at.
//
// It fails with one of the errors above, with a *bundle.FormatError, with a
// *ChainError, or with whatever the domain's router or grammars fail with.
func Ask(b *bundle.Bundle, known Registry, q Question) (*bundle.Draft, *Decision, error) {
	if err := sound(b); err != nil {
		return nil, nil, err
	}
	d, err := known.of(b, q.Version)
	if err != nil {
		return nil, nil, err
	}
	var out *bundle.Draft
	var decision *Decision
	if d.Name == ChainDomain {
		out, decision, err = askChain(b, d, known, q.Text)
	} else {
		out, decision, err = askGraph(b, d, q.Text)
	}
	if err != nil || q.Action == "" {
		return out, decision, err
	}
	if d.DraftAction == nil {
		return nil, nil, fmt.Errorf("%w: domain %q has none", ErrNoAction, d.Name)
	}
	if out.Action, err = d.DraftAction(q.Action, decision); err != nil {
		return nil, nil, err
	}
	return out, decision, nil
}

// sound checks the envelope of a bundle.
func sound(b *bundle.Bundle) error {
	integrity, err := b.CheckIntegrity()
	if err != nil {
		return err
	}
	if len(integrity.Findings) > 0 {
		return fmt.Errorf("%w: %s", ErrUnsound, integrity.Findings[0].Detail)
	}
	signature, err := b.CheckSignature()
	if err != nil {
		return err
	}
	if signature.Finding != nil {
		return fmt.Errorf("%w: %s", ErrUnsound, signature.Finding.Detail)
	}
	return nil
}

// of returns the domain of a bundle under an engine version; "": as sealed.
func (r Registry) of(b *bundle.Bundle, version string) (*Domain, error) {
	name, err := engineText(b, "domain")
	if err != nil {
		return nil, err
	}
	if version == "" {
		if version, err = engineText(b, "tessera_version"); err != nil {
			return nil, err
		}
		d, reason := r.find(name, version, sealedShapes(b))
		if reason != nil {
			return nil, fmt.Errorf("%w: %s", ErrNoDomain, reason.Detail)
		}
		return d, nil
	}
	for _, d := range r {
		if d.Name == name && d.Version == version {
			return d, nil
		}
	}
	return nil, fmt.Errorf("%w: %q is not known under the engine version %q", ErrNoDomain, name, version)
}

func askGraph(b *bundle.Bundle, d *Domain, question string) (*bundle.Draft, *Decision, error) {
	closure, err := ReadClosure(b)
	if err != nil {
		return nil, nil, err
	}
	if closure.Partial {
		return nil, nil, fmt.Errorf("%w: part of it is withheld", ErrUnsound)
	}
	run := &execution{closure: closure, result: &Result{Recorded: &Decision{}}}
	if !run.checkReferences() {
		return nil, nil, fmt.Errorf("%w: %s", ErrUnsound, run.result.Structural[0].Detail)
	}
	return NewDraft(d, question, closure.Graph, closure.KB)
}

func askChain(b *bundle.Bundle, d *Domain, known Registry, question string) (*bundle.Draft, *Decision, error) {
	var upstreams []*bundle.Bundle
	for i, item := range b.Upstream().Items() {
		u, err := bundle.Open(item)
		if err != nil {
			return nil, nil, fmt.Errorf("upstream %d: %w", i, err)
		}
		upstreams = append(upstreams, u)
	}
	return NewChain(d, question, upstreams, known)
}
