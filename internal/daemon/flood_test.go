package daemon

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

const (
	floodEvents  = 20_000
	floodTenants = 500
	floodSize    = 4 << 10 // bytes of a valid event, about
	// floodHeap bounds what is alive at once: caches and buffers of the daemon,
	// which have limits of their own, and the pools of the broker, which runs in
	// this process too.
	floodHeap = 320 << 20
)

// heap follows how much memory is in use, garbage left out.
type heap struct {
	peak atomic.Uint64
	stop chan struct{}
	wg   sync.WaitGroup
}

func watchHeap() *heap {
	h := &heap{stop: make(chan struct{})}
	h.wg.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			h.peak.Store(max(h.peak.Load(), m.HeapAlloc))
			select {
			case <-tick.C:
			case <-h.stop:
				return
			}
		}
	})
	return h
}

func (h *heap) end() uint64 { close(h.stop); h.wg.Wait(); return h.peak.Load() }

// floodMessage is one of a flood: of many tenants and chains, one in four
// malformed, and one in four the end of its chain.
func floodMessage(n int) *nats.Msg {
	key := events.Key{Tenant: fmt.Sprint("t", n%floodTenants), PromptHash: strings.Repeat("f0", 32), Session: fmt.Sprintf("%032x", n%7), Chain: fmt.Sprint("c", n/4)}
	verb, payload := events.VerbStep, ""
	switch n % 4 {
	case 0, 1:
		payload = fmt.Sprintf(`{"v":1,"event_id":"e%d","kind":{"kind":"step_executed","step_id":"s","step_index":0,"request_fingerprints":[],"source_line":%q,"parsed_expr_digest":%q}}`,
			n, strings.Repeat("x", floodSize-300), segments.Sum(nil).String())
	case 2:
		payload = `{"v":1,` + strings.Repeat(" ", floodSize-20) + `"unknown":1}`
	case 3:
		verb, payload = events.VerbSeal, fmt.Sprintf(`{"v":1,"event_id":"e%d","outcome":"failed","reason":"r"}`, n)
	}
	return &nats.Msg{Subject: key.Subject(verb), Data: []byte(payload)}
}

// A flood of tenants and chains, a quarter of it rejected and a quarter ends of
// chains, takes a bounded part of memory; a quiet chain in the middle of it is
// taken and sealed; what is rejected and what waits to be sealed is counted all
// the time, and goes to nothing in the end.
func TestFloodOfTenantsAndChains(t *testing.T) {
	url := startTestBroker(t)
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	d := runDaemon(t, Config{DataDir: t.TempDir(), NATS: NATSConfig{URL: url}})
	h := watchHeap()
	conn, err := emitter.Connect(emitter.ConnConfig{URL: url, Name: "flood"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(256))
	if err != nil {
		t.Fatal(err)
	}
	messages := floodEvents
	if testing.Short() {
		messages /= 8
	}
	publish := func(m *nats.Msg) {
		if _, err := js.PublishMsgAsync(m, jetstream.WithStallWait(patience)); err != nil {
			t.Fatal(err)
		}
	}
	quiet := gapKey
	quiet.Chain = "quiet"
	for n := range messages {
		if publish(floodMessage(n)); n == messages/2 {
			publish(&nats.Msg{Subject: quiet.Subject(events.VerbSeal), Data: []byte(`{"v":1,"event_id":"z","outcome":"failed","reason":"quiet"}`)})
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(patience):
		t.Fatal("the broker does not take the flood")
	}
	waitUntil(t, "the quiet chain", func() bool {
		page, err := fetch(d.HTTPURL + "/v1/chains/acme/" + quiet.PromptHash + "/" + quiet.Session + "/quiet")
		return err == nil && strings.Contains(page, `"sealed":{`)
	})
	page := metricsPage(d.HTTPURL)
	for _, gauge := range []string{"chaind_rejections_unpublished", `chaind_seal_jobs{state="pending"}`, "chaind_intake_lag_messages"} {
		if !strings.Contains(page, "\n"+gauge+" ") {
			t.Errorf("%s cannot be seen", gauge)
		}
	}
	waitUntil(t, "the end of the flood", func() bool {
		page := metricsPage(d.HTTPURL)
		return strings.Contains(page, fmt.Sprintf("chaind_intake_applied_sequence %d\n", messages+1)) &&
			strings.Contains(page, "chaind_rejections_unpublished 0\n") && strings.Contains(page, `chaind_seal_jobs{state="pending"} 0`+"\n")
	})
	if grown := int64(h.end()) - int64(before.HeapAlloc); grown > floodHeap {
		t.Errorf("the heap grew by %d MiB, and at most %d are its share", grown>>20, floodHeap>>20)
	} else {
		t.Logf("the heap grew by %d MiB for %d MiB of messages", grown>>20, messages*floodSize/2>>20)
	}
	rejected, err := js.Stream(t.Context(), emitter.DefaultStream+"_REJECTED")
	if err != nil {
		t.Fatal(err)
	}
	state, err := rejected.Info(t.Context())
	if err != nil || state.State.Msgs != uint64(messages/4) {
		t.Errorf("%d rejected events in their stream, want %d (%v)", state.State.Msgs, messages/4, err)
	}
	if err := d.stop(); err != nil {
		t.Error(err)
	}
}
