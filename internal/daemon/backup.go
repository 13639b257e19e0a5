package daemon

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/internal/durable"
	"github.com/chaind/chaind/store"
)

// BackupConfig says what to copy where.
type BackupConfig struct {
	To           string // missing or empty directory
	Artifacts    bool   // the evidence files, too
	DataDir      string // of the stopped daemon; [Backup] alone uses what follows
	ArtifactsDir string // "": artifacts in the data directory
	// DamagedAnyway copies a damaged database all the same; the manifest says so.
	DamagedAnyway bool
	Now           func() time.Time
}

// The order of a backup: first evidence files, then the database, then the
// broker's store. So each holds at least what the one before it refers to: a
// restored store knows all evidence, and a restored broker has all that the store
// has not taken in yet.

// backup copies everything while the daemon runs.
func (d *Daemon) backup(ctx context.Context, to string, artifacts, damagedAnyway bool) (*Manifest, error) {
	if artifacts && d.cfg.ArtifactsDir == "" {
		return nil, errors.New("evidence is not kept in files here: back up the bucket that it is in")
	}
	cfg := BackupConfig{To: to, Artifacts: artifacts, DataDir: d.cfg.DataDir, ArtifactsDir: d.cfg.ArtifactsDir, DamagedAnyway: damagedAnyway, Now: d.cfg.Now}
	return backUp(ctx, cfg, d.store, Manifest{Hot: true, Broker: d.broker != nil})
}

// Backup copies the files of a stopped daemon. A database in which a check finds
// anything is a [*DamagedError], and what was copied is removed again.
func Backup(ctx context.Context, cfg BackupConfig) (*Manifest, error) {
	s, err := store.OpenReadOnly(store.Config{Dir: filepath.Join(cfg.DataDir, "store")})
	if err != nil {
		return nil, damaging(err)
	}
	defer s.Close()
	if cfg.ArtifactsDir == "" {
		cfg.ArtifactsDir = filepath.Join(cfg.DataDir, "artifacts")
	}
	_, missing := os.Stat(filepath.Join(cfg.DataDir, brokerDir))
	return backUp(ctx, cfg, s, Manifest{Broker: missing == nil})
}

// backUp copies into an empty directory, which is empty again when it fails.
func backUp(ctx context.Context, cfg BackupConfig, s *store.Store, m Manifest) (*Manifest, error) {
	b, err := newBackupSet(cfg.To)
	if err != nil {
		return nil, err
	}
	defer b.root.Close()
	m.StoreID, m.Schema, m.CreatedMS, m.Artifacts = s.ID(), store.SchemaVersion, cfg.Now().UnixMilli(), cfg.Artifacts
	if m.Artifacts {
		err = b.tree(ctx, cfg.ArtifactsDir, "artifacts", ownFiles)
	}
	if err == nil {
		err = b.database(ctx, s)
	}
	if err == nil {
		err = b.inspect(ctx, &m, cfg.DamagedAnyway)
	}
	if err == nil && m.Broker {
		err = b.brokerOf(ctx, s, filepath.Join(cfg.DataDir, brokerDir))
	}
	if err != nil {
		return nil, errors.Join(err, b.discard())
	}
	return b.finish(m)
}

// database copies the database alone, without the mark of its size: it is by that
// that a restored backup is noticed.
func (b *backupSet) database(ctx context.Context, s *store.Store) error {
	return b.write(path.Join("store", store.DatabaseFile), func(w io.Writer) error {
		_, err := s.Backup(ctx, w)
		return err
	})
}

// ownFiles are the lock and what writes in progress leave in the directory of
// evidence files; its owner is copied, so that the store finds it its own.
func ownFiles(name string) bool {
	return name == ".chaind/lock" || name == durable.TempDir || strings.HasPrefix(name, durable.TempDir+"/")
}

// brokerOf copies the broker's store, at least as new as the database: what that
// has applied must be in the copy.
func (b *backupSet) brokerOf(ctx context.Context, s *store.Store, from string) error {
	epochs, err := s.Epochs()
	if err != nil {
		return err
	}
	for _, e := range slices.Backward(epochs) {
		if e.Stream.Name == emitter.DefaultStream {
			return b.broker(ctx, from, e.Stream, e.Applied)
		}
	}
	return errors.New("the database has not seen the stream yet: there is nothing to back up")
}
