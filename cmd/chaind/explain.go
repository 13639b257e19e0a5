package main

import (
	"bytes"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	runs "github.com/chaind/chaind/engine/run"
	"github.com/chaind/chaind/verifier"
)

type explainCmd struct {
	File string `arg:"" help:"Trust bundle; - reads standard input."`

	trustFlags
	Full bool `help:"Cut no text short."`
	JSON bool `help:"Print JSON."`
}

func (c *explainCmd) Help() string {
	return `Verifies the bundle as chaind verify does, and shows the question, each claim with what became of it, the evidence it
cites, what is withheld, the action and the embedded bundles. What the file says of itself is never shown as a
verdict, and of a broken file nothing is called established.

Marks: [re-derived] follows from the evidence in the file; [UNSUPPORTED] does not, though the file says so; [ALTERED] the
recorded verdict or a quotation was changed; [unverified] does not follow, and the file does not say that it does; [withheld] rests
on evidence that is not in the file; [not evaluated] was not executed here.

The exit code is that of chaind verify. --json prints {"file","report","explanation"}; the report is that of chaind
verify --json, the explanation has question, refusal, claims with their evidence, evidence counts and the action.

Examples:
  chaind explain run.tsb
  chaind explain --full --trust-file keys.yaml brief.tsb`
}

func (c *explainCmd) Run(a *app) error {
	trust, err := c.trust(a)
	if err != nil {
		return err
	}
	o := verifier.Options{Trust: trust, RequireSigned: c.RequireSigned, AllowUnsigned: c.AllowUnsigned}
	if err := o.Validate(); err != nil {
		return usageError("%w", err)
	}
	r := a.judge(c.File, o)
	if r.Kind != verifier.KindTrustBundle && r.Segments > 0 {
		return usageError("%s is an evidence bundle; chaind verify shows what it holds", c.File)
	}
	e := explain(r)
	if c.JSON {
		err = c.printJSON(a, r, e)
	} else {
		err = c.printText(a, r, e)
	}
	if err != nil {
		return err
	}
	if r.ExitCode != exitOK {
		return silent(r.ExitCode)
	}
	return nil
}

func (c *explainCmd) printJSON(a *app, r *verifier.Report, e *explanation) error {
	return a.printJSON(struct {
		File        string         `json:"file"`
		Report      jsontext.Value `json:"report"`
		Explanation *explanation   `json:"explanation"`
	}{c.File, r.AppendJSON(nil), e})
}

// printText ends in the verdict. Only that line begins in the first column.
func (c *explainCmd) printText(a *app, r *verifier.Report, e *explanation) error {
	var out bytes.Buffer
	if e != nil {
		p := &printer{&out, limits{100, 400}}
		if c.Full {
			p.limits = limits{}
		}
		p.standing(r)
		p.head(r, e)
		p.claims(r, e)
		p.evidence(r, e)
		p.action(e)
	}
	writeFindings(&out, "error", r.Errors)
	fmt.Fprintf(&out, "%s %s: %s (exit %d)\n", paint(string(r.Verdict), r.ExitCode, colours(a.stdout)), verifier.Escape(c.File), r.Summary, r.ExitCode)
	_, err := out.WriteTo(a.stdout)
	return err
}

// limits are numbers of code points; 0: none.
type limits struct{ snippet, body int }

type printer struct {
	w      io.Writer
	limits limits
}

func (p *printer) line(label, format string, args ...any) {
	fmt.Fprintf(p.w, "  %-10s %s\n", label, fmt.Sprintf(format, args...))
}

// standing says before anything else how much the rest is worth.
func (p *printer) standing(r *verifier.Report) {
	switch r.Verdict {
	case verifier.Pass:
		return
	case verifier.Broken:
		p.line("CAUTION", "the file is BROKEN: it is not what was sealed. Nothing that follows is established.")
	case verifier.Untrusted:
		p.line("CAUTION", "nobody whom you trust signed this file.")
	case verifier.Fail:
		p.line("CAUTION", "this bundle FAILS. Of what the file says, only what is marked [re-derived] holds.")
	default:
		p.line("NOTE", "not everything that follows is established; the marks and the last line say what is.")
	}
}

func (p *printer) head(r *verifier.Report, e *explanation) {
	c := r.Content
	p.line("root", "%s, signature %s%s", verifier.Escape(c.StoredRoot), r.Signature.State, signer(r.Signature))
	if c.Result != nil {
		p.line("domain", "%s under engine version %s: %s", cut(c.Result.Domain, 200), cut(c.Result.Version, 200), c.Result.Taxonomy)
	}
	if s := c.Run; s != nil {
		p.line("run", "%s%s, %s, coverage %s%s, chain %s in session %s", s.Outcome, because(s.Reason), s.Conformity, s.Coverage, earlier(s, c.Result.Version), verifier.Escape(s.Chain), verifier.Escape(s.Session))
	}
	p.line("question", "%s", cut(e.Question, 0))
}

// earlier says that a run is complete only by the rule of an earlier version.
func earlier(s *runs.Summary, version string) string {
	if !s.Midway {
		return ""
	}
	return " (only as " + version + " has it: nothing that the producer declared covers the end)"
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + cut(reason, 200) + ")"
}

func (p *printer) claims(r *verifier.Report, e *explanation) {
	if e.Refusal != nil {
		p.line("refusal", "[%s] %s", e.answer, cut(*e.Refusal, 0))
	}
	for _, c := range e.Claims {
		p.line("claim "+fmt.Sprint(c.Index), "[%s] %s", c.mark, cut(c.Text, 0))
		for _, record := range c.Evidence {
			p.line("", "  - %s (%s) %q", cut(record.Source, 200), cut(record.Locator, 200), rawCut(record.Text, p.limits.snippet))
		}
	}
	for _, u := range r.Content.Upstreams {
		p.line("upstream", "%s", upstreamLine(&u))
	}
}

func (p *printer) evidence(r *verifier.Report, e *explanation) {
	withheld := ""
	if n := e.Evidence.Withheld; n > 0 {
		withheld = fmt.Sprintf("; %d items withheld", n)
	}
	p.line("evidence", "%d records cited of %d packaged%s", e.Evidence.Cited, e.Evidence.Packaged, withheld)
}

func (p *printer) action(e *explanation) {
	act := e.Action
	if act == nil {
		return
	}
	p.line("action", "[%s] %s: %s %s", act.Verdict, cut(act.Kind, 200), cut(act.Method, 200), cut(act.Path, 200))
	p.line("", "  outcome %s, body %s", cut(act.Outcome, 200), cut(act.Body, p.limits.body))
	for _, slot := range act.Slots {
		p.line("", "  %s/%s %s", cut(slot.Part, 200), cut(slot.Role, 200), cut(slot.Value, p.limits.snippet))
	}
}

// rawCut cuts a text that is quoted, and so escaped, afterwards.
func rawCut(text string, limit int) string {
	runes := []rune(text)
	if limit == 0 || len(runes) <= limit {
		return text
	}
	return string(runes[:limit]) + fmt.Sprintf("… (+%d characters)", len(runes)-limit)
}
