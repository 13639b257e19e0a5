package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/export"
	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/verifier"
	"github.com/chaind/chaind/web"
)

type exportCmd struct {
	apiFlags
	RunID   string `name:"run" help:"Chains that carry a seal of this run id." placeholder:"ID"`
	Chain   string `help:"Chains of this name." placeholder:"NAME"`
	Session string `help:"Chains of this session (32 hex digits)." placeholder:"HEX"`
	Tenant  string `help:"Chains of this tenant; _ is the empty one." placeholder:"NAME"`
	Since   string `help:"Chains with an event since then: a time (RFC 3339), or how long ago, as 36h." placeholder:"TIME"`
	All     bool   `help:"All chains."`
	Output  string `short:"o" required:"" help:"Directory, or file ending in .zip; must not exist." type:"path" placeholder:"DIR|FILE.zip"`

	signFlags
}

func (c *exportCmd) Help() string {
	return `Writes a folder that an auditor needs nothing else for: evidence and trust bundles of the chosen chains, what came late
or was rejected, public keys, a printable report, a page that verifies in the browser without a network, and a list of all
that, signed when there is a key. Nothing is left at -o when it fails. docs/export.md describes the folder.

Evidence that the daemon has and cannot give, as one whose file was damaged, or a chain that is damaged in its database, does
not stop the others: its answer is put into the place, the report says so, and the exit code is 3. It is 0 when all is there,
and 1 when nothing was written.

Examples:
  chaind export --chain incident-4711 -o incident-4711.zip
  chaind export --session 5e55107a5e55107a5e55107a5e55107a --signing-key signing.key -o handover
  chaind export --since 24h --data-dir chaind-data -o yesterday.zip
  chaind verify --trusted-pubkey "$(cat signing.key.pub)" handover`
}

// exporting is an export under way.
type exporting struct {
	source   *source
	sink     sink
	manifest export.Manifest
	report   exportReport
	bytes    int64 // of all files so far
}

func (c *exportCmd) Run(a *app) (err error) {
	query, what, err := c.selection(a)
	if err != nil {
		return err
	}
	signer, err := c.signer(a)
	if err != nil {
		return err
	}
	s, err := c.source(a)
	if err != nil {
		return err
	}
	defer s.close()
	chains, err := chosen(s, query, what)
	if err != nil {
		return err
	}
	out, err := openSink(c.Output)
	if err != nil {
		return cannot(err, "choose a name that does not exist yet")
	}
	defer out.abandon()
	e := &exporting{source: s, sink: out}
	e.manifest = export.Manifest{Export: export.FormatName, CreatedMS: a.now().UnixMilli(), Selection: export.Selection{What: what},
		Chains: []export.Chain{}, Files: []export.File{}}
	if signer != nil {
		e.report.manifest = signer.Public().String()
	}
	if err := e.fill(a, chains); err != nil {
		return err
	}
	if err := e.finish(signer); err != nil {
		return err
	}
	if err := c.tell(a, signer); err != nil {
		return err
	}
	return e.refusals(a)
}

// refusals tells what the daemon did not give.
func (e *exporting) refusals(a *app) error {
	n := 0
	for i := range e.report.Chains {
		for _, r := range e.report.Chains[i].Refused {
			n++
			fmt.Fprintf(a.stderr, "chaind: not given: %s of %s: %s: %s\n", r.What, e.report.Chains[i].spelt(), verifier.Escape(r.Path), verifier.Escape(r.Detail))
		}
	}
	if n == 0 {
		return nil
	}
	return &problem{code: exitDegraded, err: fmt.Errorf("missing from the export, which says so: %d", n),
		hint: "chaind check --data-dir names what is damaged of a stopped daemon; docs/howto/restore.md says how it is made anew"}
}

// selection gives the filters for the list of chains, and their words.
func (c *exportCmd) selection(a *app) (url.Values, string, error) {
	since := c.Since
	if ago, err := time.ParseDuration(c.Since); err == nil && ago > 0 {
		since = strconv.FormatInt(a.now().Add(-ago).UnixMilli(), 10)
	}
	query := filters("run_id", c.RunID, "chain", c.Chain, "session", c.Session, "tenant", c.Tenant, "since", since)
	if len(query) == 0 && !c.All {
		return nil, "", usageError("nothing is chosen: give --run, --chain, --session, --tenant or --since, or --all")
	}
	if len(query) > 0 && c.All {
		return nil, "", usageError("--all and a choice contradict each other")
	}
	var words []string
	for _, name := range []string{"run_id", "chain", "session", "tenant", "since"} {
		if v := query.Get(name); v != "" {
			words = append(words, strings.ReplaceAll(name, "_", " ")+" "+v)
		}
	}
	what := "all chains"
	if len(words) > 0 {
		what = "chains by " + strings.Join(words, ", ")
	}
	query.Set("limit", "200")
	return query, what, nil
}

// chosen lists the chains that fit, which are some, and not more than one export
// can hold.
func chosen(s *source, query url.Values, what string) ([]chainEntry, error) {
	var chains []chainEntry
	files := filesBeside
	err := s.pages("/v1/chains", query, func(body []byte) (*string, error) {
		page, err := decodePage[struct {
			Chains []chainEntry `json:"chains"`
			Next   *string      `json:"next"`
		}](body)
		for _, c := range page.Chains {
			chains = append(chains, c)
			files += c.files()
		}
		return page.Next, err
	})
	switch {
	case err != nil:
		return nil, err
	case len(chains) == 0:
		return nil, cannot(fmt.Errorf("no chain fits: %s", what), "chaind runs lists the chains")
	case files > export.MaxFiles:
		return nil, cannot(fmt.Errorf("%d chains have %d files, and an export has at most %d", len(chains), files, export.MaxFiles), fewer)
	}
	return chains, nil
}

const fewer = "choose fewer chains, and make several exports"

// fill writes everything but the manifest.
func (e *exporting) fill(a *app, chains []chainEntry) error {
	for i := range chains {
		if err := e.chain(a, i+1, &chains[i]); err != nil {
			return err
		}
	}
	return e.beside()
}

// exportedChain is what the API says about a chain.
type exportedChain struct {
	chainKey
	Outcome     string   `json:"outcome"`
	Conformity  string   `json:"conformity"`
	Coverage    string   `json:"coverage"`
	CoverageWhy []string `json:"coverage_why"`
	Segments    int64    `json:"segments"`
	Head        *string  `json:"head"`
	RunIDs      []string `json:"run_ids"`
	Late        uint64   `json:"late"`
	Rejected    uint64   `json:"rejected"`
	EvidenceURL *string  `json:"evidence_url"`
	BundleURL   string   `json:"bundle_url"`
	Sealed      *struct {
		Path       string `json:"path"`
		BundlePath string `json:"bundle_path"`
	} `json:"sealed"`
}

// chainEntry is a chain in the list, and where there is more about it.
type chainEntry struct {
	exportedChain
	URL string `json:"url"`
}

// files is how many files the chain will have, as a list of chains tells it.
func (c *exportedChain) files() int {
	n := 1 // chain.json
	for _, there := range []bool{c.Sealed != nil && c.Sealed.Path != "", c.hasBundle(), c.Late > 0, c.Rejected > 0} {
		if there {
			n++
		}
	}
	return n
}

// chain writes the directory of one chain, or, where the daemon cannot tell of
// it, its answer: what is known of the chain then is what the list says.
func (e *exporting) chain(a *app, n int, from *chainEntry) error {
	dir := fmt.Sprintf("chains/%04d-%s/", n, from.Chain)
	status, detail, err := e.source.fetch(from.URL, maxAnswer)
	if err != nil {
		return cannot(err, e.source.hint)
	}
	if status != http.StatusOK {
		shown := reportedChain{exportedChain: from.exportedChain}
		if err := e.refused(status, detail, dir+"chain", export.RoleChain, &shown); err != nil {
			return err
		}
		e.list(from.manifested(), shown)
		return nil
	}
	c, err := decodePage[exportedChain](detail)
	if err != nil {
		return err
	}
	if err := e.add(dir+"chain.json", export.RoleChain, detail); err != nil {
		return err
	}
	listed, shown := c.manifested(), reportedChain{exportedChain: c}
	if c.EvidenceURL != nil && c.Head != nil {
		if listed.Evidence, err = e.evidence(a, *c.EvidenceURL, dir+*c.Head+".evidence", export.RoleEvidence, &shown); err != nil {
			return err
		}
	}
	if c.BundleURL != "" && c.hasBundle() {
		if listed.Bundle, err = e.evidence(a, c.BundleURL, dir+"bundle", export.RoleBundle, &shown); err != nil {
			return err
		}
	}
	if err := e.lists(&c, from.URL, dir); err != nil {
		return err
	}
	e.list(listed, shown)
	return nil
}

// list enters a chain into manifest and report.
func (e *exporting) list(listed export.Chain, shown reportedChain) {
	e.manifest.Chains = append(e.manifest.Chains, listed)
	e.report.Chains = append(e.report.Chains, shown)
}

// manifested is the chain as the manifest has it, without paths.
func (c *exportedChain) manifested() export.Chain {
	return export.Chain{Tenant: c.Tenant, PromptHash: c.PromptHash, Session: c.Session, Chain: c.Chain, Outcome: c.Outcome,
		Conformity: c.Conformity, Segments: c.Segments, Head: c.Head}
}

// hasBundle tells whether there is a trust bundle: one that was sealed, or, of
// a chain that is open, one as of now.
func (c *exportedChain) hasBundle() bool {
	open := c.Outcome == string(events.Open)
	return open && c.Segments > 0 || c.Sealed != nil && c.Sealed.BundlePath != ""
}

// endings of the names of bundles, by their role.
var endings = map[string]string{export.RoleEvidence: ".json", export.RoleBundle: ".tsb"}

// evidence writes one bundle and verifies it for the report, or, where the
// daemon does not give it, its answer; there is no path then.
func (e *exporting) evidence(a *app, from, name, role string, shown *reportedChain) (*string, error) {
	status, body, err := e.source.fetch(from, sidecar.MaxEvidence)
	if err != nil {
		return nil, cannot(err, e.source.hint)
	}
	if status != http.StatusOK {
		return nil, e.refused(status, body, name, role, shown)
	}
	path := name + endings[role]
	if err := e.add(path, role, body); err != nil {
		return nil, err
	}
	shown.Bundles = append(shown.Bundles, reportedBundle{path, verifier.File(a.ctx, bytes.NewReader(body), verifier.Options{})})
	return &path, nil
}

// refused writes the daemon's answer in the place of what it was asked for. That
// it is busy, or does not let this caller see it, is no answer about that.
func (e *exporting) refused(status int, answer []byte, name, role string, shown *reportedChain) error {
	err := refused(status, answer)
	why, ok := errors.AsType[*answerError](err)
	if !ok || status == http.StatusServiceUnavailable || status == http.StatusForbidden {
		return err
	}
	what := map[string]string{export.RoleChain: refusedRecord, export.RoleEvidence: "evidence bundle", export.RoleBundle: "trust bundle"}[role]
	shown.Refused = append(shown.Refused, reportedRefusal{what, name + ".refused.json", why.why.Error()})
	return e.add(name+".refused.json", export.RoleRefused, answer)
}

// lists writes what is beside the chain, if there is anything.
func (e *exporting) lists(c *exportedChain, path, dir string) error {
	if c.Late > 0 {
		if err := e.pages(path+"/addenda", url.Values{}, "addenda", dir+"addenda.json", export.RoleAddenda); err != nil {
			return err
		}
	}
	if c.Rejected == 0 {
		return nil
	}
	query := filters("tenant", tenantToken(c.Tenant), "prompt_hash", c.PromptHash, "session", c.Session, "chain", c.Chain)
	return e.pages("/v1/rejected", query, "rejected", dir+"rejected.json", export.RoleRejected)
}

// pages joins the pages of a list into {"name":[…]}.
func (e *exporting) pages(path string, query url.Values, name, file, role string) error {
	query.Set("limit", "200")
	text := []byte(`{"` + name + `":[`)
	first := true
	err := e.source.pages(path, query, func(body []byte) (*string, error) {
		page, err := decodePage[map[string]jsontext.Value](body)
		if err != nil {
			return nil, err
		}
		entries, err := decodePage[[]jsontext.Value](page[name])
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if !first {
				text = append(text, ',')
			}
			first = false
			text = append(text, entry...)
		}
		next, err := decodePage[*string](page["next"])
		return next, err
	})
	if err != nil {
		return err
	}
	return e.add(file, role, append(text, `]}`...))
}

// filesBeside is how many files beside writes.
const filesBeside = 3

// beside writes keys, report and the verify page.
func (e *exporting) beside() error {
	listed, err := e.source.get("/v1/keys", maxAnswer)
	if err != nil {
		return err
	}
	if err := e.add("keys.json", export.RoleKeys, listed); err != nil {
		return err
	}
	if err := e.add("verify.html", export.RoleVerifier, web.Verify().HTML); err != nil {
		return err
	}
	e.report.What, e.report.CreatedMS = e.manifest.Selection.What, e.manifest.CreatedMS
	page, err := e.report.page(listed)
	if err != nil {
		return err
	}
	return e.add("index.html", export.RoleReport, page)
}

// add writes a file and lists it. It fails when nobody could read the whole
// export again, as events may have come since the chains were listed.
func (e *exporting) add(path, role string, content []byte) error {
	e.bytes += int64(len(content))
	if len(e.manifest.Files) == export.MaxFiles || e.bytes > export.MaxUnpacked {
		return cannot(fmt.Errorf("an export has at most %d files and %d GiB", export.MaxFiles, export.MaxUnpacked>>30), fewer)
	}
	if err := e.sink.write(path, content); err != nil {
		return cannot(fmt.Errorf("write export: %w", err), "")
	}
	e.manifest.Files = append(e.manifest.Files, export.Describe(path, role, content))
	return nil
}

// finish writes the manifest, signs it, and gives the export its name.
func (e *exporting) finish(signer *keys.Signer) error {
	text, err := e.manifest.Append(nil)
	if err != nil {
		return cannot(err, "")
	}
	if err := e.sink.write(export.ManifestFile, text); err != nil {
		return cannot(fmt.Errorf("write export: %w", err), "")
	}
	if signer != nil {
		sig, err := export.Sign(signer, text)
		if err != nil {
			return cannot(err, "")
		}
		if err := e.sink.write(export.SignatureFile, sig); err != nil {
			return cannot(fmt.Errorf("write export: %w", err), "")
		}
	}
	if err := e.sink.finish(); err != nil {
		return cannot(fmt.Errorf("write export: %w", err), "")
	}
	return nil
}

// tell verifies what was written, as its reader will, and shows the verdict.
func (c *exportCmd) tell(a *app, signer *keys.Signer) error {
	folder, closeIt, err := openExport(c.Output)
	if err != nil {
		return cannot(err, "")
	}
	defer closeIt()
	r := export.Check(a.ctx, folder, verifier.Options{}, nil)
	signed := "unsigned"
	if signer != nil {
		signed = "signed by key " + signer.Public().ID()
	}
	return a.printf("wrote %s, %s\n%s %s: %s (exit %d)\n", verifier.Escape(c.Output), signed, paint(string(r.Verdict), r.ExitCode, colours(a.stdout)),
		verifier.Escape(c.Output), r.Summary, r.ExitCode)
}
