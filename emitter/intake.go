package emitter

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// Appender makes events durable. Append applies the events in order and
// returns one effect per event, in the same order, once all of them are
// durable. After an error the same batch is given again, whether or not its
// events had become durable: they must have no second effect. The batch and
// its slice belong to the caller again when Append returns.
type Appender interface {
	Append(ctx context.Context, b *events.Batch) ([]events.Effect, error)
}

// Ledger is the store's record of how far it has read each stream. All
// callbacks are called from one goroutine, never while an Append runs.
type Ledger struct {
	// Watermark returns the last applied sequence of the stream; 0: none.
	Watermark func(events.Stream) (uint64, error)
	// RecordLost records that from..to (both included) will never be
	// delivered, and moves the watermark over them. It is idempotent.
	RecordLost func(ctx context.Context, stream events.Stream, from, to uint64, why string) error
	// BeginEpoch records that the broker lost what lies above sequence base;
	// the watermark is base afterwards.
	BeginEpoch func(ctx context.Context, stream events.Stream, base uint64, why string) error
	// RecordSettings records under which weakening settings, sorted, the stream
	// is read from here on. It comes before the first event of each session,
	// mostly with what it was told last.
	RecordSettings func(ctx context.Context, stream events.Stream, weak []events.Weakness) error
	// AppliedAt returns what was recorded under the sequence, as far as it is
	// known. With it a broker that went back and was then written to beyond the
	// watermark is noticed after a restart too, and the epoch begins exactly
	// where the histories part. May be nil.
	AppliedAt func(stream events.Stream, seq uint64) (a Applied, known bool, err error)
}

// Applied is what stands in the ledger under one sequence.
type Applied struct {
	Sum      segments.Digest // payload digest; zero when Lost
	BrokerMS uint64          // the broker's timestamp, Unix milliseconds; zero when Lost
	Lost     bool            // recorded as lost: there should be no message
}

// Reasons given to [Ledger.RecordLost].
const (
	LostTrimmed = "trimmed" // the stream begins behind them: a limit, a purge, an expiry
	LostDeleted = "deleted" // single messages were removed from the stream
)

// Reasons given to [Ledger.BeginEpoch].
const (
	EpochBehind  = "stream_behind"  // the stream's last sequence is below the watermark
	EpochDiffers = "stream_differs" // the message at the watermark is another one
)

// IntakeConfig says what an [Intake] reads and where it goes.
type IntakeConfig struct {
	JS       jetstream.JetStream // required
	Appender Appender            // required
	Ledger   Ledger              // required; AppliedAt may be nil
	Streams  StreamConfig

	// Durable names the consumer. Two stores must not share one; a name with
	// the store's id in it keeps them apart. "": DefaultDurable.
	Durable string
	Limits  events.Limits // of one event; zero: events.DefaultLimits

	BatchEvents int           // bound of one Append; 0: DefaultBatchEvents
	BatchBytes  int           // payload bytes, exceeded by at most one event; 0: DefaultBatchBytes
	BatchTime   time.Duration // wait for messages known to come; 0: DefaultBatchTime, negative: none

	AckWait       time.Duration // 0: DefaultAckWait
	CheckInterval time.Duration // 0: DefaultCheckInterval
	StopTimeout   time.Duration // 0: DefaultStopTimeout

	// Fatal tells errors of the Appender that no repetition will mend: Run then
	// gives up and returns the error. nil: there are none.
	Fatal func(error) bool

	// NoReceipts turns receipts off.
	NoReceipts bool
	Logger     *slog.Logger // nil: nothing is logged
}

func (c IntakeConfig) validate() error {
	switch {
	case c.JS == nil:
		return errors.New("intake configuration: JS is missing")
	case c.Appender == nil:
		return errors.New("intake configuration: Appender is missing")
	case c.Ledger.Watermark == nil || c.Ledger.RecordLost == nil || c.Ledger.BeginEpoch == nil || c.Ledger.RecordSettings == nil:
		return errors.New("intake configuration: Ledger is incomplete")
	}
	return nil
}

func (c IntakeConfig) withDefaults() IntakeConfig {
	c.Streams = c.Streams.withDefaults()
	c.Durable = orString(c.Durable, DefaultDurable)
	c.BatchEvents = orNumber(c.BatchEvents, DefaultBatchEvents)
	c.BatchBytes = orNumber(c.BatchBytes, DefaultBatchBytes)
	c.BatchTime = orNumber(c.BatchTime, DefaultBatchTime)
	c.AckWait = orNumber(c.AckWait, DefaultAckWait)
	c.CheckInterval = orNumber(c.CheckInterval, DefaultCheckInterval)
	c.StopTimeout = orNumber(c.StopTimeout, DefaultStopTimeout)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func orString(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

func orNumber[N int | time.Duration](n, fallback N) N {
	if n == 0 {
		return fallback
	}
	return n
}

// Intake reads the stream of events into an [Appender]. See the package's
// documentation for what it promises.
type Intake struct {
	cfg      IntakeConfig
	instance string // tells this process's consumer from another's
	stats    stats

	last     mark          // the last message made durable; owned by the goroutine that runs Run
	receipts receiptWriter // owned by the one that tells (telling)
}

// NewIntake checks the configuration; nothing starts yet.
func NewIntake(cfg IntakeConfig) (*Intake, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Intake{cfg: cfg.withDefaults(), instance: rand.Text()}, nil
}

// Run reads until ctx ends; then it returns nil, after the running Append (which is
// given StopTimeout) and its acknowledgement. What was read and not yet given
// to the Appender comes again at the next start. Whatever goes wrong meanwhile is
// logged, shows in [Intake.Stats], and is tried again for ever, except for what
// cfg.Fatal names. Run must not be called twice at the same time.
func (in *Intake) Run(ctx context.Context) error {
	in.stats.stopped.Store(false)
	defer in.stats.stopped.Store(true)
	wait := time.Duration(0)
	for sleep(ctx, wait) {
		before := in.stats.applied.Load()
		err := in.session(ctx)
		in.stats.connected.Store(false)
		if ctx.Err() != nil {
			break
		}
		in.stats.ended(err)
		var fatal *fatalError
		if errors.As(err, &fatal) {
			return fatal.error
		}
		wait = nextBackoff(wait)
		if in.stats.applied.Load() > before || errors.Is(err, errReconnected) {
			wait = minBackoff
		}
		in.cfg.Logger.Warn("intake session ended", "err", err, "retry", wait)
	}
	return nil
}

// fatalError ends Run.
type fatalError struct{ error }

// session reads from the watermark until something is wrong, and returns what.
// A connection that was lost and is back ends it wherever it is: what was asked
// for over the old one may never be answered.
func (in *Intake) session(ctx context.Context) error {
	live, fail := context.WithCancelCause(ctx)
	var follower sync.WaitGroup
	defer follower.Wait()
	defer fail(nil)
	follower.Go(func() { in.follow(live, fail) })
	s, err := in.open(live)
	if err == nil {
		s.fail = fail
		err = s.run(ctx, live)
	}
	if cause := context.Cause(live); cause != nil {
		return cause
	}
	return err
}

// follow fails the session when the connection was lost and is back, or is closed for good.
func (in *Intake) follow(ctx context.Context, fail context.CancelCauseFunc) {
	conn := in.cfg.JS.Conn()
	status := conn.StatusChanged(nats.CONNECTED, nats.RECONNECTING, nats.CLOSED)
	defer conn.RemoveStatusListener(status)
	for lost := !conn.IsConnected(); ; {
		select {
		case <-ctx.Done():
			return
		case now := <-status:
			switch {
			case now == nats.CLOSED:
				fail(nats.ErrConnectionClosed)
				return
			case now == nats.CONNECTED && lost:
				fail(errReconnected)
				return
			case now == nats.RECONNECTING:
				lost = true
				in.stats.connected.Store(false)
			}
		}
	}
}
