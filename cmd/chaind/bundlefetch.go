package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/domains"
)

// fromDaemon fetches the trust bundle of a chain or run as the daemon sealed
// it, and asks its evidence another question if there is one.
func (c *bundleCmd) fromDaemon(a *app) error {
	if err := c.checkDaemonFlags(); err != nil {
		return err
	}
	text, err := c.fetch(a)
	if err != nil {
		return err
	}
	if c.Question == "" {
		return c.write(a, text)
	}
	signer, err := c.signer(a)
	if err != nil {
		return err
	}
	b, err := bundle.Read(bytes.NewReader(text))
	if err != nil {
		return &problem{code: exitEnvelope, err: err}
	}
	draft, _, err := engine.Ask(b, domains.All(), engine.Question{Text: c.Question})
	if err != nil {
		return &problem{code: exitSemantic, err: err}
	}
	var out bytes.Buffer
	if _, err := bundle.Write(&out, draft, signer.Standard()); err != nil {
		return cannot(err, "")
	}
	return c.write(a, out.Bytes())
}

func (c *bundleCmd) fetch(a *app) (text []byte, err error) {
	s, err := c.source(a)
	if err != nil {
		return nil, err
	}
	path, err := c.bundlePath(s)
	if err == nil {
		text, err = s.get(path, bundle.MaxBytes)
	}
	return text, errors.Join(err, s.close())
}

// bundlePath is where the daemon serves what was asked for.
func (c *bundleCmd) bundlePath(s *source) (string, error) {
	if c.RunID != "" {
		if !isRunID(c.RunID) {
			return "", usageError("--run takes a whole run id: pr and 64 hexadecimal digits")
		}
		return c.runPath(s)
	}
	parts := strings.Split(c.Chain, "/")
	if len(parts) != 4 || slices.Contains(parts, "") || strings.ContainsAny(c.Chain, "?#%") {
		return "", usageError("--chain is TENANT/PROMPT/SESSION/CHAIN, with _ for the empty tenant")
	}
	return "/v1/chains/" + c.Chain + "/bundle", nil
}

func isRunID(text string) bool {
	digits, ok := strings.CutPrefix(text, "pr")
	return ok && len(digits) == 64 && strings.Trim(digits, "0123456789abcdefABCDEF") == ""
}

// runPage is what is read of a page of runs.
type runPage struct {
	Runs []struct {
		Chain chainKey `json:"chain"`
	} `json:"runs"`
	Next *string `json:"next"`
}

// runPath finds the session that a run belongs to: a run id alone is no identity.
func (c *bundleCmd) runPath(s *source) (string, error) {
	var sessions []string
	err := s.pages("/v1/runs", filters("run_id", c.RunID), func(body []byte) (*string, error) {
		page, err := decodePage[runPage](body)
		for _, r := range page.Runs {
			session := "/execute/" + r.Chain.PromptHash + "/" + r.Chain.Session
			if r.Chain.Tenant != "" {
				session = "/tenants/" + r.Chain.Tenant + session
			}
			if !slices.Contains(sessions, session) {
				sessions = append(sessions, session)
			}
		}
		return page.Next, err
	})
	switch {
	case err != nil:
		return "", err
	case len(sessions) == 0:
		return "", cannot(fmt.Errorf("no chain carries run %s", c.RunID), "chaind runs lists the chains")
	case len(sessions) > 1:
		return "", usageError("%d sessions carry run %s: say which chain with --chain (chaind runs --json lists them)", len(sessions), c.RunID)
	}
	return sessions[0] + "/artifacts/" + strings.ToLower(c.RunID) + "/bundle", nil
}

// checkDaemonFlags refuses flags that are for other sources.
func (c *bundleCmd) checkDaemonFlags() error {
	switch {
	case len(c.Plan)+len(c.Artifact) > 0 || c.Intent != "":
		return usageError("--plan, --artifact and --intent are for --evidence")
	case c.Action != "":
		return usageError("--action is for --from: a run yields no action")
	case c.Question == "" && (c.SigningKey != "" || c.SigningAgent != ""):
		return usageError("the bundle is fetched as the daemon sealed it; chaind sign puts another signature under it")
	}
	return nil
}
