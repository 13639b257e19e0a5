package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
)

// Store is what the server asks of the store; *store.Store answers it. Tests
// inject failures through it.
type Store interface {
	Chain(key events.Key) (*store.ChainRecord, error)
	Chains(q store.ChainQuery) (page []store.ChainSummary, next string, err error)
	Ended(q store.EndedQuery, visit func(*store.EndedChain) (more bool)) error
	Runs(q store.RunQuery) (page []store.RunRecord, next string, err error)
	Segments(key events.Key, from uint64, limit int) ([]store.SegmentRecord, error)
	Attempts(key events.Key, from uint64, limit int) ([]store.AttemptRecord, error)
	Addenda(key events.Key, from uint64, limit int) ([]store.Addendum, error)
	Epochs() ([]store.Epoch, error)
	LostRanges(after uint64, limit int) ([]store.LostRange, error)
	Rejected(q store.RejectedQuery) (page []events.Rejection, next uint64, err error)
}

// Sidecars is what the server asks of stored evidence; *sidecar.Sidecars
// answers it. What is not there is sidecar.ErrNotFound; any other error means
// that it could not be told. Tests inject failures and tampered files through
// it.
type Sidecars interface {
	ReadRun(ctx context.Context, p sidecar.Place, runID string) (*sidecar.Found, error)
	ReadHead(ctx context.Context, p sidecar.Place, class sidecar.Class, head segments.Digest) (*sidecar.Found, error)
	ReadSnapshot(ctx context.Context, p sidecar.Place, runID string) ([]byte, error)
	ReadBundle(ctx context.Context, root segments.Digest) ([]byte, error)
}

var (
	_ Store    = (*store.Store)(nil)
	_ Sidecars = (*sidecar.Sidecars)(nil)
)

// Config says what to serve.
type Config struct {
	Store    Store    // nil: /v1 answers 503
	Sidecars Sidecars // required

	// Pack makes the trust bundle of a chain as of its record, unsigned; what it
	// returns has passed verification. nil: there are none of open chains.
	Pack func(ctx context.Context, chain *store.ChainRecord) ([]byte, error)

	// Trust returns the list that signatures are judged by; the list may be
	// exchanged while the server runs. nil, or a nil list: unpinned.
	Trust func() *keys.TrustList
	// Signing returns the key that the daemon signs with; nil, or a nil key:
	// nothing is signed.
	Signing func() *keys.PublicKey
	// AllowUnsigned serves unsigned bundles although a trust list is set.
	AllowUnsigned bool
	// Tokens returns the tokens that restrict readers, checked by [CheckTokens];
	// the list may be exchanged while the server runs. nil: everybody who can
	// connect reads all. An empty list lets nobody in.
	Tokens func() []Token

	// Hosts are the names by which this server is asked, besides IP addresses
	// and localhost. nil: any name. A server on loopback without tokens should
	// set it, if only to an empty list: a web page whose name is made to point
	// at this machine (DNS rebinding) then gets nothing.
	Hosts []string

	// Ready returns why the daemon is not ready; empty: ready. It must return
	// quickly. nil: always ready.
	Ready func() []Cause
	// Metrics that the daemon feeds; nil: the server's own only.
	Metrics *Metrics

	// Verifications bounds how many files are read and verified at once;
	// 0: the number of usable processors.
	Verifications int
	Logger        *slog.Logger     // nil: nothing is logged
	TellCauses    bool             // internal errors are answered with their causes: whoever asks can read the files, and no log
	Now           func() time.Time // for access logs and latencies; nil: time.Now
}

// server holds what all handlers share; nothing in it changes but the
// verdicts, the gate and the metrics, which lock for themselves.
type server struct {
	Config
	gate     *gate
	held     *budget
	verdicts *verdicts
	site     func() *site // made at the first request for a page
}

// New makes the handler of all routes. Serve it with [NewHTTPServer], which
// sets the timeouts that the handler itself cannot.
func New(cfg Config) (http.Handler, error) {
	if cfg.Sidecars == nil {
		return nil, errors.New("make server: sidecars are required")
	}
	if cfg.Tokens != nil {
		if err := CheckTokens(cfg.Tokens()); err != nil {
			return nil, err
		}
	}
	if cfg.Trust == nil {
		cfg.Trust = func() *keys.TrustList { return nil }
	}
	if cfg.Ready == nil {
		cfg.Ready = func() []Cause { return nil }
	}
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics("unknown", nil)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	n := cmp.Or(max(cfg.Verifications, 0), runtime.GOMAXPROCS(0))
	s := &server{Config: cfg, gate: newGate(n, verifyWait), held: &budget{limit: maxHeld}, verdicts: newVerdicts(maxVerdicts), site: sync.OnceValue(newSite)}
	return s.handler(), nil
}
