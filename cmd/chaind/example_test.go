package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/internal/daemon"
)

var update = flag.Bool("update", false, "write docs/example.jsonl anew")

// TestExampleIsTheStory keeps docs/example.jsonl, which the tutorial publishes,
// equal to what the Publisher makes of the demo's run.
func TestExampleIsTheStory(t *testing.T) {
	got := publishedStory(t)
	path := filepath.Join(root, "docs", "example.jsonl")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("docs/example.jsonl is not what the Publisher makes; -update writes it anew:\n%s", got)
	}
}

// publishedStory tells the run to a daemon and reads it back from the stream.
func publishedStory(t *testing.T) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	started, done := make(chan daemon.Info, 1), make(chan error, 1)
	run, stop := context.WithCancel(ctx)
	go func() {
		done <- daemon.Run(run, daemon.Config{
			DataDir: t.TempDir(), NATS: daemon.NATSConfig{Listen: "127.0.0.1:-1"}, HTTP: daemon.HTTPConfig{Listen: "off"}, Logger: slog.New(slog.DiscardHandler),
		}, func(i daemon.Info) { started <- i })
	}()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	var info daemon.Info
	select {
	case info = <-started:
	case err := <-done:
		done <- nil
		t.Fatal(err)
	}
	conn, err := emitter.Connect(emitter.ConnConfig{URL: info.NATSURL})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	clock := time.UnixMilli(1_780_000_000_000)
	p, err := emitter.Begin(ctx, emitter.PublisherConfig{Conn: conn, Scope: storyScope(), Chain: "example", Now: func() time.Time {
		clock = clock.Add(250 * time.Millisecond)
		return clock
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := tell(ctx, p); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return streamLines(t, ctx, js)
}

func streamLines(t *testing.T, ctx context.Context, js jetstream.JetStream) []byte {
	t.Helper()
	stream, err := js.Stream(ctx, emitter.DefaultStream)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		msg, err := stream.GetMsg(ctx, seq)
		if err != nil {
			t.Fatal(err)
		}
		l := struct {
			Subject string `json:"subject"`
			Payload string `json:"payload"`
		}{msg.Subject, string(msg.Data)}
		if err := enc.Encode(l); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}
