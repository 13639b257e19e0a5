package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	testscript.Main(leaks{m}, map[string]func(){"chaind": main, "nats": natsCommand, "nats-server": natsServerCommand, "chaind-peak": peakCommand, "chaind-stuck": stuckCommand})
}

// leaks is a test run that fails when a goroutine outlives it.
type leaks struct{ *testing.M }

func (l leaks) Run() int {
	code := l.M.Run()
	err := goleak.Find(
		// One per process, started by the server's account and process statistics.
		goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server/pse.periodic"),
		goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server.init.0.func1"),
	)
	if err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// TestScripts runs the behaviours in testdata/script, one file each.
func TestScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of processes, each of which takes a second to start where races are looked for")
	}
	vectors, err := filepath.Abs(filepath.Join(root, "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	house, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	tutorial := t.TempDir()
	writeTutorial(t, tutorial)
	writeExternalNATS(t, tutorial)
	writeRestore(t, tutorial)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("VECTORS", vectors)
			env.Setenv("HOUSE", house)
			env.Setenv("TUTORIAL", tutorial)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":      exits,
			"freeport":   freePort,
			"waithttp":   waitHTTP,
			"waitquiet":  waitQuiet,
			"waitfile":   waitFile,
			"envfile":    envFile,
			"signal":     sendSignal,
			"flip":       flip,
			"damage":     damage,
			"eventually": eventually,
			"sshkey":     sshKey,
			"sshagent":   sshAgent,
		},
	})
}

// exits N command…: runs the command and compares its exit code exactly.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code command...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("%v: exit %d, want %d", args[1:], got, want)
	}
}

// freeport NAME…: puts the number of a free port into each variable.
func freePort(ts *testscript.TestScript, neg bool, args []string) {
	for _, name := range args {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		ts.Check(err)
		_, port, err := net.SplitHostPort(l.Addr().String())
		ts.Check(err)
		ts.Check(l.Close())
		ts.Setenv(name, port)
	}
}

// waithttp URL [STATUS [FILE]]: waits until the URL answers with the status,
// which is 200 if not given, and keeps the body.
func waitHTTP(ts *testscript.TestScript, neg bool, args []string) {
	want, last := http.StatusOK, error(nil)
	if len(args) > 1 {
		n, err := strconv.Atoi(args[1])
		ts.Check(err)
		want = n
	}
	var body []byte
	wait(ts, func(ctx context.Context) bool {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, args[0], nil)
		ts.Check(err)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			last = err
			return false
		}
		defer res.Body.Close()
		body, err = io.ReadAll(res.Body)
		last = fmt.Errorf("last answer: %s", res.Status)
		return err == nil && res.StatusCode == want
	}, func() { ts.Fatalf("%s never answered %d: %v", args[0], want, last) })
	if len(args) > 2 {
		ts.Check(os.WriteFile(ts.MkAbs(args[2]), body, 0o644))
	}
}

// quiet are the lines of a scrape of a daemon that has nothing left to do: all
// events applied, all chains sealed, existing evidence looked at.
var quiet = []string{"chaind_intake_connected 1", "chaind_intake_lag_messages 0", `chaind_seal_jobs{state="pending"} 0`, "chaind_evidence_checked 1"}

// waitquiet URL: waits until the daemon there has nothing left to do. A daemon
// that is stopped before is not wrong, but leaves work to its next start.
func waitQuiet(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: waitquiet url")
	}
	var missing []string
	wait(ts, func(ctx context.Context) bool {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, args[0]+"/metrics", nil)
		ts.Check(err)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		ts.Check(err)
		lines := strings.Split(string(body), "\n")
		missing = slices.DeleteFunc(slices.Clone(quiet), func(line string) bool { return slices.Contains(lines, line) })
		return len(missing) == 0
	}, func() { ts.Fatalf("%s never said %q", args[0], missing) })
}

// waitfile FILE PATTERN: waits until the file, which a background command
// writes, holds a match.
func waitFile(ts *testscript.TestScript, neg bool, args []string) {
	pattern, err := regexp.Compile(args[1])
	ts.Check(err)
	var text []byte
	wait(ts, func(context.Context) bool {
		text, err = os.ReadFile(ts.MkAbs(args[0]))
		return err == nil && pattern.Match(text)
	}, func() { ts.Fatalf("%s never had a match of %s:\n%s", args[0], args[1], text) })
}

// wait asks until done says yes, and calls late when that takes too long.
func wait(ts *testscript.TestScript, done func(context.Context) bool, late func()) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if !until(func() bool { return done(ctx) }) {
		late()
	}
}

// envfile NAME FILE: puts the first line of the file into the variable.
func envFile(ts *testscript.TestScript, neg bool, args []string) {
	line, _, _ := strings.Cut(ts.ReadFile(args[1]), "\n")
	ts.Setenv(args[0], line)
}

// signal NAME: sends SIGTERM, SIGHUP, … to every background command.
func sendSignal(ts *testscript.TestScript, neg bool, args []string) {
	names := map[string]os.Signal{"TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "INT": os.Interrupt}
	for _, cmd := range ts.BackgroundCmds() {
		ts.Check(cmd.Process.Signal(names[args[0]]))
	}
}

// flip FILE OLD NEW: replaces the one occurrence of OLD.
func flip(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: flip file old new")
	}
	path := ts.MkAbs(args[0])
	text, err := os.ReadFile(path)
	ts.Check(err)
	changed, n := replaceOnce(string(text), args[1], args[2])
	if n != 1 {
		ts.Fatalf("%q occurs %d times in %s", args[1], n, args[0])
	}
	ts.Check(os.WriteFile(path, []byte(changed), 0o644))
}

// eventually PATTERN command…: runs the command again and again until its
// standard output matches, for what happens behind the daemon's answers.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: eventually pattern command...")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	if !until(func() bool {
		ts.Check(ts.Exec(args[1], args[2:]...))
		return pattern.MatchString(ts.ReadFile("stdout"))
	}) {
		ts.Fatalf("%v never printed %q", args[1:], args[0])
	}
}
