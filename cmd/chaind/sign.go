package main

import (
	"bytes"
	"fmt"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/verifier"
)

type signCmd struct {
	File string `arg:"" help:"Trust bundle to sign; - reads standard input."`

	signFlags
	ReplaceSignature bool `help:"Put your signature in the place of the one that is there."`
	outputFlags
}

func (c *signCmd) Help() string {
	return `Verifies the bundle, signs its root, and writes a copy that carries the signature. The root stays the same. A bundle that
fails is not signed; one that is not wholly established is, and you are told what you put your name to.

Exit codes: 0 written; 2, 4 the bundle fails and nothing is written; 1 the key or the output; 64 usage.

Examples:
  chaind sign run.tsb --signing-key signing.key -o run.signed.tsb
  chaind sign run.tsb --signing-agent SHA256:… -o run.signed.tsb`
}

func (c *signCmd) Run(a *app) error {
	signer, err := c.signer(a)
	if err != nil {
		return err
	}
	if signer == nil {
		return usageError("%w", errNoKey)
	}
	b, r, err := a.trustBundle(c.File, verifier.Options{}, exitOK, exitDegraded)
	if err != nil {
		return err
	}
	if r.Verdict == verifier.Empty {
		return &problem{code: exitDegraded, err: fmt.Errorf("%s is empty: there is nothing that a signature could stand for", c.File)}
	}
	if r.Signature.PublicKey != "" && !c.ReplaceSignature {
		return cannot(fmt.Errorf("%s is signed already, by key %s", c.File, r.Signature.KeyID), "--replace-signature puts yours in its place")
	}
	if r.ExitCode != exitOK {
		fmt.Fprintf(a.stderr, "chaind: warning: you sign what is not wholly established: %s\n", r.Summary)
	}
	var out bytes.Buffer
	if err := bundle.WriteSigned(&out, b, signer.Standard()); err != nil {
		return cannot(err, "")
	}
	return c.write(a, out.Bytes())
}
