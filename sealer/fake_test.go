package sealer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
)

const (
	testPrompt  = "74cca950dc3d33908181dcef52a1afe4255aed08b3c2b285d6bf182ebe416d50"
	testSession = "5e55107a5e55107a5e55107a5e55107a"
)

func fixedSigner(t testing.TB) func() *keys.Signer {
	t.Helper()
	signer, err := keys.ParseSigner(strings.Repeat("01", 32))
	if err != nil {
		t.Fatal(err)
	}
	return func() *keys.Signer { return signer }
}

// fakeStore holds finished chains made by the test. Its seams make calls fail.
type fakeStore struct {
	mu       sync.Mutex
	jobs     []store.SealJob
	chains   map[events.Key]*fakeChain
	finished map[events.Key]store.SealResult
	failures []string
	added    chan struct{}

	onFinish func(*store.SealJob) error // nil: succeeds
	listErr  error
}

type fakeChain struct {
	fixed     store.Fixed
	segments  []segments.Segment
	preimages []store.PreimageRecord
	attempts  []store.AttemptRecord
	rejected  []events.Rejection
	lost      []store.LostRange
}

func newFake() *fakeStore {
	return &fakeStore{
		chains: map[events.Key]*fakeChain{}, finished: map[events.Key]store.SealResult{}, added: make(chan struct{}, 1),
	}
}

func runID(n int) string { return fmt.Sprintf("pr%064x", n) }

func snapshotOf(name string) string {
	return `{"entry_id":"` + name + `","parsed_preimage":null,"request_fingerprints":[],"display_lines":[]}`
}

// finish adds a chain of one planned step with a seal for each run.
func (f *fakeStore) finish(name string, runs ...int) events.Key {
	at := uint64(1_767_225_600_000)
	comp := segments.Sum([]byte(name))
	kinds := []segments.Kind{
		&segments.CompCommitted{PlanCommitIDHex: comp.String(), CompSemanticSHA256: comp, StepTopo: []string{"s"}},
		&segments.StepExecuted{StepID: "s", RequestFingerprints: []string{}, SourceLine: name},
	}
	for _, n := range runs {
		digest, err := segments.ParseDigest(runID(n)[2:])
		if err != nil {
			panic(err)
		}
		kinds = append(kinds, &segments.RunSealed{RunID: runID(n), RunBundleDigest: digest})
	}
	var b segments.Builder
	c := &fakeChain{}
	for _, k := range kinds {
		c.segments = append(c.segments, b.Append(k, &at))
	}
	for i, k := range kinds {
		if _, ok := k.(*segments.RunSealed); ok {
			seq := uint64(i)
			c.preimages = append(c.preimages, store.PreimageRecord{Ordinal: uint64(len(c.preimages)), Seq: &seq,
				Preimage: events.Preimage{Artifact: []byte(snapshotOf(name))}})
		}
	}
	return f.add(name, c, *b.Head)
}

func (f *fakeStore) add(name string, c *fakeChain, head segments.Digest) events.Key {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := events.Key{PromptHash: testPrompt, Session: testSession, Chain: name}
	state := events.NewState(key)
	scope := state.BoundScope()
	state.Scope, state.Outcome, state.Head, state.Segments = &scope, events.Succeeded, &head, uint64(len(c.segments))
	state.Order.Planned = true
	id := uint64(len(f.chains) + 1)
	c.fixed = store.Fixed{State: state, Epoch: 1, StreamSeq: id}
	f.chains[key] = c
	f.jobs = append(f.jobs, store.SealJob{ID: id, Key: key, Fixed: c.fixed})
	select {
	case f.added <- struct{}{}:
	default:
	}
	return key
}

// addEmpty adds a chain that ended without a segment.
func (f *fakeStore) addEmpty(name string) events.Key {
	key := f.add(name, &fakeChain{}, segments.Digest{})
	state := f.chains[key].fixed.State
	state.Head, state.Outcome, state.Reason, state.LastEventID = nil, events.Cancelled, "not needed", "end"
	return key
}

func (f *fakeStore) SealJobs(after uint64, limit int) ([]store.SealJob, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listErr != nil {
		return nil, f.listErr
	}
	var page []store.SealJob
	for _, j := range f.jobs {
		if j.ID > after && len(page) < limit {
			page = append(page, j)
		}
	}
	return page, nil
}

func (f *fakeStore) SealJobsAdded() <-chan struct{} { return f.added }

func (f *fakeStore) FinishSeal(_ context.Context, job *store.SealJob, result store.SealResult) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.onFinish != nil {
		if err := f.onFinish(job); err != nil {
			return err
		}
	}
	f.jobs = slices.DeleteFunc(f.jobs, func(j store.SealJob) bool { return j.ID == job.ID })
	f.finished[job.Key] = result
	return nil
}

func (f *fakeStore) FailSeal(_ context.Context, job *store.SealJob, reason string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures = append(f.failures, job.Key.Chain+": "+reason)
	return nil
}

func (f *fakeStore) Chain(key events.Key) (*store.ChainRecord, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := f.chains[key]
	if !ok {
		return nil, store.ErrNotFound
	}
	return &store.ChainRecord{Key: key, State: c.fixed.State, Fixed: &c.fixed, Lost: c.lost}, nil
}

func (f *fakeStore) Chains(q store.ChainQuery) (page []store.ChainSummary, next string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, c := range f.chains {
		if result, ok := f.finished[key]; ok {
			var runs []string
			for _, s := range c.segments {
				if run, ok := s.Kind.(*segments.RunSealed); ok {
					runs = append(runs, run.RunID)
				}
			}
			page = append(page, store.ChainSummary{Key: key, RunIDs: runs, Sealed: &result})
		}
	}
	return page, "", nil
}

func (f *fakeStore) Segments(key events.Key, from uint64, limit int) (page []store.SegmentRecord, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.chains[key].segments
	for i := from; i < uint64(len(list)) && len(page) < limit; i++ {
		page = append(page, store.SegmentRecord{Segment: list[i], Origin: fakeOrigin(i)})
	}
	return page, nil
}

func (f *fakeStore) Preimages(key events.Key, from uint64, _ int) ([]store.PreimageRecord, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.chains[key].preimages
	return list[min(from, uint64(len(list))):], nil
}

// fakeOrigin is the event that brought a segment.
func fakeOrigin(seq uint64) store.Origin {
	return store.Origin{EventID: fmt.Sprint("e", seq), ProducerSeq: &seq, Epoch: 1, StreamSeq: seq + 1}
}

func (f *fakeStore) Attempts(key events.Key, from uint64, _ int) ([]store.AttemptRecord, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.chains[key].attempts
	return list[min(from, uint64(len(list))):], nil
}

func (f *fakeStore) Rejected(q store.RejectedQuery) (page []events.Rejection, next uint64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.chains[*q.Key].rejected {
		if r.ID > q.After && r.ID <= q.UpTo {
			page = append(page, r)
		}
	}
	return page, 0, nil
}

func (f *fakeStore) Epochs() ([]store.Epoch, error) {
	return []store.Epoch{
		{Number: 1, Stream: events.Stream{Name: "EVIDENCE", CreatedNS: 1}},
		{Number: 2, Stream: events.Stream{Name: "EVIDENCE", CreatedNS: 2}},
	}, nil
}

// blobs makes operations of a back end fail or wait, as hook says.
type blobs struct {
	sidecar.Blobs
	hook func(ctx context.Context, op, name string) error
}

func (b *blobs) Put(ctx context.Context, name string, body sidecar.Body) error {
	if err := b.hook(ctx, "put", name); err != nil {
		return err
	}
	return b.Blobs.Put(ctx, name, body)
}

func (b *blobs) PutOnce(ctx context.Context, name string, body sidecar.Body) error {
	if err := b.hook(ctx, "put once", name); err != nil {
		return err
	}
	return b.Blobs.PutOnce(ctx, name, body)
}

var errInjected = errors.New("injected fault")

// fakeClock moves only when somebody waits: each wait is noted and over at once.
type fakeClock struct {
	mu    sync.Mutex
	now   time.Time
	waits []time.Duration
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.waits = append(c.waits, d)
	ch := make(chan time.Time, 1)
	ch <- c.now
	return ch
}
