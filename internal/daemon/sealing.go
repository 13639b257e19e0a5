package daemon

import (
	"context"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/sealer"
	"github.com/chaind/chaind/store"
)

// openSealer prepares the part that turns finished chains into evidence files.
func (d *Daemon) openSealer(context.Context) error {
	d.sealer = sealer.New(sealer.Config{
		Store:    d.store,
		Sidecars: d.sidecars,
		Signer:   func() *keys.Signer { return d.keys.signer.Load() },
		OnSealed: d.sealed,
		Logger:   d.log.With("part", "sealer"),
		Now:      d.cfg.Now,
	})
	return nil
}

// sealed counts a finished job and tells the producer. The receipt may be lost;
// the chain's record has all of it.
func (d *Daemon) sealed(s sealer.Sealed) {
	d.metrics.Sealed(s.Result.Class)
	d.log.Info("sealed", "tenant", s.Key.Tenant, "session", s.Key.Session, "chain", s.Key.Chain,
		"outcome", string(s.Outcome), "class", s.Result.Class, "path", s.Result.Path, "signed", s.Result.Signed,
		"bundle", s.Result.BundlePath,
		"trace_id", d.traceID(s.Key))
	receipt := emitter.Sealed{Key: s.Key, StreamSeq: s.StreamSeq, Outcome: s.Outcome, Head: s.Result.Head, Path: s.Result.Path,
		BundleRoot: &s.Result.BundleRoot}
	if err := emitter.PublishSealed(d.conn, receipt); err != nil {
		d.log.Warn("receipt of a seal was not sent", "chain", s.Key.Chain, "err", err)
	}
}

// packer makes trust bundles of open chains, which nobody signs.
func packer(st *store.Store) func(context.Context, *store.ChainRecord) ([]byte, error) {
	return func(ctx context.Context, record *store.ChainRecord) ([]byte, error) {
		text, _, err := sealer.Pack(ctx, st, record, nil, nil)
		return []byte(text), err
	}
}

// traceID is what the producer's own tracing calls the run, so that a log line
// leads to the trace and back; "": it gave none.
func (d *Daemon) traceID(key events.Key) string {
	chain, err := d.store.Chain(key)
	if err != nil || chain.State.Anchors.TraceID == nil {
		return ""
	}
	return *chain.State.Anchors.TraceID
}

// publishRejections drains the store's outbox into its stream.
func (d *Daemon) publishRejections(ctx context.Context) error {
	p, err := emitter.NewRejectedPublisher(emitter.RejectedConfig{JS: d.js, Outbox: d.store, Logger: d.log.With("part", "rejections")})
	if err != nil {
		return err
	}
	return p.Run(ctx)
}
