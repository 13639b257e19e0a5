package main

import (
	"fmt"
	"path/filepath"

	"github.com/chaind/chaind/store"
	"github.com/chaind/chaind/verifier"
)

type checkCmd struct {
	DataDir string `help:"Data directory of the stopped daemon." default:"chaind-data" env:"CHAIND_DATA_DIR" placeholder:"DIR"`
	JSON    bool   `help:"Print JSON."`
}

func (c *checkCmd) Help() string {
	return `Reads the whole database: its pages, every chain from its first segment, every index, both ways. Each finding is

  torn           an interrupted write, repairable from the stream or the store
  mismatch       bytes differ from their digest
  contradiction  two values, each consistent in itself, that cannot both be true

Exits 0 when nothing was found, 4 when something was, 1 when it could not check. The daemon must be stopped: it holds the file.`
}

func (c *checkCmd) Run(a *app) error {
	s, err := openStore(c.DataDir)
	if err != nil {
		return err
	}
	defer s.Close()
	report, err := s.Check(a.ctx, a.checkProgress())
	if err != nil {
		return cannot(fmt.Errorf("check store: %w", err), "")
	}
	if err := c.print(a, report); err != nil {
		return err
	}
	if len(report.Findings) > 0 {
		return silent(exitEnvelope)
	}
	return nil
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
	Findings []checkFinding `json:"findings"`
	More     uint64         `json:"more_findings"`
	Exit     int            `json:"exit_code"`
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

func (c *checkCmd) print(a *app, r *store.CheckReport) error {
	result := checkResult{StoreID: r.StoreID, Chains: r.Chains, Segments: r.Segments, Records: r.Records, Values: r.Values, Findings: []checkFinding{}, More: r.More}
	if len(r.Findings) > 0 {
		result.Exit = exitEnvelope
	}
	for _, f := range r.Findings {
		result.Findings = append(result.Findings, checkFinding{
			Class: string(f.Class), Tenant: f.Chain.Tenant, Prompt: f.Chain.PromptHash, Sess: f.Chain.Session, Chain: f.Chain.Chain,
			Bucket: f.Bucket, Key: fmt.Sprintf("%x", f.Key), Detail: f.Detail,
		})
	}
	if c.JSON {
		return a.printJSON(result)
	}
	for _, f := range result.Findings {
		if err := a.printf("%-13s %s %s %s\n", f.Class, f.Bucket, f.Chain, verifier.Escape(f.Detail)); err != nil {
			return err
		}
	}
	word := "OK"
	if result.Exit != exitOK {
		word = "DAMAGED"
	}
	return a.printf("%s: %d chains, %d segments re-hashed, %d values checked, %d findings\n",
		word, r.Chains, r.Segments, r.Values, uint64(len(r.Findings))+r.More)
}

// openStore opens the database of a stopped daemon for reading.
func openStore(dataDir string) (*store.Store, error) {
	s, err := store.OpenReadOnly(store.Config{Dir: filepath.Join(dataDir, "store")})
	if err != nil {
		return nil, cannot(err, "--data-dir names the daemon's data directory; while the daemon runs, ask it with --url instead")
	}
	return s, nil
}
