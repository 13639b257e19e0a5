package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stuckCommand is a daemon whose stop never ends. It says when it is running, and
// when it has been told to stop.
func stuckCommand() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fmt.Println("running")
	go secondSignal(&app{ctx: ctx}, nil)
	<-ctx.Done()
	fmt.Println("stopping")
	select {}
}

// Case C22: one signal is waited for in order, a second one ends the program at once.
func TestC22SecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	cmd := &exec.Cmd{Path: os.Args[0], Args: []string{"chaind-stuck"}, Stderr: t.Output()}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewReader(out)
	said := func(want string) {
		t.Helper()
		if line, err := lines.ReadString('\n'); err != nil || strings.TrimSpace(line) != want {
			t.Fatalf("it says %q, want %q: %v", line, want, err)
		}
	}
	said("running")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	said("stopping") // and it goes on running: the pipe is open, and nothing ends it but the second signal
	ended := make(chan error, 1)
	go func() {
		_, _ = lines.ReadString('\n') // up to its end
		ended <- cmd.Wait()
	}()
	again := time.NewTicker(10 * time.Millisecond) // the first may come before it listens for a second one
	defer again.Stop()
	for deadline := time.After(20 * time.Second); ; {
		select {
		case <-again.C:
			_ = cmd.Process.Signal(syscall.SIGTERM)
		case <-deadline:
			t.Fatal("it does not end")
		case <-ended:
			if code := cmd.ProcessState.ExitCode(); code != exitCannot {
				t.Errorf("exit code %d, want %d", code, exitCannot)
			}
			return
		}
	}
}
