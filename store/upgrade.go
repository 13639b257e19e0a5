package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// migration turns a database of one schema version into one of the next, within one
// transaction.
type migration func(tx *bbolt.Tx) error

// migrations are those that this program has, by the version that they begin with.
func migrations() map[uint32]migration { return map[uint32]migration{1: toFrames} }

// toFrames: version 2 may keep several entries in one value of the journal, and
// reads those of version 1 as they are. What is old stays as it is.
func toFrames(*bbolt.Tx) error { return nil }

// UpgradeReport is what [Upgrade] did.
type UpgradeReport struct {
	From, To uint32 // schema versions; equal: nothing was to be done
	Copy     string // path of the database as it was; "": nothing was done
}

// Upgrade brings the database in cfg.Dir to this program's schema version, which
// Open never does by itself. It copies the database first, makes the copy
// durable, and then upgrades in one transaction: after a failure or a crash there
// is the old database, or the new one. Nobody else may have the store open. It
// returns errors as [Open] does; ErrSchema when the version is newer, or too old
// for this program.
func Upgrade(ctx context.Context, cfg Config) (*UpgradeReport, error) {
	return upgrade(ctx, cfg, SchemaVersion, migrations())
}

func upgrade(ctx context.Context, cfg Config, to uint32, by map[uint32]migration) (*UpgradeReport, error) {
	s, err := open(cfg.withDefaults(), &Store{newest: to, upgrading: true})
	if err != nil {
		return nil, err
	}
	r := &UpgradeReport{From: s.identity.schema, To: to}
	if r.From != to {
		r.Copy = filepath.Join(cfg.Dir, fmt.Sprintf("%s.schema-%d", DatabaseFile, r.From))
		err = s.upgrade(ctx, r, by)
	}
	if err := errors.Join(err, s.Close()); err != nil {
		return nil, fmt.Errorf("upgrade store %s: %w", filepath.Join(cfg.Dir, DatabaseFile), err)
	}
	return r, nil
}

func (s *Store) upgrade(ctx context.Context, r *UpgradeReport, by map[uint32]migration) (err error) {
	for v := r.From; v < r.To; v++ {
		if by[v] == nil {
			return fmt.Errorf("%w: there is no way from version %d to %d in this program", ErrSchema, v, v+1)
		}
	}
	if err := s.keep(ctx, r.Copy); err != nil {
		return fmt.Errorf("keep a copy: %w", err)
	}
	defer s.guard(&err)()
	tx, err := s.db.Begin(true)
	if err != nil {
		return sealOff("begin transaction", err)
	}
	defer tx.Rollback()
	for v := r.From; v < r.To; v++ {
		if err := by[v](tx); err != nil {
			return fmt.Errorf("from version %d: %w", v, err)
		}
	}
	w := &s.w
	w.reset(s, tx)
	next := s.identity
	next.schema = r.To
	if err := w.write(tableMeta, metaIdentity, &next); err != nil {
		return err
	}
	if err := s.commit(tx); err != nil {
		return err
	}
	s.identity = next
	return nil
}

// keep writes the database as it is to path, which must not exist.
func (s *Store) keep(ctx context.Context, path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = s.backup(ctx, f)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return syncRoot(s.mark.root)
}

func (s *Store) backup(ctx context.Context, w io.Writer) error {
	out := &backupWriter{ctx: ctx, w: w}
	tx, err := s.db.Begin(false)
	if err != nil {
		return sealOff("begin transaction", err)
	}
	defer tx.Rollback()
	_, err = tx.WriteTo(out)
	return errors.Join(out.err, err)
}
