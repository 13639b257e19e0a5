package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/sealer"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
)

// workshop is a store with finished chains, and where they are sealed to.
type workshop struct {
	store    *store.Store
	files    *sidecar.Dir
	sidecars *sidecar.Sidecars
	seq      uint64
	chains   int
}

func openWorkshop(ctx context.Context, dir string) (*workshop, error) {
	w := &workshop{}
	var err error
	if w.store, err = store.Open(store.Config{Dir: filepath.Join(dir, "store")}); err != nil {
		return nil, err
	}
	if w.files, err = sidecar.OpenDir(filepath.Join(dir, "artifacts")); err == nil {
		w.sidecars, err = sidecar.Open(ctx, sidecar.Config{Blobs: w.files, Owner: w.store.ID()})
	}
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *workshop) close() error {
	err := w.store.Close()
	if w.files != nil {
		err = errors.Join(err, w.files.Close())
	}
	return err
}

// finish makes n chains in the store, each a conforming run with one run seal.
func (w *workshop) finish(ctx context.Context, n int) error {
	b := &events.Batch{Stream: events.Stream{Name: "BENCH", CreatedNS: 1}}
	for range n {
		w.chains++
		for i, verb := range []events.Verb{events.VerbIntent, events.VerbCommit, events.VerbStep, events.VerbSeal} {
			w.seq++
			e := events.Decode(events.Message{Subject: chainKey(w.chains).Subject(verb), Payload: runPayload(w.chains, i),
				StreamSeq: w.seq, BrokerMS: firstMS}, events.DefaultLimits)
			if e.Fault != nil {
				return fmt.Errorf("bench event is refused: %s", e.Fault.Detail)
			}
			b.Events = append(b.Events, e)
		}
	}
	_, err := w.store.Append(ctx, b)
	return err
}

// runPayload is event number i of a run of four.
func runPayload(chain, i int) []byte {
	id := strconv.Itoa(chain)
	digest := segments.Sum([]byte(id))
	plan := segments.Sum([]byte("plan"))
	kinds := []segments.Kind{
		&segments.IntentBound{IntentDigest: digest, IntentLen: 3},
		&segments.CompCommitted{PlanCommitIDHex: plan.String(), CompSemanticSHA256: plan, StepTopo: []string{"list"}},
		&segments.StepExecuted{StepID: "list", RequestFingerprints: []string{"GET /issues"}, SourceLine: "issues.list(" + id + ")", ParsedExprDigest: digest},
		&segments.RunSealed{RunID: segments.RunID(digest), RunBundleDigest: digest},
	}
	b := fmt.Appendf(nil, `{"v":1,"event_id":"e%d","producer_seq":%d,"scope":`, i, i)
	b = segments.AppendKind(append(segments.AppendScope(b, benchScope()), `,"kind":`...), kinds[i])
	return append(b, '}')
}

// seal seals what is finished, and returns the bytes of one bundle.
func (w *workshop) seal(ctx context.Context, n, workers int) (sample, uint64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var left atomic.Int64
	var size atomic.Uint64
	left.Store(int64(n))
	s := sealer.New(sealer.Config{Store: w.store, Sidecars: w.sidecars, Workers: workers, SkipAudit: true, OnSealed: func(sealed sealer.Sealed) {
		size.Store(sealed.Result.Bytes)
		if left.Add(-1) == 0 {
			cancel()
		}
	}})
	out, err := timed(n, func() error { return s.Run(ctx) })
	if err == nil && left.Load() > 0 {
		err = errors.New("not everything was sealed: " + s.Status().LastError)
	}
	return out, size.Load(), err
}

func openSeal(ctx context.Context, l *lab) (*contest, error) {
	const n = 20
	w, err := openWorkshop(ctx, l.dir)
	if err != nil {
		return nil, err
	}
	bare := filepath.Join(l.dir, "bare")
	if err := os.Mkdir(bare, 0o755); err != nil {
		return nil, errors.Join(err, w.close())
	}
	size := uint64(1500) // of the round that does not count
	return &contest{
		limit: func(round int) (sample, error) {
			body := make([]byte, size)
			s, err := timed(n, func() error {
				for i := range n {
					if err := bareWrite(bare, fmt.Sprint(round, "-", i), body); err != nil {
						return err
					}
				}
				return nil
			})
			return inSeconds(s), err
		},
		ours: func(int) (s sample, err error) {
			if err := w.finish(ctx, n); err != nil {
				return s, err
			}
			s, size, err = w.seal(ctx, n, 1)
			return inSeconds(s), err
		},
		close: w.close,
	}, nil
}

// inSeconds turns a rate into seconds for one.
func inSeconds(s sample) sample {
	for i := range s.values {
		s.values[i] = 1 / s.values[i]
	}
	return s
}

func openSealRate(ctx context.Context, l *lab) (*contest, error) {
	const n = 1000
	w, err := openWorkshop(ctx, l.dir)
	if err != nil {
		return nil, err
	}
	return &contest{
		limit: func(int) (sample, error) { return sample{values: []float64{1000}}, nil },
		ours: func(int) (sample, error) {
			if err := w.finish(ctx, n); err != nil {
				return sample{}, err
			}
			s, _, err := w.seal(ctx, n, 0)
			return s, err
		},
		close: w.close,
	}, nil
}

// bareWrite is what the system asks of anybody: create, write, fsync, rename,
// fsync of the directory.
func bareWrite(dir, name string, body []byte) error {
	temp := filepath.Join(dir, "temp")
	f, err := os.Create(temp)
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp, filepath.Join(dir, name)); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// The row start: opening a store with many segments, in a process of its own.

func openStart(ctx context.Context, l *lab) (*contest, error) {
	dir := filepath.Join(l.dir, "store")
	if err := fill(ctx, dir, l.segments, true); err != nil {
		return nil, err
	}
	return &contest{
		limit: func(int) (sample, error) { return sample{values: []float64{2, 200}}, nil },
		ours:  func(int) (sample, error) { return openElsewhere(ctx, dir) },
		close: func() error { return nil },
	}, nil
}

// fill writes n segments in chains of 1,000, which end there, but for the last
// ten, or all stay open.
func fill(ctx context.Context, dir string, n int, ends bool) (err error) {
	s, err := store.Open(store.Config{Dir: dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	const batch, chain = 4000, 1000
	b := &events.Batch{Stream: events.Stream{Name: "BENCH", CreatedNS: 1}}
	for i := 0; i < n; i += batch {
		b.Events = b.Events[:0]
		for j := i; j < min(i+batch, n); j++ {
			verb, payload := events.VerbStep, stepPayload(j, j%chain, 0)
			if ends && j%chain == chain-1 && j < n-10*chain {
				verb, payload = events.VerbSeal, fmt.Appendf(nil, `{"v":1,"event_id":"end"}`)
			}
			b.Events = append(b.Events, events.Decode(events.Message{Subject: chainKey(j / chain).Subject(verb), Payload: payload,
				StreamSeq: uint64(j + 1), BrokerMS: firstMS}, events.DefaultLimits))
		}
		if _, err := s.Append(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// openHere is what the process of its own does: it opens the store as the
// daemon does, and says how long that took, in nanoseconds.
func openHere(dir string) error {
	start := time.Now()
	s, err := store.Open(store.Config{Dir: dir})
	if err != nil {
		return err
	}
	fmt.Println(time.Since(start).Nanoseconds())
	return s.Close()
}

// openWritten counts what the kernel was asked to write to the disk while a
// store takes in events, and what its file has grown to, for each byte of their
// payloads.
func openWritten(ctx context.Context, l *lab) (*contest, error) {
	n := min(l.segments, 100_000)
	payload := 0
	for i := range 1000 {
		payload += len(stepPayload(i, i, 0))
	}
	per := float64(payload) / 1000
	return &contest{
		limit: func(int) (sample, error) { return sample{values: []float64{per, per}}, nil },
		ours: func(round int) (sample, error) {
			dir := filepath.Join(l.dir, fmt.Sprint("written", round))
			before, err := writtenBytes()
			if err != nil {
				return sample{}, err
			}
			if err := fill(ctx, dir, n, true); err != nil {
				return sample{}, err
			}
			after, err := writtenBytes()
			if err != nil {
				return sample{}, err
			}
			info, err := os.Stat(filepath.Join(dir, "chaind.db"))
			if err != nil {
				return sample{}, err
			}
			return sample{values: []float64{float64(after-before) / float64(n), float64(info.Size()) / float64(n)}}, nil
		},
		close: func() error { return nil },
	}, nil
}

// writtenBytes is what this process has sent to the disk so far (Linux).
func writtenBytes() (uint64, error) {
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0, fmt.Errorf("count written bytes: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "write_bytes:"); ok {
			return strconv.ParseUint(strings.TrimSpace(value), 10, 64)
		}
	}
	return 0, errors.New("count written bytes: the kernel does not say")
}
