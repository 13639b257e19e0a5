package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/chaind/chaind/internal/daemon"
)

// play is a process in its role. It ends with SIGTERM, and with its parent.
func play(role string, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3) // the parent has gone
	}()
	var err error
	switch role {
	case roleBroker:
		err = playBroker(ctx, args)
	case roleDaemon:
		err = playDaemon(ctx, args)
	case roleProducer:
		err = playProducer(ctx, args)
	default:
		err = fmt.Errorf("no such role: %s", role)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", role, err)
		return 1
	}
	return 0
}

func ready() { fmt.Println("ready") }

// playBroker takes the store's directory and the port.
func playBroker(ctx context.Context, args []string) error {
	port, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: args[0], NoLog: true, NoSigs: true})
	if err != nil {
		return err
	}
	srv.Start()
	if !srv.ReadyForConnections(startTimeout) {
		return fmt.Errorf("not ready")
	}
	ready()
	<-ctx.Done()
	srv.Shutdown()
	srv.WaitForShutdown()
	return nil
}

// seedHex is the key that the daemon signs with.
const seedHex = "7077757274757265207077757274757265207077757274757265207077757274"

// playDaemon takes the data directory, the broker's URL and the address of the
// read API.
func playDaemon(ctx context.Context, args []string) error {
	return daemon.Run(ctx, daemon.Config{
		DataDir:    args[0],
		NATS:       daemon.NATSConfig{URL: args[1]},
		HTTP:       daemon.HTTPConfig{Listen: args[2]},
		Keys:       daemon.KeyConfig{SeedHex: seedHex},
		CheckEvery: 10 * time.Second,
		Logger:     slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}, func(daemon.Info) { ready() })
}
