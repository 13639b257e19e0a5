package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"chaind": main, "nats": natsCommand})
}

// TestScripts runs the behaviours in testdata/script, one file each.
func TestScripts(t *testing.T) {
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
			"exits":    exits,
			"freeport": freePort,
			"waithttp": waitHTTP,
			"signal":   sendSignal,
			"flip":     flip,
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

// waithttp URL: waits until the URL answers 200.
func waitHTTP(ts *testscript.TestScript, neg bool, args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, args[0], nil)
		ts.Check(err)
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-ctx.Done():
			ts.Fatalf("%s never answered 200: %v", args[0], err)
		case <-tick.C:
		}
	}
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
