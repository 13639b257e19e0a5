package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/events"
)

const (
	brokerDir      = "nats"
	backupAttempts = 3 // at a copy of the broker's store that the broker can open
)

// broker copies the store of the broker inside, which may be in use: its message
// files are only ever appended to, and whoever opens them cuts off what was being
// written. Indexes and consumers are left out, they are made anew. Then a broker
// opens the copy, which must have the stream of the given identity, up to the
// given sequence at least.
func (b *backupSet) broker(ctx context.Context, from string, stream events.Stream, last uint64) error {
	to := filepath.Join(b.root.Name(), brokerDir)
	var err error
	for range backupAttempts {
		if err = os.RemoveAll(to); err != nil {
			break
		}
		if err = copyBroker(ctx, from, to); err == nil {
			err = openCopy(ctx, to, stream, last)
		}
		if err == nil {
			return b.adopt(brokerDir)
		}
	}
	return fmt.Errorf("copy the broker's store: %w", err)
}

// copyBroker copies a tree of regular files. A file that vanishes meanwhile was
// temporary.
func copyBroker(ctx context.Context, from, to string) error {
	root, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		case d.IsDir() && d.Name() == "obs":
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		case !d.Type().IsRegular() || d.Name() == "index.db":
			return nil
		}
		err = copyFile(root, name, filepath.Join(to, name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

func copyFile(root *os.Root, name, to string) error {
	in, err := root.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// openCopy has a broker of its own open a copied store.
func openCopy(ctx context.Context, dir string, want events.Stream, last uint64) error {
	srv, err := server.NewServer(&server.Options{JetStream: true, StoreDir: dir, DontListen: true, NoLog: true, NoSigs: true})
	if err != nil {
		return err
	}
	srv.Start()
	defer func() { srv.Shutdown(); srv.WaitForShutdown() }()
	if !srv.ReadyForConnections(brokerStart) {
		return errors.New("the copy cannot be opened in time")
	}
	conn, err := nats.Connect("", nats.InProcessServer(srv))
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	stream, err := js.Stream(ctx, emitter.DefaultStream)
	if err != nil {
		return fmt.Errorf("open the copy of stream %s: %w", emitter.DefaultStream, err)
	}
	info := stream.CachedInfo()
	if info.Created.UnixNano() != want.CreatedNS || info.State.LastSeq < last {
		return fmt.Errorf("the copy of stream %s ends at message %d, and message %d is applied", emitter.DefaultStream, info.State.LastSeq, last)
	}
	return nil
}

// adopt makes files that are there part of the backup, and durable.
func (b *backupSet) adopt(dir string) error {
	return fs.WalkDir(b.root.FS(), dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			b.dirs[path.Clean(name)] = true
			return nil
		}
		f, err := b.root.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		h := sha256.New()
		n, err := io.Copy(h, f)
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return err
		}
		b.files = append(b.files, BackupFile{Path: name, Bytes: n, SHA256: hex.EncodeToString(h.Sum(nil))})
		return nil
	})
}
