package main

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/domains"
	"github.com/chaind/chaind/verifier"
)

type chainCmd struct {
	Question string   `arg:"" help:"What the chain answers from the claims of the bundles."`
	Files    []string `arg:"" help:"Trust bundles to cite, of any domain; chains too."`

	trustFlags
	signFlags
	outputFlags
}

func (c *chainCmd) Help() string {
	return `Verifies every bundle, takes those of their claims that re-derive, and answers the question from them. The chain
embeds the bundles whole, so that whoever verifies it verifies them too. A bundle that does not pass is refused, by
name: a chain cites only what re-verifies. Chains may cite chains, 16 above one another at most.

Exit codes: 0 written; 2 a bundle fails, is not wholly established, is given twice or leaves nothing to cite; 4 a bundle
is unreadable, broken, or not signed as --trusted-pubkey asks; 1 the key or the output; 64 usage.

Examples:
  chaind chain "Which steps were executed?" plan.tsb run.tsb -o brief.tsb
  chaind chain --trust-file keys.yaml --signing-key signing.key "What was decided?" a.tsb b.tsb -o brief.tsb`
}

func (c *chainCmd) Run(a *app) error {
	options, err := c.options(a)
	if err != nil {
		return err
	}
	signer, err := c.signer(a)
	if err != nil {
		return err
	}
	var upstreams []*bundle.Bundle
	for _, name := range c.Files {
		b, err := c.upstream(a, name, options)
		if err != nil {
			return err
		}
		upstreams = append(upstreams, b)
	}
	draft, _, err := engine.NewChain(engine.Chain(engine.ChainVersion), c.Question, upstreams, domains.All())
	if err != nil {
		return c.refusal(err)
	}
	var out bytes.Buffer
	if _, err := bundle.Write(&out, draft, signer.Standard()); err != nil {
		return cannot(err, "")
	}
	return c.write(a, out.Bytes())
}

func (c *chainCmd) options(a *app) (verifier.Options, error) {
	trust, err := c.trust(a)
	if err != nil {
		return verifier.Options{}, err
	}
	o := verifier.Options{Trust: trust, RequireSigned: c.RequireSigned, AllowUnsigned: c.AllowUnsigned}
	if err := o.Validate(); err != nil {
		return verifier.Options{}, usageError("%w", err)
	}
	return o, nil
}

// upstream verifies a bundle that is to be cited.
func (c *chainCmd) upstream(a *app, name string, o verifier.Options) (*bundle.Bundle, error) {
	b, _, err := a.trustBundle(name, o, exitOK)
	var p *problem
	if errors.As(err, &p) && p.code != exitUsage {
		p.err = fmt.Errorf("a chain cites only what re-verifies; %w", p.err)
		if p.code == exitDegraded {
			p.code = exitSemantic // nothing was written: not a degraded result
		}
	}
	return b, err
}

// refusal names the bundle over which a chain cannot be built.
func (c *chainCmd) refusal(err error) error {
	var e *engine.ChainError
	if !errors.As(err, &e) {
		return &problem{code: exitSemantic, err: err}
	}
	if e.Upstream >= 0 {
		err = fmt.Errorf("%s: %w", c.Files[e.Upstream], err)
	}
	return &problem{code: exitSemantic, err: err}
}
