package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/store"
)

// ReplayConfig says what to rebuild a store from.
type ReplayConfig struct {
	Into    string // directory of the new store's data; missing or empty
	DataDir string // of the stopped daemon: its store is compared, its broker's store is read unless NATS.URL is set; "": nothing to compare
	NATS    NATSConfig
	Intake  IntakeConfig // limits of one event, which must be the old store's
	Logger  *slog.Logger // required
	Now     func() time.Time
	// Progress is told how far the replay is; nil: nobody is.
	Progress func(done, total uint64)
}

// ReplayReport says what a replay made, and how it differs from the old store.
type ReplayReport struct {
	StoreID      string
	Messages     uint64 // stream sequences applied
	Chains       uint64
	Lost         []store.LostRange // what the stream no longer holds; at most store.MaxPage
	Compared     bool              // there was an old store that can be read
	Incomparable string            // why the old store cannot be read; "": it can, or there is none
	Same         uint64            // chains that are equal in both
	// Differences, the first MaxDifferences of them in the order of chains, and
	// how many there are beyond.
	Differences []Difference
	More        uint64
}

// ErrNoBroker: there is nothing to replay from.
var ErrNoBroker = errors.New("there is no broker's store in the data directory, and no broker's address was given")

// MaxDifferences bounds the differences that are told one by one.
const MaxDifferences = 1000

// Difference is a chain that is not the same in the old store and the new one.
type Difference struct {
	Key      events.Key
	Old, New *store.ChainSummary // nil: there is no such chain
}

const (
	replayName  = "chaind replay" // in the broker's listings
	replayPoll  = 20 * time.Millisecond
	replayStall = time.Minute // without any progress
)

// Replay rebuilds a store from the stream, up to the stream's last message when
// it begins, and compares it with the old one chain by chain. The stream is not
// changed, but for a consumer that exists meanwhile; receipts are not sent.
func Replay(ctx context.Context, cfg ReplayConfig) (*ReplayReport, error) {
	if err := cfg.Intake.validate(); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if err := vacant(cfg.Into); err != nil {
		return nil, fmt.Errorf("replay into %s: %w", cfg.Into, err)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	was, fault, err := openOld(cfg.DataDir)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if was != nil {
		defer was.Close()
	}
	conn, done, err := replayBroker(cfg)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	defer done()
	s, err := store.Open(store.Config{Dir: filepath.Join(cfg.Into, "store"), Logger: cfg.Logger, Now: cfg.Now})
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	r, err := replayInto(ctx, cfg, conn, s)
	if err == nil {
		r.Incomparable = fault
		err = r.compare(ctx, was, s)
	}
	if err := errors.Join(err, s.Close()); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	return r, nil
}

// openOld opens the store to compare with, which stays open until the end: a
// daemon that runs must not have its broker's store read by another broker. A
// damaged store is no obstacle, it may be why there is a replay.
func openOld(dataDir string) (was *store.Store, fault string, err error) {
	if dataDir == "" {
		return nil, "", nil
	}
	was, err = store.OpenReadOnly(store.Config{Dir: filepath.Join(dataDir, "store")})
	switch {
	case err == nil:
		return was, "", nil
	case errors.Is(err, store.ErrLocked):
		return nil, "", err
	case errors.Is(err, store.ErrMissing), errors.Is(err, fs.ErrNotExist):
		return nil, "", nil
	}
	return nil, err.Error(), nil
}

// vacant wants a directory that is missing or empty.
func vacant(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return os.MkdirAll(dir, 0o700)
	case err != nil:
		return err
	case len(entries) > 0:
		return errors.New("the directory is not empty")
	}
	return nil
}

// replayBroker connects to the broker, which may have to be started over its
// store first. done undoes both.
func replayBroker(cfg ReplayConfig) (_ *nats.Conn, done func(), err error) {
	if cfg.NATS.URL != "" {
		conn, err := emitter.Connect(cfg.NATS.client(replayName, cfg.Logger))
		if err != nil {
			return nil, nil, err
		}
		return conn, conn.Close, nil
	}
	if _, err := os.Stat(filepath.Join(cfg.DataDir, "nats")); err != nil || cfg.DataDir == "" {
		return nil, nil, errors.Join(ErrNoBroker, err)
	}
	b, err := startBroker(Config{DataDir: cfg.DataDir, NATS: NATSConfig{Listen: "127.0.0.1:-1"}, Intake: cfg.Intake, Logger: cfg.Logger})
	if err != nil {
		return nil, nil, err
	}
	conn, err := emitter.Connect(emitter.ConnConfig{URL: b.url(), Name: replayName, Logger: cfg.Logger})
	if err != nil {
		b.stop()
		return nil, nil, err
	}
	return conn, func() { conn.Close(); b.stop() }, nil
}

// replayInto runs an intake up to the stream's last message.
func replayInto(ctx context.Context, cfg ReplayConfig, conn *nats.Conn, s *store.Store) (*ReplayReport, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	stream, err := js.Stream(ctx, emitter.DefaultStream)
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", emitter.DefaultStream, err)
	}
	last := stream.CachedInfo().State.LastSeq
	limits := events.DefaultLimits
	limits.MaxBytes = cfg.Intake.MaxEventBytes
	durable := emitter.DefaultDurable + "-" + s.ID()
	intake, err := emitter.NewIntake(emitter.IntakeConfig{
		JS: js, Appender: s, Ledger: ledger(s), Durable: durable, Limits: limits, NoReceipts: true,
		Streams: emitter.StreamConfig{MaxEventBytes: cfg.Intake.MaxEventBytes},
		Fatal:   func(err error) bool { return errors.Is(err, store.ErrBroken) }, Logger: cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	err = untilApplied(ctx, intake, last, cfg.Progress)
	if gone := stream.DeleteConsumer(context.WithoutCancel(ctx), durable); gone != nil {
		cfg.Logger.Warn("the replay's consumer stays behind", "consumer", durable, "err", gone)
	}
	if err != nil {
		return nil, err
	}
	r := &ReplayReport{StoreID: s.ID(), Messages: last}
	if r.Lost, err = s.LostRanges(0, store.MaxPage); err != nil {
		return nil, err
	}
	stats, err := s.Stats()
	r.Chains = stats.Chains
	return r, err
}

// untilApplied runs the intake until it has applied the sequence.
func untilApplied(ctx context.Context, intake *emitter.Intake, last uint64, progress func(done, total uint64)) error {
	live, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- intake.Run(live) }()
	tick := time.NewTicker(replayPoll)
	defer tick.Stop()
	stall := time.NewTimer(replayStall)
	defer stall.Stop()
	before := uint64(0)
	for {
		select {
		case err := <-ended:
			stop()
			return errors.Join(errors.New("the intake ended early"), err, ctx.Err())
		case <-stall.C:
			stop()
			return errors.Join(fmt.Errorf("no progress for %s at message %d of %d; last error: %s", replayStall, before, last, or(intake.Stats().LastError, "none")), <-ended)
		case <-tick.C:
		}
		applied := intake.Stats().Applied
		if applied != before {
			before = applied
			stall.Reset(replayStall)
		}
		if progress != nil {
			progress(min(applied, last), last)
		}
		if applied >= last {
			stop()
			return errors.Join(<-ended, ctx.Err())
		}
	}
}
