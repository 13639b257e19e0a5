package emitter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/events"
)

// Why a session ends although nobody stopped it. The next one starts from the
// watermark, having compared the stream with it.
var (
	errReconnected = errors.New("the connection was lost and is back")
	errChanged     = errors.New("the stream is another one, or went back")
	errSettings    = errors.New("the settings of the stream are others than at the start")
	errStalled     = errors.New("the stream holds messages that are not delivered")
)

// session reads one unbroken run of the stream. Four goroutines share it: the
// subscription's (receive: decodes and keeps the order), the caller's (commit),
// the one that tells what is durable (telling), and the watcher's. One batch is
// gathered while the one before is committed and the one before that is told.
type session struct {
	in     *Intake
	stream jetstream.Stream
	id     events.Stream
	hand   *handoff
	fail   context.CancelCauseFunc
	weak   []events.Weakness // settings that are on record for this session

	decoder *events.Decoder // owned by receive
	next    uint64          // owned by receive: the only sequence it accepts

	received atomic.Uint64 // last sequence accepted
}

// open compares the stream with the ledger and makes the consumer anew, right
// behind what is durable: a consumer's own idea of what was acknowledged, and
// messages that it once delivered to somebody who died, play no part.
func (in *Intake) open(ctx context.Context) (*session, error) {
	cfg := &in.cfg
	found, err := EnsureStreams(ctx, cfg.JS, cfg.Streams)
	if err != nil {
		return nil, err
	}
	in.stats.warned(found.Warnings)
	if len(found.Created) > 0 {
		cfg.Logger.Warn("streams were missing and have been created", "streams", found.Created)
	}
	stream, err := cfg.JS.Stream(ctx, cfg.Streams.Evidence)
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", cfg.Streams.Evidence, err)
	}
	info := stream.CachedInfo()
	s := &session{in: in, stream: stream, id: identity(info), hand: newHandoff(cfg),
		weak: cfg.Streams.settings(info.Config), decoder: events.NewDecoder(cfg.Limits)}
	in.stats.looked(s.id, info.State.LastSeq)
	applied, err := s.position(ctx, info.State)
	if err != nil {
		return nil, err
	}
	if err := cfg.Ledger.RecordSettings(ctx, s.id, s.weak); err != nil {
		return nil, fmt.Errorf("record settings of stream %s: %w", s.id.Name, err)
	}
	in.stats.applied.Store(applied)
	s.next = applied + 1
	s.received.Store(applied)
	if err := s.recreate(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// recreate replaces the consumer by one that starts with the next sequence. A
// consumer that somebody else reads right now is left alone: two daemons with the
// same store id, copies of one another, must not take it from each other by turns.
func (s *session) recreate(ctx context.Context) error {
	cfg := &s.in.cfg
	if err := s.unread(ctx); err != nil {
		return err
	}
	err := s.stream.DeleteConsumer(ctx, cfg.Durable)
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return &troubled{fmt.Errorf("replace consumer %s: %w", cfg.Durable, err), TroubleConsumer}
	}
	_, err = s.stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Durable:       cfg.Durable,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:   s.next,
		AckPolicy:     jetstream.AckAllPolicy,
		AckWait:       cfg.AckWait,
		MaxDeliver:    -1,
		MaxAckPending: maxAckPending,
		ReplayPolicy:  jetstream.ReplayInstantPolicy,
		Metadata:      map[string]string{instanceKey: s.in.instance},
	})
	if err != nil {
		return &troubled{fmt.Errorf("create consumer %s: %w", cfg.Durable, err), TroubleConsumer}
	}
	return nil
}

// instanceKey is the metadata of a consumer that says whose it is.
const instanceKey = "chaind.instance"

// unread wants that nobody else has open requests at the consumer. Those of a
// process that died go with its connection.
func (s *session) unread(ctx context.Context) error {
	name := s.in.cfg.Durable
	consumer, err := s.stream.Consumer(ctx, name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at consumer %s: %w", name, err)
	}
	info := consumer.CachedInfo()
	if other := info.Config.Metadata[instanceKey]; other != s.in.instance && info.NumWaiting > 0 {
		return fmt.Errorf("consumer %s: %w", name, ErrShared)
	}
	return nil
}

// run reads until live ends, and waits for everything that it started.
func (s *session) run(ctx, live context.Context) error {
	defer context.AfterFunc(live, s.hand.close)()
	var watcher sync.WaitGroup
	watcher.Go(func() { s.watch(live) })
	defer watcher.Wait()
	defer s.fail(nil) // before the watcher is waited for

	cfg := &s.in.cfg
	reading, err := startPull(cfg.JS, s.id.Name, cfg.Durable, 2*cfg.BatchEvents,
		max(cfg.BatchBytes, cfg.Streams.MaxEventBytes+2*streamHeadroom),
		func(m *nats.Msg, meta *nats.MsgMetadata) { s.receive(live, m, meta) },
		func(err error) { s.fail(fmt.Errorf("read consumer %s: %w", cfg.Durable, err)) })
	if err != nil {
		return fmt.Errorf("read consumer %s: %w", cfg.Durable, err)
	}
	s.in.stats.sessions.Add(1)
	s.in.stats.connected.Store(true)
	s.commit(ctx, live)
	reading.stop()
	if conn := cfg.JS.Conn(); conn.IsConnected() {
		_ = conn.FlushTimeout(time.Second) // the last acknowledgement; a lost one costs nothing
	}
	return nil
}

// receive takes one delivery. It blocks while a full batch waits for the
// Appender, and so stops the pulling.
func (s *session) receive(ctx context.Context, m *nats.Msg, meta *nats.MsgMetadata) {
	seq := meta.Sequence.Stream
	if meta.Stream != s.id.Name {
		return // not from our consumer
	}
	if seq < s.next {
		if meta.NumDelivered > 1 {
			s.in.stats.redelivered.Add(1)
		}
		if seq <= s.in.stats.applied.Load() {
			_ = ack(m) // durable; the first acknowledgement got lost or came late
		}
		return
	}
	for s.next < seq {
		if err := s.fill(ctx, seq); err != nil {
			s.fail(err)
			return
		}
	}
	s.in.stats.last.Store(seq + meta.NumPending)
	s.accept(events.Message{
		Subject: m.Subject, Payload: m.Data, StreamSeq: seq,
		BrokerMS: unixMS(meta.Timestamp),
	}, m, meta.NumPending > 0)
}

// accept hands over the message with the next sequence. It reports whether the session goes on.
func (s *session) accept(m events.Message, reply *nats.Msg, more bool) bool {
	if !s.hand.put(s.decoder.Decode(m), reply, more) {
		return false
	}
	s.next = m.StreamSeq + 1
	s.received.Store(m.StreamSeq)
	s.in.stats.fetched.Add(1)
	return true
}

// fill gets past the next sequence below upTo that was not delivered: the
// message is read directly from the stream's leader if it is there, and what
// lies before it, or before upTo, is lost.
func (s *session) fill(ctx context.Context, upTo uint64) error {
	m, there, err := s.message(ctx, s.next, false)
	if err != nil {
		return err
	}
	end := upTo // of what is lost
	if there = there && m.StreamSeq < upTo; there {
		end = m.StreamSeq
	}
	if end > s.next {
		why, err := s.lostWhy(ctx, end, upTo)
		if err != nil {
			return err
		}
		if !s.hand.lose(lostRange{from: s.next, to: end - 1, why: why}) {
			return context.Cause(ctx)
		}
		s.next = end
		s.received.Store(end - 1)
	}
	if there && !s.accept(m, nil, false) {
		return context.Cause(ctx)
	}
	return nil
}

// lostWhy says why nothing is left before end, of a leader that knows of the
// message at delivered: one that does not is of another history, which the next
// session looks into.
func (s *session) lostWhy(ctx context.Context, end, delivered uint64) (string, error) {
	info, err := s.stream.Info(ctx)
	switch {
	case err != nil:
		return "", fmt.Errorf("look at stream: %w", err)
	case identity(info) != s.id || info.State.LastSeq < delivered:
		return "", errChanged
	case info.State.FirstSeq < end:
		return LostDeleted, nil
	}
	return LostTrimmed, nil
}

func unixMS(t time.Time) uint64 {
	return uint64(max(0, min(t.UnixMilli(), math.MaxInt64)))
}

// watch looks at the stream from time to time: a purge, a loss or a new stream
// shows nowhere else while nothing is published.
func (s *session) watch(ctx context.Context) {
	ticker := time.NewTicker(s.in.cfg.CheckInterval)
	defer ticker.Stop()
	idle := uint64(math.MaxUint64) // last sequence accepted at a look that found nothing in hand
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			idle = s.inspect(ctx, idle)
		}
	}
}

// inspect looks at the stream once. idle is what the last look returned: a
// message that is still not delivered then is one that will not be.
func (s *session) inspect(ctx context.Context, idle uint64) uint64 {
	received := s.received.Load() // before the look, so that it cannot be ahead of it
	info, err := s.stream.Info(ctx)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		s.fail(&troubled{fmt.Errorf("look at stream: %w", err), TroubleStream})
		return idle
	case err != nil:
		s.in.stats.failed(fmt.Errorf("look at stream: %w", err))
		return idle
	}
	if identity(info) != s.id || info.State.LastSeq < received {
		s.fail(errChanged)
		return idle
	}
	if !slices.Equal(s.in.cfg.Streams.settings(info.Config), s.weak) {
		s.fail(errSettings) // the next session records them
		return idle
	}
	s.in.stats.looked(s.id, info.State.LastSeq)
	behind := info.State.LastSeq > received || info.State.FirstSeq > received+1
	if !behind || !s.hand.empty() {
		return math.MaxUint64
	}
	if received == idle {
		s.fail(errStalled)
	}
	return received
}
