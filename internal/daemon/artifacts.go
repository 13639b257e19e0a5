package daemon

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/sidecar/natsobj"
)

// ArtifactsConfig says where evidence files and run snapshots are kept.
type ArtifactsConfig struct {
	// Store is the back end: "directory" ("" too) for files below
	// Config.ArtifactsDir, "nats-object-store:BUCKET" for a bucket of the
	// daemon's broker, "memory" for nothing that outlives the process.
	Store string
	// TakeOver makes this database the owner of evidence that another one wrote.
	TakeOver bool
	// Retention is the age at which run snapshots that we wrote are deleted;
	// nil: never. At least one minute.
	Retention *time.Duration
	// SweepEvery is the time between two looks for such snapshots; 0: 5 min.
	// At least one minute.
	SweepEvery time.Duration
}

const (
	storeDirectory = "directory"
	storeMemory    = "memory"
	storeNATS      = "nats-object-store"

	leastRetention    = time.Minute
	defaultSweepEvery = 5 * time.Minute
)

// bucket is the name of the object store's bucket; ok tells whether there is one.
func (a *ArtifactsConfig) bucket() (name string, ok bool) {
	return strings.CutPrefix(a.Store, storeNATS+":")
}

// validateArtifacts fills the directory in where there is to be one.
func (c *Config) validateArtifacts() error {
	a := &c.Artifacts
	a.Store = cmp.Or(a.Store, storeDirectory)
	a.SweepEvery = cmp.Or(a.SweepEvery, defaultSweepEvery)
	bucket, inBucket := a.bucket()
	switch {
	case a.Store != storeDirectory && a.Store != storeMemory && !inBucket:
		return unsettled("artifacts", "artifacts is %.80q: directory, memory, or %s:BUCKET", a.Store, storeNATS)
	case inBucket && !natsobj.ValidBucket(bucket):
		return unsettled("artifacts", "artifacts names the bucket %.80q: 1 to 64 letters, digits, dashes and underscores", bucket)
	case a.Store != storeDirectory && c.ArtifactsDir != "":
		return unsettled("artifacts artifacts-dir", "artifacts-dir is for files, and artifacts says %s: leave one of them out", a.Store)
	case a.Retention != nil && *a.Retention < leastRetention:
		return unsettled("artifacts-retention-secs", "artifacts-retention-secs is %.0f: at least %.0f, or leave it out to keep run snapshots for ever",
			a.Retention.Seconds(), leastRetention.Seconds())
	case a.SweepEvery < leastRetention:
		return unsettled("artifacts-gc-interval-secs", "artifacts-gc-interval-secs is %.0f: at least %.0f", a.SweepEvery.Seconds(), leastRetention.Seconds())
	}
	if a.Store == storeDirectory && c.ArtifactsDir == "" {
		c.ArtifactsDir = filepath.Join(c.DataDir, "artifacts")
	}
	return nil
}

// artifacts is where evidence lies, for people.
func (c *Config) artifacts() string { return cmp.Or(c.ArtifactsDir, c.Artifacts.Store) }

// openSidecars opens the back end and claims it for this database.
func (d *Daemon) openSidecars(ctx context.Context) error {
	blobs, err := d.openBlobs(ctx)
	if err != nil {
		return err
	}
	cfg := sidecar.Config{Blobs: blobs, Owner: d.store.ID(), TakeOver: d.cfg.Artifacts.TakeOver, Now: d.cfg.Now}
	if r := d.cfg.Artifacts.Retention; r != nil {
		cfg.Retention = *r
	}
	d.sidecars, err = sidecar.Open(ctx, cfg)
	return err
}

func (d *Daemon) openBlobs(ctx context.Context) (sidecar.Blobs, error) {
	bucket, inBucket := d.cfg.Artifacts.bucket()
	switch {
	case inBucket:
		temp := filepath.Join(d.cfg.DataDir, "tmp")
		if err := os.MkdirAll(temp, 0o700); err != nil {
			return nil, fmt.Errorf("open artifacts: %w", err)
		}
		return natsobj.Open(ctx, natsobj.Config{JS: d.js, Bucket: bucket, Replicas: d.cfg.NATS.Replicas, TempDir: temp})
	case d.cfg.Artifacts.Store == storeMemory:
		d.log.Warn("evidence files are kept in memory: they end with this process")
		return sidecar.NewMemory(), nil
	}
	files, err := sidecar.OpenDir(d.cfg.ArtifactsDir)
	if err != nil {
		return nil, err
	}
	d.onClose(files.Close)
	return files, nil
}

// sweepSnapshots deletes, from time to time, the run snapshots that we wrote and
// that have reached the age of retention. Evidence is never touched.
func (d *Daemon) sweepSnapshots(ctx context.Context) error {
	for {
		if n, err := d.sidecars.Expire(ctx); err != nil && ctx.Err() == nil {
			d.log.Error("run snapshots cannot be looked through", "deleted", n, "err", err)
		} else if n > 0 {
			d.log.Info("run snapshots reached the age of retention", "deleted", n)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.cfg.after(d.cfg.Artifacts.SweepEvery):
		}
	}
}
