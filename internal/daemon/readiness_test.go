package daemon

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"log/slog"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/server"
)

// readyCauses asks /readyz.
func readyCauses(t *testing.T, base string) map[string]string {
	t.Helper()
	text, err := fetch(base + "/readyz")
	var answer struct{ Causes []server.Cause }
	if err == nil {
		err = json.Unmarshal([]byte(text), &answer)
	}
	if err != nil {
		t.Fatal(err)
	}
	causes := map[string]string{}
	for _, c := range answer.Causes {
		causes[c.Name] = c.Detail
	}
	return causes
}

// turns waits until the cause is given, or no longer, in readiness and gauge.
func turns(t *testing.T, base, cause string, want bool) {
	t.Helper()
	gauge := `chaind_not_ready{cause="` + cause + `"} ` + map[bool]string{true: "1", false: "0"}[want]
	waitUntil(t, cause, func() bool {
		_, given := readyCauses(t, base)[cause]
		return given == want && strings.Contains(metricsPage(base), gauge+"\n")
	})
}

// waitUntil waits until the condition holds, within the patience of the tests.
func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("%s: not in time", what)
		}
	}
}

func TestH14BrokerAway(t *testing.T) {
	t.Parallel()
	b := newRollable(t)
	d := runDaemon(t, Config{DataDir: t.TempDir(), NATS: NATSConfig{URL: b.url()}})
	turns(t, d.HTTPURL, server.CauseDisconnected, false)
	b.stop()
	turns(t, d.HTTPURL, server.CauseDisconnected, true)
	b.start()
	turns(t, d.HTTPURL, server.CauseDisconnected, false)
}

func TestH14DiskNearlyFull(t *testing.T) {
	t.Parallel()
	var free atomic.Uint64
	free.Store(1 << 40)
	d := runDaemon(t, Config{DataDir: t.TempDir(), NATS: NATSConfig{URL: startTestBroker(t)},
		statDisk: func(dir string) (disk, error) { return disk{free: free.Load(), total: 1 << 41}, nil }})
	turns(t, d.HTTPURL, server.CauseDisk, false)
	free.Store(diskFloor - 1)
	turns(t, d.HTTPURL, server.CauseDisk, true)
	free.Store(diskFloor)
	turns(t, d.HTTPURL, server.CauseDisk, false)
	if page := metricsPage(d.HTTPURL); !strings.Contains(page, `chaind_disk_free_bytes{dir="artifacts"} 2.68435456e+08`) {
		t.Error("no gauge of the free space")
	}
}

// The threshold on disks small and large, and that the system is really asked.
func TestNearlyFull(t *testing.T) {
	for _, c := range []struct {
		disk
		want bool
	}{
		{disk{0, 1 << 40}, true}, {disk{diskFloor - 1, 1 << 40}, true}, {disk{diskFloor, 1 << 40}, false},
		{disk{99, 2000}, true}, {disk{100, 2000}, false}, {disk{0, 0}, false},
	} {
		if got := c.nearlyFull(); got != c.want {
			t.Errorf("%+v: %v", c.disk, got)
		}
	}
	if got, err := statDisk(t.TempDir()); err != nil || got.total == 0 || got.free > got.total {
		t.Errorf("this disk: %+v, %v", got, err)
	}
}

// movingClock is a clock that tests move by hand.
type movingClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *movingClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *movingClock) move(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(by)
}

// Rejections whose stream has gone, or does not take them, do not pile up unseen.
func TestH14OutboxStuck(t *testing.T) {
	t.Parallel()
	b := newRollable(t)
	clock := &movingClock{at: time.Unix(1780000000, 0)}
	d := runDaemon(t, Config{DataDir: t.TempDir(), NATS: NATSConfig{URL: b.url()}, Now: clock.now})
	js := b.js()
	// The intake's first session creates what is missing; afterwards nobody does.
	waitUntil(t, "the intake reads", func() bool { return strings.Contains(metricsPage(d.HTTPURL), "chaind_intake_connected 1\n") })
	if err := js.DeleteStream(t.Context(), emitter.DefaultRejectedStream); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), gapKey.Subject("step"), []byte("{")); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the event is rejected", func() bool {
		return strings.Contains(metricsPage(d.HTTPURL), "chaind_rejections_unpublished 1\n")
	})
	if _, stuck := readyCauses(t, d.HTTPURL)[server.CauseOutbox]; stuck {
		t.Error("stuck at once")
	}
	clock.move(outboxPatience + time.Second)
	turns(t, d.HTTPURL, server.CauseOutbox, true)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: emitter.DefaultRejectedStream, Subjects: []string{"evidence-rejected.>"}}); err != nil {
		t.Fatal(err)
	}
	turns(t, d.HTTPURL, server.CauseOutbox, false)
}

// Steady work that keeps up is not stuck, however long it goes on; a clock that
// jumps back makes nothing old, one that jumps forth makes it old once.
func TestStall(t *testing.T) {
	var s stall
	at := time.Unix(1780000000, 0)
	for n := uint64(0); n < 1000; n++ {
		at = at.Add(time.Second)
		if age := s.age(n, n+5, at); age > 5*time.Second {
			t.Fatalf("%d: %v", n, age)
		}
	}
	if age := s.age(1000, 1010, at.Add(-time.Hour)); age != 0 {
		t.Errorf("after the clock went back: %v", age)
	}
	s.age(1000, 1010, at)
	if age := s.age(1000, 1020, at.Add(time.Minute)); age < time.Minute {
		t.Errorf("stuck for %v", age)
	}
	if age := s.age(1020, 1020, at.Add(time.Hour)); age != 0 {
		t.Errorf("done: %v", age)
	}
}

// A byte of the database that changes under the running daemon is noticed by the
// scheduled check, without anybody asking for the chain.
func TestC26ScheduledCheckNoticesDamage(t *testing.T) {
	t.Parallel()
	b, dir := newRollable(t), t.TempDir()
	var log lockedBuffer
	d := runDaemon(t, Config{DataDir: dir, NATS: NATSConfig{URL: b.url()}, CheckEvery: 50 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(&log, nil))})
	publishSteps(t, b.js(), 1, 5)
	settled(t, d.HTTPURL, 5)
	waitUntil(t, "a check without findings", func() bool {
		page := metricsPage(d.HTTPURL)
		return !strings.Contains(page, "chaind_checks_done 0\n") && strings.Contains(page, "chaind_check_findings 0\n")
	})
	if _, damaged := readyCauses(t, d.HTTPURL)[server.CauseDamage]; damaged {
		t.Error("damaged before anything was")
	}
	path := filepath.Join(dir, "store", "chaind.db")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	hits := 0
	for at := 0; ; at++ { // old copies of the page may lie about: all are changed
		i := bytes.Index(content[at:], []byte("x = f()"))
		if i < 0 {
			break
		}
		at += i
		hits++
		if _, err := f.WriteAt([]byte("X"), int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	if hits == 0 {
		t.Fatal("the database does not hold the text")
	}
	turns(t, d.HTTPURL, server.CauseDamage, true)
	if page := metricsPage(d.HTTPURL); strings.Contains(page, "chaind_check_findings 0\n") {
		t.Error("the metric does not show it")
	}
	if !strings.Contains(log.String(), "scheduled check found damage") {
		t.Error("no log line")
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
