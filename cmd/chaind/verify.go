package main

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/verifier"
)

type verifyCmd struct {
	Files []string `arg:"" help:"Evidence files, trust bundles and exports (directories or ZIP files), told apart by their content; - reads standard input."`

	trustFlags

	RunID         string `name:"run-id" help:"This run must be sealed in the chain." placeholder:"ID"`
	Artifact      string `help:"Run snapshot of --run-id: its JSON body or the stored blob." type:"path" placeholder:"FILE"`
	ExpectHead    string `help:"The chain, or the run of a trust bundle, must end in this head." placeholder:"HEX"`
	ExpectPlan    string `help:"The first and the last plan that the chain committed to must be this one." placeholder:"HEX"`
	ExpectOutcome string `help:"The run of a trust bundle must have ended so: succeeded, failed, cancelled, abandoned, or open." placeholder:"WORD"`
	IntegrityOnly bool   `help:"Leave the content of trust bundles unchecked. The verdict says so, and is never a pass."`
	RequireSteps  bool   `help:"Every step of the plan must have been executed."`

	Reference bool   `help:"Judge as Plasm's own verifier would, instead of strictly."`
	Schema    string `help:"Accepted for compatibility, and not used." hidden:"" placeholder:"DIR"`
	JSON      bool   `help:"Print JSON."`
}

func (c *verifyCmd) Help() string {
	return `Checks need no network, no daemon and no credentials. The trusted keys of --trusted-pubkey, --trust-file and
PLASM_EVIDENCE_TRUSTED_PUBLIC_KEYS add up; with any of them, a file must be signed by one of them.

Of a trust bundle (.tsb) every digest is recomputed, and its question is answered again from the evidence in the
file: what a pass says follows from that evidence. docs/trust-bundles.md explains the verdicts.

Exit code, the worst of all files (1 before 4 before 2 before 5 before 3 before 0):
  0  pass
  2  plan, order or seal do not hold; a claim, answer or upstream of a trust bundle does not re-derive
  3  nothing failed, but not everything is established: an unsealed chain, a domain that is unknown here, …
  4  the file cannot be read, or its chain, head, digests or signature are broken
  5  --expect-outcome is not met
  64 usage; 1 an artifact, key or trust list could not be read

Examples:
  chaind verify run.evidence.json
  chaind verify --trusted-pubkey "$(cat signing.key.pub)" evidence/heads/*.evidence.json
  chaind verify --expect-outcome succeeded --trust-file keys.yaml run.tsb
  chaind verify --run-id pr5c… --artifact snapshot.json run.evidence.json
  curl -s http://127.0.0.1:8477/execute/…/evidence | chaind verify --json -`
}

func (c *verifyCmd) Run(a *app) error {
	options, err := c.options(a)
	if err != nil {
		return err
	}
	worst := exitOK
	var told []byte // reports in JSON; whole ones would keep their bundles in memory
	tell := func(r verified) (err error) {
		worst = verifier.WorstExit(worst, r.report.ExitCode)
		if c.JSON {
			told, err = r.appendJSON(told)
			return err
		}
		return r.print(a)
	}
	for _, name := range c.Files {
		found, err := c.verifyExport(a, name, options, tell)
		if err == nil && !found {
			err = tell(verified{name, c.verify(a, name, options)})
		}
		if err != nil {
			return err
		}
	}
	if c.JSON {
		if err := printReports(a, told, worst); err != nil {
			return err
		}
	}
	if worst != exitOK {
		return silent(worst)
	}
	return nil
}

// verified is one file with its report.
type verified struct {
	name   string
	report *verifier.Report
}

// options turns the flags into the verifier's; what the user typed wrongly is
// a usage error, what could not be read is not.
func (c *verifyCmd) options(a *app) (verifier.Options, error) {
	o := verifier.Options{
		RequireSigned: c.RequireSigned, AllowUnsigned: c.AllowUnsigned, RequireSteps: c.RequireSteps,
		RunID: c.RunID, ExpectPlan: c.ExpectPlan, ExpectOutcome: c.ExpectOutcome, IntegrityOnly: c.IntegrityOnly,
	}
	if c.Reference {
		o.Mode = verifier.Reference
	}
	if c.Artifact != "" && strings.TrimSpace(c.RunID) == "" {
		return o, usageError("--artifact needs --run-id: a snapshot is checked against the seal of one run")
	}
	if c.ExpectHead != "" {
		head, err := segments.ParseDigest(c.ExpectHead)
		if err != nil {
			return o, usageError("--expect-head: %w", err)
		}
		o.ExpectHead = &head
	}
	if c.ExpectPlan != "" {
		if _, err := segments.ParseDigest(c.ExpectPlan); err != nil {
			return o, usageError("--expect-plan: %w", err)
		}
	}
	var err error
	if o.Trust, err = c.trust(a); err != nil {
		return o, err
	}
	if o.Artifact, err = readArtifact(a, c.Artifact); err != nil {
		return o, err
	}
	if err := o.Validate(); err != nil {
		return o, usageError("%w", err)
	}
	return o, nil
}

func readArtifact(a *app, path string) (*segments.SealDocument, error) {
	if path == "" {
		return nil, nil
	}
	body, err := readInput(a, path)
	if err != nil {
		return nil, err
	}
	document, err := segments.DecodeSealDocument(body)
	if err != nil {
		return nil, cannot(fmt.Errorf("read artifact %s: %w", path, err), "the full snapshot document is needed, not the projection that an agent is shown")
	}
	return document, nil
}

// verify judges one file. A file that cannot be opened has an unreadable
// envelope; the reader that always fails says so in the report.
func (c *verifyCmd) verify(a *app, name string, o verifier.Options) *verifier.Report {
	o.Progress = a.verifyProgress(name)
	if name == "-" {
		return verifier.File(a.ctx, a.stdin, o)
	}
	f, err := a.open(name)
	if err != nil {
		return verifier.File(a.ctx, failing{err}, o)
	}
	defer f.Close()
	defer boundMemory(f)()
	if path, err := filepath.Abs(name); err == nil {
		o.Location = verifier.LocationOf(filepath.ToSlash(path))
	}
	return verifier.File(a.ctx, a.reading(f), o)
}

// failing is a reader of a file that could not be opened.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// slowWork is how long a verification may be silent on a terminal.
const slowWork = time.Second

// verifyProgress shows how far a long verification is, on a terminal.
func (a *app) verifyProgress(name string) func(verifier.Progress) {
	if !isTerminal(a.stderr) {
		return nil
	}
	start := a.now()
	shown := start
	return func(p verifier.Progress) {
		now := a.now()
		if now.Sub(start) < slowWork || now.Sub(shown) < slowWork/10 {
			return
		}
		shown = now
		fmt.Fprintf(a.stderr, "\r\x1b[K%s: %d segments, %d MiB\r", verifier.Escape(name), p.Segments, p.Bytes>>20)
	}
}

// appendJSON appends {"file":name,"report":{…}}, after a comma if something
// stands there.
func (v verified) appendJSON(text []byte) ([]byte, error) {
	if len(text) > 0 {
		text = append(text, ',')
	}
	text = append(text, `{"file":`...)
	text, err := jsontext.AppendQuote(text, strings.ToValidUTF8(v.name, "\uFFFD"))
	if err != nil {
		return nil, err
	}
	text = append(text, `,"report":`...)
	return append(v.report.AppendJSON(text), '}'), nil
}

// printReports writes {"files":[{"file":name,"report":{…}},…],"exit_code":n}.
func printReports(a *app, files []byte, worst int) error {
	value := jsontext.Value(fmt.Appendf(nil, `{"files":[%s],"exit_code":%d}`, files, worst))
	if err := value.Indent(jsontext.WithIndent("  ")); err != nil {
		return err
	}
	_, err := a.stdout.Write(inert(append(value, '\n')))
	return err
}

// print writes a block for the file: the checks, what was found, and last the
// verdict. Only verdict lines begin in the first column, and whatever comes
// from a file is escaped, so that a file cannot imitate one.
func (v verified) print(a *app) error {
	var out bytes.Buffer
	writeVerdict(&out, v, colours(a.stdout))
	_, err := out.WriteTo(a.stdout)
	return err
}

func writeVerdict(w io.Writer, v verified, colour bool) {
	r := v.report
	writeChecks(w, r.Checks)
	writeFindings(w, "error", r.Errors)
	writeFindings(w, "warning", r.Warnings)
	if r.Signature.State != "" {
		fmt.Fprintf(w, "  signature state %s%s\n", r.Signature.State, signer(r.Signature))
	}
	if r.ComputedHead != nil {
		fmt.Fprintf(w, "  head %s\n", r.ComputedHead)
	}
	writeContent(w, r.Content)
	fmt.Fprintf(w, "%s %s: %s (exit %d)\n", paint(string(r.Verdict), r.ExitCode, colour), verifier.Escape(v.name), r.Summary, r.ExitCode)
}

// writeChecks writes what became of each check; what did not run is named, too,
// in one line where nothing could be read and all of it has that one reason.
func writeChecks(w io.Writer, checks []verifier.Check) {
	names := map[verifier.Status][]string{}
	for _, check := range checks {
		names[check.Status] = append(names[check.Status], check.Name)
	}
	folded := slices.Contains(names[verifier.StatusFail], "read")
	for _, check := range checks {
		if check.Status == verifier.StatusNotApplicable || folded && check.Status == verifier.StatusSkipped {
			continue
		}
		fmt.Fprintf(w, "  %-16s %-8s %s\n", check.Name, check.Status, check.Detail)
	}
	if folded {
		fmt.Fprintf(w, "  could not run: %s\n", strings.Join(names[verifier.StatusSkipped], ", "))
	}
	if idle := names[verifier.StatusNotApplicable]; len(idle) > 0 {
		fmt.Fprintf(w, "  not applicable, or not asked for: %s\n", strings.Join(idle, ", "))
	}
}

// signer names who signed: the key's id, and what the trust list says of it.
func signer(s verifier.Signature) string {
	if s.KeyID == "" {
		return ""
	}
	text := " by key " + s.KeyID
	if s.Comment != "" {
		text += " (" + verifier.Escape(s.Comment) + ")"
	}
	return text
}

func writeFindings(w io.Writer, word string, list []verifier.Finding) {
	for _, f := range list {
		fmt.Fprintf(w, "  %s %s: %s", word, f.Code, f.Detail)
		if f.More > 0 {
			fmt.Fprintf(w, " (and %d more)", f.More)
		}
		fmt.Fprintln(w)
	}
}

// paint colours a verdict: green for a pass, yellow for degraded, else red.
func paint(word string, exit int, colour bool) string {
	if !colour {
		return word
	}
	code := map[int]int{exitOK: 32, exitDegraded: 33}[exit]
	if code == 0 {
		code = 31
	}
	return fmt.Sprintf("\x1b[1;%dm%s\x1b[0m", code, word)
}
