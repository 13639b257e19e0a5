package daemon

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/internal/disktest"
	"github.com/chaind/chaind/server"
	"github.com/chaind/chaind/store"
)

// roomy answers for a disk that is too small for readiness anyway: what is
// asked here is what the store says.
func roomy(string) (disk, error) { return disk{free: 1 << 40, total: 1 << 41}, nil }

// publishUntil publishes steps from a number on until the cause is given, and
// returns the number of the last.
func publishUntil(t *testing.T, d *running, js jetstream.JetStream, from int, cause string) (last int) {
	t.Helper()
	for last = from; ; last++ {
		publishSteps(t, js, last, last)
		if _, given := readyCauses(t, d.HTTPURL)[cause]; given {
			return last
		}
		if last > from+20_000 {
			t.Fatalf("%s is never given", cause)
		}
	}
}

// wantSteps wants the steps 1..last in the chain, each once and in order.
func wantSteps(t *testing.T, dir string, last int) {
	t.Helper()
	checkStore(t, dir)
	s, err := store.OpenReadOnly(store.Config{Dir: filepath.Join(dir, "store")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var ids []string
	for {
		page, err := s.Segments(gapKey, uint64(len(ids)), store.MaxPage)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for i := range page {
			ids = append(ids, page[i].EventID)
		}
	}
	for i, id := range ids {
		if want := eventID(i + 1); id != want {
			t.Fatalf("event %d is %s", i+1, id)
		}
	}
	if len(ids) != last {
		t.Errorf("%d events of %d", len(ids), last)
	}
}

// acknowledged is how far the broker was told that events are safe.
func acknowledged(t *testing.T, js jetstream.JetStream) uint64 {
	t.Helper()
	stream, err := js.Stream(t.Context(), emitter.DefaultStream)
	if err != nil {
		t.Fatal(err)
	}
	var floor uint64
	for c := range stream.ListConsumers(t.Context()).Info() {
		floor = max(floor, c.AckFloor.Stream)
	}
	return floor
}

// Case B05: the disk runs full while events arrive. Readiness says so, the daemon
// lives, also when it is started on the full disk; nothing is acknowledged that is
// not there; and with space it goes on by itself.
func TestB05DiskFullWhileEventsArrive(t *testing.T) {
	t.Parallel()
	dir := disktest.Small(t, "16m")
	b := newRollable(t)
	cfg := Config{DataDir: dir, NATS: NATSConfig{URL: b.url()}, statDisk: roomy}
	d := runDaemon(t, cfg)
	js := b.js()
	publishSteps(t, js, 1, 20)
	settled(t, d.HTTPURL, 20)
	turns(t, d.HTTPURL, server.CauseStoreFailed, false)
	free := disktest.Fill(t, dir)
	last := publishUntil(t, d, js, 21, server.CauseStoreFailed)
	turns(t, d.HTTPURL, server.CauseStoreFailed, true)
	if detail := readyCauses(t, d.HTTPURL)[server.CauseStoreFailed]; !strings.Contains(detail, "no space left") && !strings.Contains(detail, "full") {
		t.Errorf("the reason is not told: %q", detail)
	}
	if err := d.stop(); err != nil {
		t.Errorf("stop on a full disk: %v", err)
	}
	s, err := store.OpenReadOnly(store.Config{Dir: filepath.Join(dir, "store")})
	if err != nil {
		t.Fatal(err)
	}
	record, err := s.Chain(gapKey)
	if err != nil {
		t.Fatal(err)
	}
	if acked := acknowledged(t, js); acked > record.StreamSeq {
		t.Errorf("acknowledged up to %d, and the store has up to %d", acked, record.StreamSeq)
	}
	s.Close()
	d = runDaemon(t, cfg)
	turns(t, d.HTTPURL, server.CauseStoreFailed, true)
	free()
	turns(t, d.HTTPURL, server.CauseStoreFailed, false)
	publishSteps(t, js, last+1, last+20)
	settled(t, d.HTTPURL, last+20)
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	wantSteps(t, dir, last+20)
}

// Case H14: the file system turns read-only under the daemon. It is not ready, or
// it has ended with the reason; nothing is lost.
func TestH14StoreReadOnly(t *testing.T) {
	t.Parallel()
	disk := disktest.NewFailing(t)
	b := newRollable(t)
	cfg := Config{DataDir: disk.Dir, NATS: NATSConfig{URL: b.url()}, statDisk: roomy}
	d := runDaemon(t, cfg)
	js := b.js()
	publishSteps(t, js, 1, 20)
	settled(t, d.HTTPURL, 20)
	disk.Fail(t)
	publishSteps(t, js, 21, 40)
	waitUntil(t, "the daemon says that it cannot write", func() bool {
		page, err := fetch(d.HTTPURL + "/readyz")
		return err != nil || strings.Contains(page, server.CauseStoreReadOnly) || strings.Contains(page, server.CauseStoreFailed)
	})
	ended := func() bool { _, err := fetch(d.HTTPURL + "/readyz"); return err != nil }()
	if err := d.stop(); ended && err == nil {
		t.Error("it ended without a reason")
	}
	disk.Repair(t)
	d = runDaemon(t, cfg)
	settled(t, d.HTTPURL, 40)
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	wantSteps(t, disk.Dir, 40)
}

// Case H14: the stream has gone, and another has its subjects.
func TestH14StreamGone(t *testing.T) {
	t.Parallel()
	other := newRollable(t)
	js := other.js()
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"evidence.>"}}); err != nil {
		t.Fatal(err)
	}
	b := newRollable(t)
	d := runDaemon(t, Config{DataDir: t.TempDir(), NATS: NATSConfig{URL: b.url()}})
	publishSteps(t, b.js(), 1, 5)
	settled(t, d.HTTPURL, 5)
	turns(t, d.HTTPURL, server.CauseStream, false)
	b.stop()
	other.stop()
	b.dir = other.dir
	b.start()
	turns(t, d.HTTPURL, server.CauseStream, true)
	if err := b.js().DeleteStream(t.Context(), "OTHER"); err != nil {
		t.Fatal(err)
	}
	turns(t, d.HTTPURL, server.CauseStream, false)
}
