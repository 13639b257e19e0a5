package main

import (
	"errors"
	"path/filepath"

	"github.com/chaind/chaind/internal/daemon"
	"github.com/chaind/chaind/store"
)

type compactCmd struct {
	DataDir string `help:"Data directory of the daemon, running or stopped." default:"chaind-data" env:"CHAIND_DATA_DIR" placeholder:"DIR"`
	JSON    bool   `help:"Print JSON."`
}

func (c *compactCmd) Help() string {
	return `Rewrites the database into a new file without the space that is free in it, compares both value for value, and puts the
new one in the place of the old. Store id, chains and heads stay the same: evidence is never deleted, so there is little to
give back unless seal jobs or rejections have piled up. The disk needs room for both files.

The database is checked first, and left alone when anything is found (chaind check names it). A running daemon does this
itself, asked through a socket in its data directory: it takes nothing in while it copies, and loses nothing by it, since
the broker holds what is not acknowledged. After a failure, a crash or a power cut at any moment there is the old
database or the new one, whole.

Exits 0 when done, 1 when it could not be done; then the old database is in use.`
}

func (c *compactCmd) Run(a *app) error {
	r, err := daemon.AskCompact(a.ctx, c.DataDir)
	if errors.Is(err, daemon.ErrNotRunning) {
		r, err = store.Compact(a.ctx, store.Config{Dir: filepath.Join(c.DataDir, "store"), Now: a.now}, a.checkProgress())
	}
	if err != nil {
		return cannot(err, "chaind check --data-dir names damage; --data-dir names the daemon's data directory")
	}
	if c.JSON {
		return a.printJSON(r)
	}
	return a.printf("compacted: %d bytes, and %d before, with the same %d values\n", r.After, r.Before, r.Values)
}
