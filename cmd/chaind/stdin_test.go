package main

import (
	"bytes"
	"context"
	"io"
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
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan int, 1)
			go func() { done <- run(ctx, strings.Fields(args), in, io.Discard, io.Discard) }()
			cancel()
			select {
			case code := <-done:
				if code == exitOK {
					t.Errorf("chaind %s, %s input: exit 0 although nothing was read", args, name)
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("chaind %s, %s input: goes on after the signal", args, name)
			}
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
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	for _, args := range []string{"publish --lint", "verify", "explain", "digest plan"} {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan int, 1)
		go func() { done <- run(ctx, append(strings.Fields(args), pipe), nil, io.Discard, io.Discard) }()
		cancel()
		select {
		case code := <-done:
			if code == exitOK {
				t.Errorf("chaind %s: exit 0 although nothing was read", args)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("chaind %s: goes on after the signal", args)
		}
	}
}
