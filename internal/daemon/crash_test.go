package daemon

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"testing"
)

// killSeed repeats a run of the kill tests; each prints its own.
var killSeed = flag.Uint64("kill-seed", 0, "seed of the kill tests (0: random)")

// kills is how often each kill test kills.
const kills = 10

// killPoints picks the lines after which something is killed.
func killPoints(t *testing.T, lines int) map[int]bool {
	t.Helper()
	seed := *killSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("repeat with -kill-seed=%d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	points := map[int]bool{}
	for len(points) < kills {
		points[random.IntN(lines)] = true
	}
	return points
}

// TestKilledDaemonLosesNothing kills the daemon at random points of the large
// run, while events keep coming, and wants the same end result as without.
func TestKilledDaemonLosesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	want, list, dir := readExpectation(t, "large"), readEvents(t, "large"), t.TempDir()
	url := startTestBroker(t)
	d := spawn(t, roleDaemon, dir, url, "32")
	points := killPoints(t, len(list))
	publishAll(t, url, list, func(n int) {
		if points[n] {
			d.kill()
			d = spawn(t, roleDaemon, dir, url, "32")
		}
	})
	settled(t, d.line, len(list))
	d.term(t)
	compare(t, dir, want)
}

// TestKilledBrokerLosesNothing kills the broker instead, under a daemon that
// keeps running.
func TestKilledBrokerLosesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	want, list, dir, brokerDir := readExpectation(t, "large"), readEvents(t, "large"), t.TempDir(), t.TempDir()
	port := fmt.Sprint(freePort(t))
	b := spawn(t, roleBroker, brokerDir, port)
	d := spawn(t, roleDaemon, dir, b.line, "32")
	points := killPoints(t, len(list))
	publishAll(t, b.line, list, func(n int) {
		if points[n] {
			b.kill()
			b = spawn(t, roleBroker, brokerDir, port)
		}
	})
	settled(t, d.line, len(list))
	d.term(t)
	compare(t, dir, want)
	if got := len(evidenceFiles(t, filepath.Clean(dir))); got == 0 {
		t.Error("no evidence was written")
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
