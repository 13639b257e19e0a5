package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/emitter"
)

// troubles by name, and how often each is chosen. Each mends what it broke.
var troubles = []struct {
	name   string
	weight int
	make   func(*world, context.Context) error
}{
	{"kill producer", 5, (*world).killProducer},
	{"kill broker", 3, (*world).killBroker},
	{"kill daemon", 5, (*world).killDaemon},
	{"stop daemon", 2, (*world).stopDaemon},
	{"pause broker", 2, (*world).pauseBroker},
	{"pause daemon", 2, (*world).pauseDaemon},
	{"cut producers", 2, (*world).cutProducers},
	{"cut daemon", 2, (*world).cutDaemon},
	{"slow wires", 2, (*world).slowWires},
	{"full disk", 3, (*world).fullDisk},
	{"kill daemon on full disk", 1, (*world).killOnFullDisk},
	{"purge", 1, (*world).purge},
	{"copy broker", 2, (*world).copyBroker},
	{"roll back broker", 2, (*world).rollBackBroker},
}

// errNotNow: this trouble cannot be made at the moment.
var errNotNow = errors.New("not now")

// trouble makes trouble until the time is up.
func (w *world) trouble(ctx context.Context) error {
	end := time.NewTimer(w.duration)
	defer end.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end.C:
			return nil
		case <-time.After(time.Duration(100+w.rnd.IntN(900)) * time.Millisecond):
		}
		name, make := w.choose()
		err := make(w, ctx)
		if errors.Is(err, errNotNow) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w; log:\n%s", name, err, w.log)
		}
		w.counts[name]++
		if err := w.alive(); err != nil {
			return fmt.Errorf("after %s: %w; log:\n%s", name, err, w.log)
		}
	}
}

func (w *world) choose() (string, func(*world, context.Context) error) {
	sum := 0
	for _, t := range troubles {
		sum += t.weight
	}
	n := w.rnd.IntN(sum)
	for _, t := range troubles {
		if n -= t.weight; n < 0 {
			return t.name, t.make
		}
	}
	panic("torture: weights do not add up")
}

// alive wants that nothing ended by itself: every end was ours.
func (w *world) alive() error {
	for _, p := range append(w.producers[:], w.broker, w.daemon) {
		if p.ended() {
			return fmt.Errorf("%s ended by itself: %v", p.role, p.err)
		}
	}
	return nil
}

// linger is how long a trouble lasts.
func (w *world) linger(ctx context.Context, most time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(w.rnd.Int64N(int64(most)))):
	}
}

func (w *world) killProducer(ctx context.Context) error {
	i := w.rnd.IntN(producers)
	w.producers[i].kill()
	return w.startProducer(ctx, i)
}

func (w *world) killBroker(ctx context.Context) error {
	w.broker.kill()
	w.linger(ctx, time.Second)
	return w.startBroker(ctx)
}

func (w *world) killDaemon(ctx context.Context) error {
	w.daemon.kill()
	w.linger(ctx, time.Second)
	return w.startDaemon(ctx)
}

func (w *world) stopDaemon(ctx context.Context) error {
	if err := w.daemon.stop(); err != nil {
		return err
	}
	return w.startDaemon(ctx)
}

func (w *world) pause(ctx context.Context, p *process) {
	p.signal(syscall.SIGSTOP)
	w.linger(ctx, 2*time.Second)
	p.signal(syscall.SIGCONT)
}

func (w *world) pauseBroker(ctx context.Context) error { w.pause(ctx, w.broker); return nil }
func (w *world) pauseDaemon(ctx context.Context) error { w.pause(ctx, w.daemon); return nil }

func (w *world) cutProducers(ctx context.Context) error {
	w.toProducers.set(true, 0)
	w.linger(ctx, 2*time.Second)
	w.toProducers.set(false, 0)
	return nil
}

func (w *world) cutDaemon(ctx context.Context) error {
	w.toDaemon.set(true, 0)
	w.linger(ctx, 2*time.Second)
	w.toDaemon.set(false, 0)
	return nil
}

func (w *world) slowWires(ctx context.Context) error {
	w.toProducers.set(false, 20*time.Millisecond)
	w.toDaemon.set(false, 50*time.Millisecond)
	w.linger(ctx, 3*time.Second)
	w.toProducers.set(false, 0)
	w.toDaemon.set(false, 0)
	return nil
}

func (w *world) fullDisk(ctx context.Context) error {
	if w.disk == nil {
		return errNotNow
	}
	err := w.disk.fill()
	w.linger(ctx, 2*time.Second)
	return errors.Join(err, w.disk.free())
}

// killOnFullDisk kills the daemon while it cannot write, and starts it again, now
// and then before it can.
func (w *world) killOnFullDisk(ctx context.Context) error {
	if w.disk == nil {
		return errNotNow
	}
	err := w.disk.fill()
	w.linger(ctx, time.Second)
	w.daemon.kill()
	if w.rnd.IntN(2) == 0 {
		return errors.Join(err, w.disk.free(), w.startDaemon(ctx))
	}
	err = errors.Join(err, w.startDaemon(ctx))
	w.linger(ctx, time.Second)
	return errors.Join(err, w.disk.free())
}

// purge empties the stream behind the back of a daemon that is down.
func (w *world) purge(ctx context.Context) error {
	w.daemon.kill()
	w.linger(ctx, time.Second)
	err := w.connect(ctx, func(js jetstream.JetStream) error {
		stream, err := js.Stream(ctx, emitter.DefaultStream)
		if err != nil {
			return err
		}
		return stream.Purge(ctx)
	})
	return errors.Join(err, w.startDaemon(ctx))
}

// copyBroker keeps a copy of the broker's store, taken while it is down.
func (w *world) copyBroker(ctx context.Context) error {
	w.broker.kill()
	copied := filepath.Join(w.dir, "broker-copy")
	err := os.RemoveAll(copied)
	if err == nil {
		err = os.CopyFS(copied, os.DirFS(w.brokerDir))
	}
	w.copied = copied
	return errors.Join(err, w.startBroker(ctx))
}

// rollBackBroker gives the broker the older copy. What only the broker knew
// would be gone without a trace, which nobody can name; so the producers are
// held until the daemon has everything.
func (w *world) rollBackBroker(ctx context.Context) error {
	if w.copied == "" {
		return errNotNow
	}
	for _, p := range w.producers {
		p.signal(syscall.SIGSTOP)
	}
	defer func() {
		for _, p := range w.producers {
			p.signal(syscall.SIGCONT)
		}
	}()
	if err := w.quiet(ctx, settleTimeout); err != nil {
		return err
	}
	away := w.rnd.IntN(2) == 0 // the daemon, meanwhile
	if away {
		w.daemon.kill()
	}
	w.broker.kill()
	err := os.RemoveAll(w.brokerDir)
	if err == nil {
		err = os.Rename(w.copied, w.brokerDir)
	}
	w.copied = ""
	err = errors.Join(err, w.startBroker(ctx))
	if err == nil && away {
		err = w.startDaemon(ctx)
	}
	return err
}
