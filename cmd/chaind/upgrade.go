package main

import (
	"path/filepath"

	"github.com/chaind/chaind/store"
)

type upgradeCmd struct {
	DataDir string `help:"Data directory of the stopped daemon." default:"chaind-data" env:"CHAIND_DATA_DIR" placeholder:"DIR"`
}

func (c *upgradeCmd) Help() string {
	return `Brings a database that an older program wrote to this program's layout, which the daemon never does by itself. The
database as it was is kept beside it. After a failure or a crash the database is the old one or the new one.`
}

func (c *upgradeCmd) Run(a *app) error {
	r, err := store.Upgrade(a.ctx, store.Config{Dir: filepath.Join(c.DataDir, "store"), Now: a.now})
	if err != nil {
		return cannot(err, "the daemon must be stopped; a newer database needs a newer program")
	}
	if r.Copy == "" {
		return a.printf("the database has version %d, as this program: nothing to do\n", r.To)
	}
	return a.printf("upgraded from version %d to %d; the old database is kept as %s\n", r.From, r.To, r.Copy)
}
