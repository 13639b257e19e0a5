package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/chaind/chaind/events"
	"go.etcd.io/bbolt"
)

// tight makes every flush rule bite within a small vector.
func tight(s *Store) { s.flush = flushLimits{tail: 40, slack: 10, pending: 9} }

func reopen(t testing.TB, s *Store) *Store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	n, err := Open(s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	n.flush = s.flush
	return n
}

// Random batch sizes, flush limits, cache sizes and restarts: the same result.
func TestRestartsBetweenBatches(t *testing.T) {
	v := loadVector(t, "small")
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, 1))
			cfg := testConfig(t)
			cfg.CachedChains = 1 + rnd.IntN(4)
			s := openStore(t, cfg)
			s.flush = flushLimits{tail: uint64(rnd.IntN(60)) + 5, slack: uint64(rnd.IntN(5)), pending: 1 + rnd.IntN(12)}
			for i := 0; i < len(v.Messages); {
				n := 1 + rnd.IntN(20)
				mustAppend(t, s, v.batch(i, i+n))
				i += n
				if rnd.IntN(4) == 0 {
					s = reopen(t, s)
				}
				if rnd.IntN(8) == 0 {
					mustCheck(t, s)
				}
			}
			v.verify(t, s)
			s = reopen(t, s)
			v.verify(t, s)
			mustCheck(t, s)
			s.Close()
		})
	}
}

var errInjected = errors.New("injected")

// Two-sided faults: what failed was not persisted, or was; then the caller
// retries, or the process starts anew; then again with the next batch.
func TestFailedCommits(t *testing.T) {
	v := loadVector(t, "small")
	faults := map[string]func(*Store){
		"not persisted": func(s *Store) { s.testingOnly.beforeCommit = func() error { return errInjected } },
		"persisted":     func(s *Store) { s.testingOnly.afterCommit = func() error { return errInjected } },
	}
	for name, inject := range faults {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %v", name, restart), func(t *testing.T) {
				t.Parallel()
				s := openStore(t, testConfig(t))
				tight(s)
				for i := 0; i < len(v.Messages); i += 23 {
					inject(s)
					for range 2 { // fail, and fail again
						if _, err := s.Append(context.Background(), v.batch(i, i+23)); !errors.Is(err, errInjected) {
							t.Fatalf("append: %v", err)
						}
						mustCheck(t, s)
					}
					if st, _ := s.Stats(); st.LastWriteError == "" {
						t.Error("the failure does not show")
					}
					s.testingOnly = hooks{}
					if restart {
						s = reopen(t, s)
					}
					mustAppend(t, s, v.batch(i, i+23))
					mustCheck(t, s)
				}
				v.verify(t, s)
				s.Close()
			})
		}
	}
}

// After a commit that failed without being persisted, readers see what was.
func TestFailedCommitIsInvisible(t *testing.T) {
	v := loadVector(t, "small")
	s := openStore(t, testConfig(t))
	mustAppend(t, s, v.batch(0, 150))
	before, _, err := s.Chains(ChainQuery{Limit: MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	s.testingOnly.beforeCommit = func() error { return errInjected }
	effects, err := s.Append(context.Background(), v.batch(150, 303))
	if err == nil || effects != nil {
		t.Fatalf("append gave %d effects, %v", len(effects), err)
	}
	s.testingOnly = hooks{}
	after, _, err := s.Chains(ChainQuery{Limit: MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(before) != fmt.Sprint(after) && len(before) != len(after) {
		t.Error("a failed batch is visible")
	}
	for i := range before {
		if before[i].Segments != after[i].Segments || before[i].Outcome != after[i].Outcome || before[i].Rejected != after[i].Rejected {
			t.Errorf("a failed batch is visible in chain %s", before[i].Key.Chain)
		}
	}
	if w, _ := s.Watermark(testStream); w.Applied != 150 {
		t.Errorf("watermark %d after a failed batch", w.Applied)
	}
}

// A full disk is found while writing and may be tried again; after a failed
// fsync this process writes no more, and the next one goes on.
func TestCommitErrors(t *testing.T) {
	v := loadVector(t, "small")
	s := openStore(t, testConfig(t))
	mustAppend(t, s, v.batch(0, 100))
	fail := func(err error) func(*bbolt.Tx) error {
		return func(tx *bbolt.Tx) error { return errors.Join(tx.Rollback(), err) }
	}
	for fault, cause := range map[WriteFault]error{FaultDiskFull: syscall.ENOSPC, FaultReadOnly: syscall.EROFS} {
		s.testingOnly.commit = fail(pathError("write", cause))
		if _, err := s.Append(context.Background(), v.batch(100, 200)); !errors.Is(err, cause) || errors.Is(err, ErrBroken) {
			t.Fatalf("%s: %v", fault, err)
		}
		if st, err := s.Stats(); err != nil || st.WriteFault != fault {
			t.Errorf("fault %q, want %q (%v)", st.WriteFault, fault, err)
		}
	}
	s.testingOnly.commit = nil
	mustAppend(t, s, v.batch(100, 200))
	for _, bad := range []error{syscall.EIO, pathError("sync", syscall.ENOSPC)} {
		s.testingOnly.commit = fail(bad)
		if _, err := s.Append(context.Background(), v.batch(200, 303)); !errors.Is(err, ErrBroken) {
			t.Fatalf("failed fsync: %v", err)
		}
		s.testingOnly.commit = nil
		if _, err := s.Append(context.Background(), v.batch(200, 303)); !errors.Is(err, ErrBroken) {
			t.Fatalf("append after a failed fsync: %v", err)
		}
		if _, _, err := s.Chains(ChainQuery{}); err != nil {
			t.Errorf("reading after a failed fsync: %v", err)
		}
		s = reopen(t, s)
	}
	mustAppend(t, s, v.batch(200, 303))
	v.verify(t, s)
	mustCheck(t, s)
	s.Close()
}

// A batch that cannot be applied does not take others in its group along.
func TestPoisonOperationAlone(t *testing.T) {
	v := loadVector(t, "small")
	s := openStore(t, testConfig(t))
	s.token <- struct{}{} // let both wait for one transaction
	type result struct {
		effects []events.Effect
		err     error
	}
	good, bad := make(chan result, 1), make(chan result, 1)
	go func() {
		e, err := s.Append(context.Background(), v.batch(0, 50))
		good <- result{e, err}
	}()
	go func() {
		b := &events.Batch{Stream: events.Stream{Name: "OTHER"}, Events: []*events.Event{{}}}
		e, err := s.Append(context.Background(), b)
		bad <- result{e, err}
	}()
	waitFor(t, func() bool { s.queueMu.Lock(); defer s.queueMu.Unlock(); return len(s.queue) == 2 })
	<-s.token
	if r := <-good; r.err != nil || len(r.effects) != 50 {
		t.Errorf("good batch: %d effects, %v", len(r.effects), r.err)
	}
	if r := <-bad; !errors.Is(r.err, errNoSequence) {
		t.Errorf("bad batch: %v", r.err)
	}
}

func TestAppendHonoursContext(t *testing.T) {
	v := loadVector(t, "small")
	s := openStore(t, testConfig(t))
	ctx, cancel := context.WithCancel(context.Background())
	s.token <- struct{}{}
	done := make(chan error, 1)
	go func() {
		_, err := s.Append(ctx, v.batch(0, 10))
		done <- err
	}()
	waitFor(t, func() bool { s.queueMu.Lock(); defer s.queueMu.Unlock(); return len(s.queue) == 1 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("append: %v", err)
	}
	<-s.token
	if w, _ := s.Watermark(testStream); w != (Watermark{}) {
		t.Errorf("a withdrawn batch was applied: %v", w)
	}
}

func TestCloseFailsWaitingCalls(t *testing.T) {
	v := loadVector(t, "small")
	s := openStore(t, testConfig(t))
	s.token <- struct{}{}
	done := make(chan error, 1)
	go func() {
		_, err := s.Append(context.Background(), v.batch(0, 10))
		done <- err
	}()
	waitFor(t, func() bool { s.queueMu.Lock(); defer s.queueMu.Unlock(); return len(s.queue) == 1 })
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	waitFor(t, func() bool { s.queueMu.Lock(); defer s.queueMu.Unlock(); return s.closing })
	<-s.token
	<-closed
	// Either Close took the token first, or the batch did; both are clean.
	if err := <-done; err != nil && !errors.Is(err, ErrClosed) {
		t.Errorf("append: %v", err)
	}
	if _, err := s.Append(context.Background(), v.batch(0, 10)); !errors.Is(err, ErrClosed) {
		t.Errorf("append after close: %v", err)
	}
	if _, err := s.Chain(events.Key{}); !errors.Is(err, ErrClosed) {
		t.Errorf("read after close: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}
