package daemon

import (
	"sync/atomic"
	"testing"
	"time"
)

// The machine's clock jumps by hours, both ways, at every look: the golden stream
// gives what it gives otherwise, down to the bytes of the evidence.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	want, list, dir := readExpectation(t, "small"), readEvents(t, "small"), t.TempDir()
	var looks atomic.Int64
	jumping := func() time.Time {
		n := looks.Add(1)
		return time.Unix(1780000000, 0).Add(time.Duration((n%7)-3) * 5 * time.Hour)
	}
	url := startTestBroker(t)
	d := runDaemon(t, Config{DataDir: dir, NATS: NATSConfig{URL: url}, Intake: IntakeConfig{MaxEventBytes: want.MaxEventBytes}, Now: jumping})
	publishAll(t, url, list, nil)
	settled(t, d.HTTPURL, len(list))
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	// How often depends on how the events fell into batches; seals alone are ten.
	if looks.Load() < 20 {
		t.Errorf("the clock was looked at %d times only", looks.Load())
	}
	compare(t, dir, want)
}
