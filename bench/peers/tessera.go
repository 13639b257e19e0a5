package main

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/transparency-dev/tessera"
	"github.com/transparency-dev/tessera/storage/posix"
	"golang.org/x/mod/sumdb/note"
)

// tiles is a transparency log on POSIX files. An entry is durable when it has
// its index, as in its own description; the checkpoint that commits to it comes
// later and is not waited for.
type tiles struct {
	appender *tessera.Appender
	shutdown func(context.Context) error
	cancel   context.CancelFunc
}

func openTessera(dir string) (store, error) {
	ctx, cancel := context.WithCancel(context.Background())
	driver, err := posix.New(ctx, posix.Config{Path: dir})
	if err != nil {
		cancel()
		return nil, err
	}
	private, _, err := note.GenerateKey(rand.Reader, "bench.example/log")
	if err != nil {
		cancel()
		return nil, err
	}
	signer, err := note.NewSigner(private)
	if err != nil {
		cancel()
		return nil, err
	}
	options := tessera.NewAppendOptions().WithCheckpointSigner(signer).
		WithBatching(1024, 5*time.Millisecond).WithPushback(8192).WithCheckpointInterval(time.Second)
	appender, shutdown, _, err := tessera.NewAppender(ctx, driver, options)
	if err != nil {
		cancel()
		return nil, err
	}
	return &tiles{appender, shutdown, cancel}, nil
}

func (t *tiles) append(entry []byte) error {
	_, err := t.appender.Add(context.Background(), tessera.NewEntry(entry))()
	return err
}

func (t *tiles) close() error {
	defer t.cancel()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return t.shutdown(ctx)
}
