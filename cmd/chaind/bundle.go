package main

import (
	"bytes"
	"errors"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/domains"
	"github.com/chaind/chaind/verifier"
)

type bundleCmd struct {
	Question string `arg:"" optional:"" help:"What to ask of the evidence; left out with all but --from: what it establishes about the run."`

	Evidence string   `help:"Make the bundle of the run in this evidence file; - reads standard input." xor:"source" placeholder:"FILE"`
	Plan     []string `help:"Compiled plan to package with --evidence (may be repeated)." sep:"none" placeholder:"FILE"`
	Artifact []string `help:"Run snapshot to package with --evidence, reduced to what its seal needs (may be repeated)." sep:"none" placeholder:"FILE"`
	Intent   string   `help:"Text of the intent to package with --evidence." placeholder:"FILE"`

	From   string `help:"Ask the evidence in this trust bundle; - reads standard input." xor:"source" placeholder:"FILE"`
	Action string `help:"Draft an action from the answer with --from, never to be sent from here: incident or pr_summary." placeholder:"NAME"`

	Chain string `help:"Fetch the bundle of this chain from the daemon: TENANT/PROMPT/SESSION/CHAIN, _ for the empty tenant." xor:"source" placeholder:"CHAIN"`
	RunID string `name:"run" help:"Fetch the bundle of the run with this id from the daemon." xor:"source" placeholder:"ID"`

	apiFlags
	signFlags
	outputFlags
}

func (c *bundleCmd) Help() string {
	return `Writes a trust bundle: a question, the answer, and the evidence that the answer is derived from again by whoever verifies
it. What is written has been verified, and its verdict is shown.

With --evidence the evidence is one run. An evidence file does not say how its run ended or whether the record is
complete, so such a bundle is never a full pass; the bundles that the daemon seals are. With --from it is that of
another bundle, which must not fail; the old answer does not enter the new one.

With --chain or --run the bundle is the daemon's: the one that was sealed when the chain ended or, of an open chain, an unsigned
one as of now. Without a question it is written as it came; with one, the evidence in it is asked.

Exit codes: 0 written; 2 the file does not hold, a plan, snapshot or intent is not of this run, or the answer yields no such action;
4 the file is unreadable or broken; 1 the key or the output; 64 usage.

Examples:
  chaind bundle --run pr… -o run.tsb
  chaind bundle --chain acme/PROMPT/SESSION/CHAIN "Which steps of this run were executed?" -o steps.tsb
  chaind bundle --evidence run.evidence.json --plan comp.json --artifact snapshot.json -o run.tsb
  chaind bundle --from run.tsb "Which steps of this run were executed?" -o steps.tsb
  chaind bundle --from ci.tsb "Why did run R-1042 fail?" --action incident -o incident.tsb`
}

func (c *bundleCmd) Run(a *app) error {
	if c.Chain != "" || c.RunID != "" {
		return c.fromDaemon(a)
	}
	signer, err := c.signer(a)
	if err != nil {
		return err
	}
	draft, err := c.draft(a)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if _, err := bundle.Write(&out, draft, signer.Standard()); err != nil {
		return cannot(err, "")
	}
	return c.write(a, out.Bytes())
}

func (c *bundleCmd) draft(a *app) (*bundle.Draft, error) {
	packaged := len(c.Plan)+len(c.Artifact) > 0 || c.Intent != ""
	switch {
	case c.Evidence != "" && c.Action != "":
		return nil, usageError("--action is for --from: a run yields no action")
	case c.Evidence != "":
		return c.fromEvidence(a)
	case c.From == "":
		return nil, usageError("there is no evidence: give --chain, --run, --evidence or --from")
	case packaged:
		return nil, usageError("--plan, --artifact and --intent are for --evidence")
	case c.Question == "":
		return nil, usageError("--from needs a question")
	}
	return c.fromBundle(a)
}

func (c *bundleCmd) fromBundle(a *app) (*bundle.Draft, error) {
	b, _, err := a.trustBundle(c.From, verifier.Options{}, exitOK, exitDegraded)
	if err != nil {
		return nil, err
	}
	draft, _, err := engine.Ask(b, domains.All(), engine.Question{Text: c.Question, Action: c.Action})
	if errors.Is(err, engine.ErrNoAction) {
		return nil, usageError("--action %s: %w", c.Action, err)
	}
	if err != nil {
		return nil, &problem{code: exitSemantic, err: err}
	}
	return draft, nil
}
