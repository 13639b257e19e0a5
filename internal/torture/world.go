package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/emitter"
)

const (
	producers     = 4
	settleTimeout = 3 * time.Minute
	pollEvery     = 50 * time.Millisecond
)

// world is everything that runs, and what trouble is made of.
type world struct {
	options
	out  io.Writer
	log  *tail
	rnd  *rand.Rand
	dir  string
	disk *smallDisk // nil: no right to mount one

	brokerDir, dataDir    string
	brokerPort            int
	http                  string // address of the daemon's read API
	toProducers, toDaemon *wire

	broker, daemon *process
	producers      [producers]*process

	counts map[string]int // troubles made, by name
	copied string         // an older copy of the broker's store; "": none
}

func newWorld(o options, out io.Writer) (_ *world, err error) {
	w := &world{options: o, out: out, log: &tail{}, counts: map[string]int{}, rnd: rand.New(rand.NewPCG(o.seed, 1))}
	if w.dir, err = os.MkdirTemp("", "chaind-torture-"); err != nil {
		return nil, err
	}
	file, err := os.Create(filepath.Join(w.dir, "log"))
	if err != nil {
		return nil, err
	}
	w.log.all = file
	w.brokerDir, w.dataDir = filepath.Join(w.dir, "broker"), filepath.Join(w.dir, "data")
	if w.disk, err = mountSmallDisk(w.dataDir); err != nil {
		fmt.Fprintf(out, "the disk will not be filled: %v\n", err)
	}
	ports, err := freePorts(2)
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	w.brokerPort, w.http = ports[0], fmt.Sprintf("127.0.0.1:%d", ports[1])
	target := fmt.Sprintf("127.0.0.1:%d", w.brokerPort)
	if w.toProducers, err = newWire(target); err == nil {
		w.toDaemon, err = newWire(target)
	}
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

func (w *world) close() error {
	for _, p := range append(w.producers[:], w.daemon, w.broker) {
		if p != nil {
			p.kill()
		}
	}
	for _, wire := range []*wire{w.toProducers, w.toDaemon} {
		if wire != nil {
			wire.close()
		}
	}
	var err error
	if w.keep {
		fmt.Fprintf(w.out, "the run's files are in %s\n", w.dir)
	}
	if w.disk != nil && !w.keep {
		err = w.disk.unmount()
	}
	if !w.keep {
		err = errors.Join(err, os.RemoveAll(w.dir))
	}
	return err
}

func (w *world) start(ctx context.Context) error {
	if err := w.startBroker(ctx); err != nil {
		return err
	}
	if err := w.startDaemon(ctx); err != nil {
		return err
	}
	for i := range w.producers {
		if err := w.startProducer(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) startBroker(ctx context.Context) (err error) {
	w.broker, err = spawn(ctx, w.log, roleBroker, w.brokerDir, fmt.Sprint(w.brokerPort))
	return err
}

func (w *world) startDaemon(ctx context.Context) (err error) {
	w.daemon, err = spawn(ctx, w.log, roleDaemon, w.dataDir, w.toDaemon.url(), w.http)
	return err
}

func (w *world) startProducer(ctx context.Context, i int) (err error) {
	w.producers[i], err = spawn(ctx, w.log, roleProducer, producerName(i), w.toProducers.url(), w.diary(i), fmt.Sprint(w.seed+uint64(i)), fmt.Sprint(w.rate))
	return err
}

func producerName(i int) string { return fmt.Sprint("p", i) }

func (w *world) diary(i int) string { return filepath.Join(w.dir, producerName(i)+".diary") }

// connect is a connection to the broker that goes around the wires.
func (w *world) connect(ctx context.Context, use func(jetstream.JetStream) error) error {
	conn, err := emitter.Connect(emitter.ConnConfig{URL: fmt.Sprintf("nats://127.0.0.1:%d", w.brokerPort), Name: "torture"})
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	return use(js)
}

// gauges asks the daemon and returns the lines that its answer lacks.
func gauges(ctx context.Context, addr string, want ...string) (missing []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	req.Close = true // no connection outlives the question
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	page, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	for _, line := range want {
		if !strings.Contains(string(page), line+"\n") {
			missing = append(missing, line)
		}
	}
	return missing, nil
}

// quiet waits until the daemon has applied what the stream holds, and nothing
// is left to seal or to publish. What is still on its way when it is called may
// yet make the stream longer.
func (w *world) quiet(ctx context.Context, within time.Duration) error {
	return w.connect(ctx, func(js jetstream.JetStream) error {
		deadline := time.NewTimer(within)
		defer deadline.Stop()
		tick := time.NewTicker(pollEvery)
		defer tick.Stop()
		for {
			missing, err := w.outstanding(ctx, js)
			if err == nil && len(missing) == 0 {
				return nil
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-tick.C:
			case <-deadline.C:
				return fmt.Errorf("the daemon does not settle: missing %q (%v); log:\n%s", missing, err, w.log)
			}
		}
	})
}

// outstanding lists the gauges that do not say that all is done.
func (w *world) outstanding(ctx context.Context, js jetstream.JetStream) ([]string, error) {
	stream, err := js.Stream(ctx, emitter.DefaultStream)
	if err != nil {
		return nil, fmt.Errorf("look at the stream: %w", err)
	}
	return gauges(ctx, w.http, "chaind_intake_connected 1", fmt.Sprintf("chaind_intake_applied_sequence %d", stream.CachedInfo().State.LastSeq),
		`chaind_seal_jobs{state="pending"} 0`, "chaind_rejections_unpublished 0")
}

// settle ends the producers in order, then waits for the daemon, then stops it.
func (w *world) settle(ctx context.Context) error {
	for _, p := range w.producers {
		if err := p.stop(); err != nil {
			return fmt.Errorf("%w; log:\n%s", err, w.log)
		}
	}
	if err := w.quiet(ctx, settleTimeout); err != nil {
		return err
	}
	return errors.Join(w.daemon.stop(), w.broker.stop())
}
