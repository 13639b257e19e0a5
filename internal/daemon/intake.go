package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/server"
	"github.com/chaind/chaind/store"
)

// openIntake makes sure of the streams and prepares the intake. The consumer's
// name carries the store's id, so that two stores never share one.
func (d *Daemon) openIntake(ctx context.Context) error {
	d.metrics = server.NewMetrics(d.cfg.Version, d.snapshot)
	if d.cfg.Intake.Off {
		d.log.Warn("intake is off: no events are taken in")
		return nil
	}
	streams, err := emitter.EnsureStreams(ctx, d.js, d.streams())
	if err != nil {
		return err
	}
	for _, name := range streams.Created {
		d.log.Info("stream created", "stream", name)
	}
	for _, w := range streams.Warnings {
		level := slog.LevelWarn
		if w.Weakness == events.WeakOneReplica && d.broker != nil {
			level = slog.LevelInfo // the broker inside has no others to keep one
		}
		d.log.Log(ctx, level, "stream setting weakens evidence", "stream", w.Stream, "setting", string(w.Weakness), "detail", w.Detail)
	}
	limits := events.DefaultLimits
	limits.MaxBytes = d.cfg.Intake.MaxEventBytes
	d.intake, err = emitter.NewIntake(emitter.IntakeConfig{
		JS:          d.js,
		Appender:    measured{d.store, d.metrics, d.cfg.Now},
		Ledger:      ledger(d.store),
		Streams:     d.streams(),
		Durable:     emitter.DefaultDurable + "-" + d.store.ID(),
		Limits:      limits,
		BatchEvents: d.cfg.Intake.BatchEvents,
		BatchTime:   d.cfg.Intake.BatchWait,
		Fatal:       func(err error) bool { return errors.Is(err, store.ErrBroken) },
		Logger:      d.log.With("part", "intake"),
	})
	return err
}

func (d *Daemon) streams() emitter.StreamConfig {
	return emitter.StreamConfig{Replicas: d.cfg.NATS.Replicas, MaxEventBytes: d.cfg.Intake.MaxEventBytes}
}

// measured counts what the store makes durable.
type measured struct {
	store   *store.Store
	metrics *server.Metrics
	now     func() time.Time
}

func (m measured) Append(ctx context.Context, b *events.Batch) ([]events.Effect, error) {
	start := m.now()
	effects, err := m.store.Append(ctx, b)
	if err != nil {
		return nil, err
	}
	m.metrics.Committed(effects, m.now().Sub(start))
	return effects, nil
}

// ledger tells the intake what the store has recorded of each stream.
func ledger(s *store.Store) emitter.Ledger {
	return emitter.Ledger{
		Watermark: func(stream events.Stream) (uint64, error) {
			mark, err := s.Watermark(stream)
			return mark.Applied, err
		},
		RecordLost: s.RecordLost,
		BeginEpoch: func(ctx context.Context, stream events.Stream, base uint64, why string) error {
			_, err := s.BeginEpoch(ctx, stream, base, why)
			if err != nil {
				return fmt.Errorf("begin epoch: %w", err)
			}
			return nil
		},
		RecordSettings: s.RecordSettings,
		AppliedAt: func(stream events.Stream, seq uint64) (emitter.Applied, bool, error) {
			had, known, err := s.AppliedAt(stream, seq)
			return emitter.Applied(had), known, err
		},
	}
}
