package sealer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
)

// longStore makes the segments of one long chain as they are asked for.
type longStore struct {
	*fakeStore
	count uint64
	heads []*segments.Digest // head before every page; pages are asked for in order
}

// longTopo is the plan of the long chain, which cannot name a million steps in
// one segment: the chain breaks it, and is nonconforming.
func longKind(seq uint64) segments.Kind {
	if seq == 0 {
		sum := segments.Sum(nil)
		return &segments.CompCommitted{PlanCommitIDHex: sum.String(), CompSemanticSHA256: sum, StepTopo: []string{"step"}}
	}
	return &segments.StepExecuted{StepID: "step", StepIndex: uint32(seq), RequestFingerprints: []string{}, SourceLine: fmt.Sprint("line ", seq)}
}

func (l *longStore) Segments(_ events.Key, from uint64, limit int) (page []store.SegmentRecord, err error) {
	b := segments.Builder{Next: from, Head: l.heads[from/pageSegments]}
	for b.Next < l.count && len(page) < limit {
		page = append(page, store.SegmentRecord{Origin: fakeOrigin(b.Next), Segment: b.Append(longKind(b.Next), nil)})
	}
	if at := b.Next / pageSegments; at == uint64(len(l.heads)) {
		l.heads = append(l.heads, b.Head)
	}
	return page, nil
}

func (l *longStore) Preimages(events.Key, uint64, int) ([]store.PreimageRecord, error) {
	return nil, nil
}

// TestLongChain: memory for evidence does not grow with the chain, whose bundle is several
// times as large as what is allowed. (A million segments pass too, in 8 s.)
func TestLongChain(t *testing.T) {
	count := uint64(250_000)
	if testing.Short() {
		count = 150_000
	}
	if raceEnabled {
		count = 40_000
	}
	l := &longStore{fakeStore: newFake(), count: count, heads: []*segments.Digest{nil}}
	var b segments.Builder
	for b.Next < count {
		b.Append(longKind(b.Next), nil)
	}
	c := &fakeChain{}
	l.add("long", c, *b.Head)
	c.fixed.State.Segments, c.fixed.State.Order.Misplaced = count, true
	dir, err := sidecar.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	runtime.GC()
	stop, peak := watchHeap()
	sealed := Sealed{}
	s := New(Config{Store: l, Sidecars: openSidecars(t, dir)})
	d, err := s.prepare(t.Context(), &l.jobs[0])
	if err == nil {
		_, _, err = s.sealEvidence(t.Context(), d, &sealed)
	}
	stop()
	if err != nil {
		t.Fatal(err)
	}
	if sealed.Result.Bytes < count*200 {
		t.Errorf("%+v", sealed.Result)
	}
	if mib := peak.Load() >> 20; mib > 32 {
		t.Errorf("heap grew by %d MiB", mib)
	}
	r, err := dir.Open(t.Context(), sealed.Result.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var walk segments.Walk
	if _, _, err := segments.Read(bufio.NewReader(r), walk.Step); err != nil || walk.Count != count || *walk.Head != *b.Head {
		t.Errorf("%d segments, %v", walk.Count, err)
	}
}

// TestLongBundle: the memory for a trust bundle stays within a multiple of its
// bytes. CHAIND_LONG_BUNDLE=100000 measures another length.
func TestLongBundle(t *testing.T) {
	count := uint64(5_000)
	if text := os.Getenv("CHAIND_LONG_BUNDLE"); text != "" {
		var err error
		if count, err = strconv.ParseUint(text, 10, 32); err != nil {
			t.Fatal(err)
		}
	}
	l := &longStore{fakeStore: newFake(), count: count, heads: []*segments.Digest{nil}}
	var b segments.Builder
	for b.Next < count {
		b.Append(longKind(b.Next), nil)
	}
	c := &fakeChain{}
	key := l.add("long", c, *b.Head)
	c.fixed.State.Segments, c.fixed.State.Order.Misplaced = count, true
	record, err := l.Chain(key)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	stop, peak := watchHeap()
	text, _, err := Pack(t.Context(), l, record, nil, nil)
	stop()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d segments, %d bytes, heap grew by %d MiB", count, len(text), peak.Load()>>20)
	if limit := uint64(64<<20 + 12*len(text)); peak.Load() > limit {
		t.Errorf("heap grew by %d bytes for a bundle of %d", peak.Load(), len(text))
	}
}

// TestChangedBetweenPasses: a bundle too large to be kept is generated again for
// the writing; other bytes than those that were checked are not written.
func TestChangedBetweenPasses(t *testing.T) {
	t.Parallel()
	const count = 16_000 // some 5 MB
	l := &longStore{fakeStore: newFake(), count: count, heads: []*segments.Digest{nil}}
	var b segments.Builder
	for b.Next < count {
		b.Append(longKind(b.Next), nil)
	}
	c := &fakeChain{}
	l.add("long", c, *b.Head)
	c.fixed.State.Segments, c.fixed.State.Order.Misplaced = count, true
	m := sidecar.NewMemory()
	_, err := sealOne(t, New(Config{Store: &fickleStore{longStore: l}, Sidecars: openSidecars(t, m)}), &l.jobs[0])
	if !errors.Is(err, ErrContradiction) || len(dump(t, m)) != 0 {
		t.Errorf("%v, %d blobs", err, len(dump(t, m)))
	}
}

// fickleStore gives a time to the last segment when it is asked a second time.
type fickleStore struct {
	*longStore
	passes int
}

func (f *fickleStore) Segments(key events.Key, from uint64, limit int) ([]store.SegmentRecord, error) {
	page, err := f.longStore.Segments(key, from, limit)
	if n := len(page); n > 0 && page[n-1].Segment.Seq == f.count-1 {
		if f.passes++; f.passes > 1 {
			at := uint64(1)
			page[n-1].Segment.EmittedAtMS = &at
		}
	}
	return page, err
}

// watchHeap notes by how much the heap has grown at most, until stop is called.
func watchHeap() (stop func(), peak *atomic.Uint64) {
	peak = new(atomic.Uint64)
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			runtime.ReadMemStats(&now)
			if now.HeapAlloc > before.HeapAlloc {
				peak.Store(max(peak.Load(), now.HeapAlloc-before.HeapAlloc))
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
	return func() { cancel(); <-done }, peak
}
