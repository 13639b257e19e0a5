package sealer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
)

// Store is what the sealer needs of the store; *store.Store is one. Its methods
// are documented there.
type Store interface {
	SealJobs(after uint64, limit int) ([]store.SealJob, error)
	SealJobsAdded() <-chan struct{}
	FinishSeal(ctx context.Context, job *store.SealJob, result store.SealResult) error
	FailSeal(ctx context.Context, job *store.SealJob, reason string) error
	Chain(key events.Key) (*store.ChainRecord, error)
	Chains(q store.ChainQuery) (page []store.ChainSummary, next string, err error)
	Records
}

var _ Store = (*store.Store)(nil)

// Config says what a sealer works on. Store and Sidecars are required.
type Config struct {
	Store    Store
	Sidecars *sidecar.Sidecars

	// Signer gives the key that signs from now on; it is asked once per job.
	// Nil, or a nil key: evidence is unsigned.
	Signer func() *keys.Signer

	// Workers is how many jobs run at once; 0: DefaultWorkers.
	Workers int

	// OnSealed is told of every finished job, from several goroutines at once
	// and in no promised order, after the store has recorded it. It must not
	// block. Nil: nobody is told.
	OnSealed func(Sealed)

	// SkipAudit leaves out the look at existing evidence when Run starts.
	SkipAudit bool

	Logger *slog.Logger     // nil: nothing is logged
	Now    func() time.Time // nil: time.Now
	// After is time.After, for tests that drive the pauses after failures.
	After func(time.Duration) <-chan time.Time
}

// Sealed says what became of a finished chain.
type Sealed struct {
	Key     events.Key
	Outcome events.Outcome // how the run ended
	// StreamSeq is the stream sequence of the seal event that ended the chain.
	StreamSeq uint64
	Result    store.SealResult
	// Standing says whether Result describes the bytes made now (stored,
	// repaired) or others that were first under the head (kept); "" for a
	// chain without segments.
	Standing sidecar.Outcome
}

// Sealer works off seal jobs. Make one with [New].
type Sealer struct {
	cfg Config
	log *slog.Logger

	mu       sync.Mutex
	failing  map[uint64]*failure // by job ID; jobs that failed and wait, or run again
	broken   error               // last failure to read the list of jobs; nil: none
	brokenAt time.Time
	audit    Audit

	long chan struct{} // holds a token while a long chain is packed
}

// failure is a job that did not succeed yet.
type failure struct {
	since time.Time // first failure in this process
	due   time.Time // next attempt
	count int       // failures in this process
	err   error     // last one
}

// New makes a sealer; [Sealer.Run] starts it.
func New(cfg Config) *Sealer {
	if cfg.Workers <= 0 {
		cfg.Workers = DefaultWorkers
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.After == nil {
		cfg.After = time.After
	}
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Sealer{cfg: cfg, log: log, failing: make(map[uint64]*failure), long: make(chan struct{}, 1)}
}

// ErrContradiction is in the error of a job whose bundle does not pass the
// checks, or does not agree with what the store says about the chain. Trying
// again does not help: the store is damaged, or this program is wrong.
var ErrContradiction = errors.New("evidence contradicts the store")

// Status is what readiness and metrics need to know.
type Status struct {
	Failing   int       // jobs that failed at least once and are not finished
	Since     time.Time // when the one failing longest failed first; zero: none
	LastError string    // of the job failing longest; "": none
	Audit     Audit     // the look at existing evidence so far
}

// Status tells how the sealer is doing. It may be called at any time.
func (s *Sealer) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{Failing: len(s.failing), Audit: s.audit}
	if s.broken != nil {
		st.Since, st.LastError = s.brokenAt, s.broken.Error()
	}
	for _, f := range s.failing {
		if st.Since.IsZero() || f.since.Before(st.Since) {
			st.Since, st.LastError = f.since, f.err.Error()
		}
	}
	return st
}

// Run works off jobs until ctx ends; then it waits for the jobs in hand, which
// end early and are taken up again by the next start, and returns nil.
func (s *Sealer) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	if !s.cfg.SkipAudit {
		wg.Go(func() { s.runAudit(ctx) })
	}
	newSchedule(s).run(ctx)
	return nil
}
