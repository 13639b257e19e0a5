package server

import (
	"context"
	"crypto/ed25519"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
)

func newSigner(t *testing.T, fill byte) ed25519.PrivateKey {
	t.Helper()
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = fill
	return ed25519.NewKeyFromSeed(seed)
}

func public(key ed25519.PrivateKey) keys.PublicKey {
	return keys.PublicKey(key.Public().(ed25519.PublicKey))
}

func TestVerdictsForgetTheOldest(t *testing.T) {
	t.Parallel()
	v := newVerdicts(3)
	ask := func(i int) question { return question{runID: strconv.Itoa(i)} }
	for i := range 3 {
		v.put(ask(i), verdict{head: strconv.Itoa(i)})
	}
	if _, ok := v.get(ask(0)); !ok { // now the most recent
		t.Fatal("0 was forgotten")
	}
	v.put(ask(3), verdict{})
	if _, ok := v.get(ask(1)); ok {
		t.Error("1 was the oldest and is still there")
	}
	if got, ok := v.get(ask(0)); !ok || got.head != "0" {
		t.Error("0 was asked for and is gone")
	}
	if len(v.known) != 3 || v.order.Len() != 3 {
		t.Errorf("%d known, %d in order", len(v.known), v.order.Len())
	}
}

// TestVerdictsAreNotByName changes each part of a question.
func TestVerdictsAreNotByName(t *testing.T) {
	t.Parallel()
	one := segments.Sum([]byte("1"))
	v := newVerdicts(100)
	v.put(question{}, verdict{head: "known"})
	for name, q := range map[string]question{
		"tenant": {place: sidecar.Place{Tenant: "a"}}, "prompt": {place: sidecar.Place{PromptHash: "a"}}, "session": {place: sidecar.Place{Session: "a"}},
		"class": {class: sidecar.Unplanned}, "head": {head: one}, "file": {file: one}, "snapshot": {snapshot: one}, "run": {runID: "a"},
		"trust": {trust: new(keys.TrustList)}, "unsigned": {allowUnsigned: true},
	} {
		if _, ok := v.get(q); ok {
			t.Errorf("a question that differs in %s has the same verdict", name)
		}
	}
}

// TestRaceBetweenTamperingAndReading asks from many goroutines while the file
// changes between an honest and a tampered one: no tampered byte is served
// and nobody's remembered verdict covers other bytes.
func TestRaceBetweenTamperingAndReading(t *testing.T) {
	t.Parallel()
	h, b := vectorHandler(t)
	honest := b.get(headFile)
	tampered := editBundle(t, func(bundle *segments.Bundle) {
		bundle.Segments[2].Kind.(*segments.StepExecuted).SourceLine += "!"
	})(honest)
	stop := make(chan struct{})
	var writer, readers sync.WaitGroup
	writer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			b.put(headFile, [][]byte{honest, tampered}[i%2])
		}
	})
	for range 4 {
		readers.Go(func() {
			for range 100 {
				w := get(h, "GET", runURL)
				if w.Code == http.StatusOK && w.Body.String() != string(honest) {
					t.Error("tampered bytes were served")
					return
				}
				if w.Code != http.StatusOK && w.Code != http.StatusUnprocessableEntity {
					t.Errorf("status %d", w.Code)
				}
			}
		})
	}
	readers.Wait()
	close(stop)
	writer.Wait()
}

// blockedSidecars hold every reading until the test lets it go.
type blockedSidecars struct {
	Sidecars
	entered chan struct{}
	release chan struct{}
}

func (b *blockedSidecars) ReadRun(ctx context.Context, p sidecar.Place, runID string) (*sidecar.Found, error) {
	b.entered <- struct{}{}
	select {
	case <-b.release:
		return b.Sidecars.ReadRun(ctx, p, runID)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestVerificationsAreBounded(t *testing.T) {
	tree := loadTree(t, "two-run")
	synctest.Test(t, func(t *testing.T) {
		blocked := &blockedSidecars{Sidecars: tree.sidecars(), entered: make(chan struct{}, 10), release: make(chan struct{})}
		m := NewMetrics("test", nil)
		h := newHandler(t, Config{Sidecars: blocked, Verifications: 2, Metrics: m})
		codes := make(chan int, 2)
		for range 2 {
			go func() { codes <- get(h, "GET", runURL).Code }()
		}
		<-blocked.entered
		<-blocked.entered
		start := time.Now()
		w := get(h, "GET", runURL)
		wantProblem(t, w, http.StatusServiceUnavailable, typeBusy)
		if w.Header().Get("Retry-After") != "2" || time.Since(start) != verifyWait {
			t.Errorf("Retry-After %q after %v", w.Header().Get("Retry-After"), time.Since(start))
		}
		if got := metricValue(t, m, `chaind_verifications_total{result="unavailable"}`); got != 1 {
			t.Errorf("%v unavailable counted", got)
		}
		if w := get(h, "GET", "/healthz"); w.Code != http.StatusOK {
			t.Errorf("health: %d", w.Code)
		}
		close(blocked.release)
		for range 2 {
			if code := <-codes; code != http.StatusOK {
				t.Errorf("status %d", code)
			}
		}
		if w := get(h, "GET", runURL); w.Code != http.StatusOK {
			t.Errorf("afterwards: %d", w.Code)
		}
	})
}

func TestHangingReadIsGivenUp(t *testing.T) {
	tree := loadTree(t, "two-run")
	synctest.Test(t, func(t *testing.T) {
		blocked := &blockedSidecars{Sidecars: tree.sidecars(), entered: make(chan struct{}, 10), release: make(chan struct{})}
		h := newHandler(t, Config{Sidecars: blocked, Verifications: 1})
		start := time.Now()
		wantProblem(t, get(h, "GET", runURL), http.StatusServiceUnavailable, typeUnavailable)
		if took := time.Since(start); took != verifyTimeout {
			t.Errorf("given up after %v", took)
		}
	})
}

func TestGateEndsWithTheCaller(t *testing.T) {
	t.Parallel()
	g := newGate(1, time.Hour)
	leave, err := g.enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.enter(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	leave()
	leave, err = g.enter(ctx) // a free slot needs no waiting
	if err != nil {
		t.Fatal(err)
	}
	leave()
}

func TestBudgetBoundsAnswersOnTheirWay(t *testing.T) {
	t.Parallel()
	b := &budget{limit: 10}
	first, err := b.take(6)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.take(5); !errors.Is(err, errBusy) {
		t.Errorf("11 of 10: %v", err)
	}
	second, err := b.take(4)
	if err != nil {
		t.Fatal(err)
	}
	first()
	second()
	huge, err := b.take(1000) // alone it always fits
	if err != nil {
		t.Fatal(err)
	}
	huge()
	if held := b.held.Load(); held != 0 {
		t.Errorf("%d bytes are held by nobody", held)
	}
}
