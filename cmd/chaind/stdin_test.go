package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// endless is an input of blank lines; silent one of a terminal nobody types at.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte("\n"), len(p))), nil }

func TestStandardInputDoesNotOutliveASignal(t *testing.T) {
	t.Parallel()
	silent, typist := io.Pipe()
	t.Cleanup(func() { typist.Close() })
	for name, in := range map[string]io.Reader{"silent": silent, "endless": endless{}} {
		for _, args := range []string{"publish --lint -", "verify -", "explain -", "digest plan -"} {
			if name == "endless" && !strings.HasPrefix(args, "publish") {
				continue // bounded: they end by themselves
			}
			endsWithASignal(t, strings.Fields(args), in)
		}
	}
}

func TestStandardInputIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	want := strings.Repeat("0123456789", 100_000)
	got, err := io.ReadAll(&breakable{ctx: t.Context(), in: strings.NewReader(want)})
	if err != nil || string(got) != want {
		t.Fatalf("%d bytes of %d: %v", len(got), len(want), err)
	}
}

// Opening a pipe waits for its other end, which may never come.
func TestPipeWithoutWriterDoesNotOutliveASignal(t *testing.T) {
	t.Parallel()
	pipe := pipeWithoutWriter(t)
	for _, args := range []string{"publish --lint", "verify", "explain", "digest plan"} {
		endsWithASignal(t, append(strings.Fields(args), pipe), nil)
	}
}

// pipeWithoutWriter makes a named pipe that nobody writes to.
func pipeWithoutWriter(t *testing.T) string {
	t.Helper()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { // in the end somebody comes, so that nobody waits on; who opens it later finds nothing
		if other, err := os.OpenFile(pipe, os.O_RDWR, 0); err == nil {
			_ = os.Remove(pipe)
			other.Close()
		}
	})
	return pipe
}

// endsWithASignal runs the program, tells it to end, and wants it to, without
// success.
func endsWithASignal(t *testing.T, args []string, in io.Reader) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() { done <- run(ctx, args, in, io.Discard, io.Discard) }()
	cancel()
	select {
	case code := <-done:
		if code == exitOK {
			t.Errorf("chaind %q: exit 0 although nothing was read", args)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("chaind %q: goes on after the signal", args)
	}
}
