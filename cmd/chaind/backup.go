package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/chaind/chaind/internal/daemon"
	"github.com/chaind/chaind/store"
	"github.com/chaind/chaind/verifier"
)

type backupCmd struct {
	To           string `arg:"" help:"Directory of the backup; missing or empty (with --verify: a backup)." placeholder:"DIR"`
	DataDir      string `help:"Data directory of the daemon, running or stopped." default:"chaind-data" env:"CHAIND_DATA_DIR" placeholder:"DIR"`
	Artifacts    bool   `help:"Back up the evidence files, too."`
	ArtifactsDir string `help:"The evidence files of a stopped daemon, when not in the data directory." env:"PLASM_RUN_ARTIFACTS_DIR" placeholder:"DIR"`
	Verify       bool   `help:"Compare the files of a backup with its manifest, and check its database, instead."`
	Damaged      bool   `name:"damaged-anyway" help:"Copy a damaged database, too, for whoever is to look into it. It is not for restoring."`
	JSON         bool   `help:"Print the manifest."`
}

func (c *backupCmd) Help() string {
	return `Copies the database and, with a NATS server inside, its streams: each consistent in itself, and the streams at least as
new as the database, so that nothing is missing between them. A running daemon makes the copy itself and goes on
meanwhile; it is asked through a socket in its data directory, so run this as its user. The copy is on disk when the command
ends, has a manifest with the digest of every file, and its database was checked like chaind check does: a damaged one
is no backup, and is refused.

To restore: stop the daemon, put store/ and nats/ of the backup (and artifacts/, if the evidence is lost too) in the place
of those in the data directory, and start it. It notices that its database is a restored one, begins a new epoch
("restored" in chaind runs), and takes in what the stream has beyond. chaind check names evidence that is newer than the
database.

Exits 0 when done (or, with --verify, when the files are as the manifest says and the database is whole), 4 when the
database is damaged or --verify finds another fault, 1 when it could not be done.

Examples:
  chaind backup /backup/monday
  chaind backup --verify /backup/monday`
}

func (c *backupCmd) Run(a *app) error {
	if c.Verify {
		m, err := daemon.VerifyBackup(a.ctx, c.To)
		switch {
		case errors.Is(err, store.ErrSchema):
			return cannot(err, "every file is as the manifest says; run chaind upgrade over a copy of store/ to have its database checked")
		case err != nil:
			return &problem{code: exitEnvelope, err: err}
		}
		return c.print(a, m, "as its manifest says, and its database is whole")
	}
	m, err := c.make(a)
	if _, damaged := errors.AsType[*daemon.DamagedError](err); damaged {
		return &problem{code: exitEnvelope, err: err, hint: "nothing was backed up: chaind check lists the findings, docs/howto/restore.md says how to mend it; --damaged-anyway copies it as it is"}
	}
	if err != nil {
		return cannot(err, "")
	}
	if m.Findings > 0 {
		return c.print(a, m, fmt.Sprintf("done, and DAMAGED (%d findings, the first: %s)", m.Findings, verifier.Escape(m.Finding)))
	}
	return c.print(a, m, "done")
}

// make asks the daemon, or copies the files of one that does not run.
func (c *backupCmd) make(a *app) (*daemon.Manifest, error) {
	to, err := filepath.Abs(c.To)
	if err != nil {
		return nil, err
	}
	config := daemon.BackupConfig{To: to, Artifacts: c.Artifacts, DataDir: c.DataDir, ArtifactsDir: c.ArtifactsDir, DamagedAnyway: c.Damaged, Now: a.now}
	m, err := daemon.AskBackup(a.ctx, config)
	if !errors.Is(err, daemon.ErrNotRunning) {
		return m, err
	}
	return daemon.Backup(a.ctx, config)
}

func (c *backupCmd) print(a *app, m *daemon.Manifest, word string) error {
	if c.JSON {
		return a.printJSON(m)
	}
	bytes := int64(0)
	for _, f := range m.Files {
		bytes += f.Bytes
	}
	with := ""
	if m.Broker {
		with += ", with the broker's streams"
	}
	if m.Artifacts {
		with += ", with the evidence files"
	}
	return a.printf("%s: store %s, %d files, %d bytes%s\n", word, m.StoreID, len(m.Files), bytes, with)
}
