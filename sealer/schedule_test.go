package sealer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/sidecar"
)

// TestPauses: a failing job is tried again after pauses that double up to a
// minute, is visible meanwhile, and recovers.
func TestPauses(t *testing.T) {
	t.Parallel()
	const failures = 13
	f := newFake()
	key := f.finish("a", 1)
	count := 0
	b := &blobs{Blobs: sidecar.NewMemory(), hook: func(_ context.Context, op, _ string) error {
		if op == "put once" {
			if count++; count <= failures {
				return fmt.Errorf("attempt %d: %w", count, errInjected)
			}
		}
		return nil
	}}
	clock := &fakeClock{now: fixedNow()}
	var during Status
	var s *Sealer
	f.finish("b") // nothing of this one fails later
	cfg := Config{Store: f, Sidecars: openSidecars(t, b), Workers: 1, Now: clock.Now, After: func(d time.Duration) <-chan time.Time {
		during = s.Status()
		return clock.After(d)
	}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sealed := 0
	cfg.OnSealed = func(Sealed) {
		if sealed++; sealed == 2 {
			cancel()
		}
	}
	cfg.SkipAudit = true
	s = New(cfg)
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if _, ok := f.finished[key]; !ok || sealed != 2 {
		t.Fatalf("sealed %d, %+v", sealed, s.Status())
	}
	// Two jobs fail in turn at first; each has its own pauses.
	for i, d := range clock.waits {
		if d > LongestPause || d <= 0 {
			t.Errorf("pause %d is %s", i, d)
		}
	}
	if len(f.failures) != failures || !strings.Contains(f.failures[0], "attempt 1: injected fault") {
		t.Errorf("recorded: %q", f.failures)
	}
	if during.Failing == 0 || !during.Since.Equal(fixedNow()) || !strings.Contains(during.LastError, "injected fault") {
		t.Errorf("while failing: %+v", during)
	}
	if st := s.Status(); st.Failing != 0 || st.LastError != "" || !st.Since.IsZero() {
		t.Errorf("after the recovery: %+v", st)
	}
}

func TestPausesDouble(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.finish("a")
	b := &blobs{Blobs: sidecar.NewMemory(), hook: func(context.Context, string, string) error { return errInjected }}
	clock := &fakeClock{now: fixedNow()}
	ctx, cancel := context.WithCancel(t.Context())
	s := New(Config{Store: f, Sidecars: openSidecars(t, b), SkipAudit: true, Now: clock.Now, After: func(d time.Duration) <-chan time.Time {
		if len(clock.waits) == 12 {
			cancel()
		}
		return clock.After(d)
	}})
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	want := []time.Duration{}
	for d := FirstPause; len(want) < 12; d *= 2 {
		want = append(want, min(d, LongestPause))
	}
	if diff := cmp.Diff(want, clock.waits[:12]); diff != "" {
		t.Error(diff)
	}
}

// TestFailingJobHoldsUpNothing: one chain's trouble, for good, is its own.
func TestFailingJobHoldsUpNothing(t *testing.T) {
	t.Parallel()
	f := newFake()
	stuck := f.finish("stuck")
	head := f.chains[stuck].fixed.State.Head.String()
	b := &blobs{Blobs: sidecar.NewMemory(), hook: func(_ context.Context, _, name string) error {
		if strings.Contains(name, head) {
			return errInjected
		}
		return nil
	}}
	for i := range 200 {
		f.finish(fmt.Sprint(i), i)
	}
	clock := &fakeClock{now: fixedNow()}
	s := runUntil(t, Config{Store: f, Sidecars: openSidecars(t, b), Workers: 4, Now: clock.Now, After: clock.After, SkipAudit: true},
		func(*Sealer) bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.jobs) == 1 })
	if f.jobs[0].Key != stuck || s.Status().Failing != 1 {
		t.Errorf("left: %v, %+v", f.jobs, s.Status())
	}
}

// TestWakes: jobs that come while the sealer runs are begun without a pause.
func TestWakes(t *testing.T) {
	t.Parallel()
	f := newFake()
	sealed := make(chan events.Key, 1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	s := New(Config{Store: f, Sidecars: openSidecars(t, sidecar.NewMemory()), SkipAudit: true,
		OnSealed: func(x Sealed) { sealed <- x.Key },
		After: func(time.Duration) <-chan time.Time {
			t.Error("an idle sealer waits for a time")
			return nil
		}})
	go func() { done <- s.Run(ctx) }()
	for i := range 20 {
		key := f.finish(fmt.Sprint(i))
		select {
		case got := <-sealed:
			if got != key {
				t.Errorf("sealed %v", got)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the sealer did not wake")
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestSlowBackEnd: a back end that hangs holds up neither other jobs nor the
// end of Run, and what it interrupted is no failure.
func TestSlowBackEnd(t *testing.T) {
	defer goleak.VerifyNone(t)
	f := newFake()
	slow := f.finish("slow")
	head := f.chains[slow].fixed.State.Head.String()
	hanging := make(chan struct{})
	b := &blobs{Blobs: sidecar.NewMemory(), hook: func(ctx context.Context, _, name string) error {
		if !strings.Contains(name, head) {
			return nil
		}
		close(hanging)
		<-ctx.Done()
		return ctx.Err()
	}}
	ctx, cancel := context.WithCancel(t.Context())
	var sealed atomic.Int32
	all := make(chan struct{})
	s := New(Config{Store: f, Sidecars: openSidecars(t, b), Workers: 2, SkipAudit: true, OnSealed: func(Sealed) {
		if sealed.Add(1) == 20 {
			close(all)
		}
	}})
	for i := range 20 {
		f.finish(fmt.Sprint(i), i)
	}
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	deadline := time.After(20 * time.Second)
	for _, ch := range []chan struct{}{hanging, all} {
		select {
		case <-ch:
		case <-deadline:
			t.Fatal("the slow job holds up the others")
		}
	}
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-deadline:
		t.Fatal("Run does not end")
	}
	if len(f.failures) != 0 || s.Status().Failing != 0 || len(f.jobs) != 1 {
		t.Errorf("stopping passes for failing: %v, %v", f.failures, s.Status())
	}
}

// TestListFails: a store whose list of jobs cannot be read is visible, and
// asked again.
func TestListFails(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.finish("a")
	f.listErr = errInjected
	clock := &fakeClock{now: fixedNow()}
	var s *Sealer
	var during Status
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s = New(Config{Store: f, Sidecars: openSidecars(t, sidecar.NewMemory()), SkipAudit: true, Now: clock.Now,
		OnSealed: func(Sealed) { cancel() },
		After: func(d time.Duration) <-chan time.Time {
			if during = s.Status(); len(clock.waits) == 3 {
				f.mu.Lock()
				f.listErr = nil
				f.mu.Unlock()
			}
			return clock.After(d)
		}})
	if err := s.Run(ctx); err != nil || !errors.Is(ctx.Err(), context.Canceled) {
		t.Fatal(err, ctx.Err())
	}
	if during.LastError != errInjected.Error() || during.Since.IsZero() || s.Status().LastError != "" {
		t.Errorf("%+v, then %+v", during, s.Status())
	}
}

// TestManyFailures: with the back end down, failing jobs are bounded in memory
// and all of them get done when it is back.
func TestManyFailures(t *testing.T) {
	t.Parallel()
	f := newFake()
	const n = maxFailing + 200
	for i := range n {
		f.finish(fmt.Sprint(i))
	}
	var down atomic.Bool
	down.Store(true)
	b := &blobs{Blobs: sidecar.NewMemory(), hook: func(context.Context, string, string) error {
		if down.Load() {
			return errInjected
		}
		return nil
	}}
	clock := &fakeClock{now: fixedNow()}
	var s *Sealer
	most := 0
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var sealed atomic.Int32
	s = New(Config{Store: f, Sidecars: openSidecars(t, b), SkipAudit: true, Now: clock.Now,
		OnSealed: func(Sealed) {
			if sealed.Add(1) == n {
				cancel()
			}
		},
		After: func(d time.Duration) <-chan time.Time {
			most = max(most, s.Status().Failing)
			if most >= maxFailing {
				down.Store(false)
			}
			return clock.After(d)
		}})
	if err := s.Run(ctx); err != nil || sealed.Load() != n {
		t.Fatalf("%v, %d sealed, %+v", err, sealed.Load(), s.Status())
	}
	if most > maxFailing+DefaultWorkers {
		t.Errorf("%d failing jobs were kept", most)
	}
}
