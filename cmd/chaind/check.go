package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chaind/chaind/internal/daemon"
	"github.com/chaind/chaind/store"
	"github.com/chaind/chaind/verifier"
)

type checkCmd struct {
	DataDir      string `help:"Data directory of the stopped daemon." default:"chaind-data" env:"CHAIND_DATA_DIR" placeholder:"DIR"`
	ArtifactsDir string `help:"Its evidence files, when not in the data directory." env:"PLASM_RUN_ARTIFACTS_DIR" placeholder:"DIR"`
	NoEvidence   bool   `help:"Leave the evidence files alone."`
	Resume       string `help:"Keep in FILE how far the check is, and go on from there when it was interrupted." placeholder:"FILE"`
	JSON         bool   `help:"Print JSON."`
}

func (c *checkCmd) Help() string {
	return `Reads the whole database: its pages, every chain from its first segment, every index, both ways. Then it compares the
evidence files with what was sealed, and looks for evidence that the database does not know. Each finding is

  torn           an interrupted write, repairable from the stream or the store
  mismatch       bytes differ from their digest
  contradiction  two values, each consistent in itself, that cannot both be true; or evidence that is newer than the
                 database, as after the restore of a backup

With --resume, FILE remembers how far the check of the database has come and what it has found. It is written every few
seconds and removed at the end. The next run with the same FILE goes on there, when nobody has written to the database since;
otherwise it begins anew, and says so. What has changed on the disk behind that place meanwhile is for the next whole check
to find, and whoever can write FILE can have a part left out: keep it where the database is as safe.

Exits 0 when nothing was found, 4 when something was (also when the database is too damaged to be opened), 3 when there is
no chain that could be checked (EMPTY), 1 when it could not check. The daemon must be stopped: it holds the file. A running daemon checks itself from time to time (chaind_check_findings in its metrics).

Examples:
  chaind check --data-dir /var/lib/chaind
  chaind check --data-dir /var/lib/chaind --resume check.part`
}

func (c *checkCmd) Run(a *app) error {
	s, err := store.OpenReadOnly(store.Config{Dir: filepath.Join(c.DataDir, "store")})
	if errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrTruncated) {
		return c.unopenable(a, err)
	}
	if err != nil {
		return cannot(err, checkHint(err))
	}
	defer s.Close()
	resume, err := a.resume(c.Resume)
	if err != nil {
		return err
	}
	report, err := resume.check(a, s)
	if err != nil {
		return err
	}
	evidence, err := c.evidence(a, s)
	if err != nil {
		return cannot(fmt.Errorf("check evidence: %w", err), "--artifacts-dir names the evidence files, --no-evidence leaves them alone")
	}
	code, err := c.print(a, report, evidence)
	if err = errors.Join(err, resume.remove()); err == nil && code != exitOK {
		return silent(code)
	}
	return err
}

// evidence compares the evidence files; nil: it was not asked to, or there has
// never been any.
func (c *checkCmd) evidence(a *app, s *store.Store) (*daemon.EvidenceCheck, error) {
	if c.NoEvidence {
		return nil, nil
	}
	dir := c.ArtifactsDir
	if dir == "" {
		dir = filepath.Join(c.DataDir, "artifacts")
		stats, err := s.Stats()
		if err != nil && !errors.Is(err, store.ErrCorrupt) {
			return nil, err
		}
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && stats.SealJobs == stats.PendingSeals {
			return nil, nil // nothing has been sealed yet
		}
	}
	return daemon.CheckEvidence(a.ctx, s, dir, nil)
}

// checkProgress draws one line that is rewritten, on a terminal only.
func (a *app) checkProgress() func(store.CheckProgress) {
	if !isTerminal(a.stderr) {
		return nil
	}
	return func(p store.CheckProgress) {
		fmt.Fprintf(a.stderr, "\r\x1b[K%s %d of %d", p.Phase, p.Done, p.Total)
		if p.Done == p.Total {
			fmt.Fprint(a.stderr, "\r\x1b[K")
		}
	}
}

type checkResult struct {
	StoreID  string         `json:"store_id"`
	Chains   uint64         `json:"chains"`
	Segments uint64         `json:"segments"`
	Records  uint64         `json:"records"`
	Values   uint64         `json:"values"`
	Evidence *checkEvidence `json:"evidence"` // null: not looked at
	Findings []checkFinding `json:"findings"`
	More     uint64         `json:"more_findings"`
	Exit     int            `json:"exit_code"`
}

type checkEvidence struct {
	Sealed uint64 `json:"sealed_chains"`
	Files  uint64 `json:"files"`
}

type checkFinding struct {
	Class  string `json:"class"`
	Tenant string `json:"tenant,omitempty"`
	Prompt string `json:"prompt_hash,omitempty"`
	Sess   string `json:"session,omitempty"`
	Chain  string `json:"chain,omitempty"`
	Bucket string `json:"bucket,omitempty"`
	Key    string `json:"key_hex,omitempty"`
	Detail string `json:"detail"`
}

func (c *checkCmd) print(a *app, r *store.CheckReport, e *daemon.EvidenceCheck) (code int, err error) {
	result := checkResult{StoreID: r.StoreID, Chains: r.Chains, Segments: r.Segments, Records: r.Records, Values: r.Values, Findings: []checkFinding{}, More: r.More}
	result.add(r.Findings)
	if e != nil {
		result.Evidence = &checkEvidence{Sealed: e.Sealed, Files: e.Files}
		result.More += e.More
		result.add(e.Findings)
	}
	switch {
	case len(result.Findings) > 0:
		result.Exit = exitEnvelope
	case r.Chains == 0:
		result.Exit = exitDegraded
	}
	if c.JSON {
		return result.Exit, a.printJSON(result)
	}
	for _, f := range result.Findings {
		if err := a.printf("%-13s %s %s %s\n", f.Class, f.Bucket, f.Chain, verifier.Escape(f.Detail)); err != nil {
			return result.Exit, err
		}
	}
	return result.Exit, a.printf("%s\n", result.summary())
}

func (r *checkResult) add(findings []store.Finding) {
	for _, f := range findings {
		r.Findings = append(r.Findings, checkFinding{
			Class: string(f.Class), Tenant: f.Chain.Tenant, Prompt: f.Chain.PromptHash, Sess: f.Chain.Session, Chain: f.Chain.Chain,
			Bucket: f.Bucket, Key: fmt.Sprintf("%x", f.Key), Detail: f.Detail,
		})
	}
}

func (r *checkResult) summary() string {
	word := map[int]string{exitOK: "OK", exitDegraded: "EMPTY", exitEnvelope: "DAMAGED"}[r.Exit]
	evidence := "evidence files not looked at"
	if r.Evidence != nil {
		evidence = fmt.Sprintf("%d evidence files of %d sealed chains compared", r.Evidence.Files, r.Evidence.Sealed)
	}
	return fmt.Sprintf("%s: %d chains, %d segments re-hashed, %d values checked, %s, %d findings",
		word, r.Chains, r.Segments, r.Values, evidence, uint64(len(r.Findings))+r.More)
}

// unopenable reports a database in which not even the way to its values holds.
func (c *checkCmd) unopenable(a *app, err error) error {
	finding := store.Finding{Class: store.Mismatch, Detail: "the database cannot be opened: " + err.Error()}
	if errors.Is(err, store.ErrTruncated) {
		finding.Class = store.Torn
	}
	if damage, ok := errors.AsType[*store.CorruptError](err); ok {
		finding.Bucket, finding.Key, finding.Chain = damage.Bucket, damage.Key, damage.Chain
	}
	if _, err := c.print(a, &store.CheckReport{Findings: []store.Finding{finding}}, nil); err != nil {
		return err
	}
	return silent(exitEnvelope)
}

func checkHint(err error) string {
	switch {
	case errors.Is(err, store.ErrLocked):
		return "a running daemon holds its database and checks it itself: chaind_check_findings in its metrics; stop it to check here, or check a backup"
	case errors.Is(err, store.ErrMissing), errors.Is(err, fs.ErrNotExist):
		return "--data-dir names the daemon's data directory"
	}
	return ""
}
