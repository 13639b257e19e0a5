package main

import (
	"github.com/chaind/chaind/internal/daemon"
)

type tokenCmd struct {
	Tenant     []string `help:"Tenant that its bearer may read (may be repeated); _ is the empty one." placeholder:"NAME" xor:"tenants" required:""`
	AllTenants bool     `help:"Its bearer may read every tenant, and the metrics." xor:"tenants" required:""`
	Comment    string   `help:"Whose it is, for the reader of the file." placeholder:"TEXT"`
	File       string   `help:"Append the entry to this token file; only the token is printed then." type:"path" placeholder:"FILE"`
	JSON       bool     `help:"Print JSON."`
}

func (c *tokenCmd) Help() string {
	return `Prints a new token, once: only its SHA-256 goes into the token file that serve reads (--http-tokens), so that the file
tells nobody a token. Whoever sends "Authorization: Bearer TOKEN" reads the tenants of the entry and sees nothing of others.

To take a token back, delete its entry and send the daemon SIGHUP; to add one, add the entry and send SIGHUP.

Examples:
  chaind token --tenant acme --comment "auditor" --file tokens.yaml
  chaind serve --http-tokens tokens.yaml
  curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8477/v1/chains`
}

type tokenResult struct {
	Token string            `json:"token"`
	Entry daemon.TokenEntry `json:"entry"`
}

func (c *tokenCmd) Run(a *app) error {
	token, entry, err := daemon.NewToken(c.Tenant, c.Comment)
	if err != nil {
		return usageError("%w", err)
	}
	if c.File != "" {
		if err := daemon.AddToken(c.File, entry); err != nil {
			return cannot(err, "")
		}
	}
	switch {
	case c.JSON:
		return a.printJSON(tokenResult{token, entry})
	case c.File != "":
		return a.printf("%s\n", token)
	}
	return a.printf("token, shown only now:\n  %s\nentry for the token file:\n%s", token, entry.YAML())
}
