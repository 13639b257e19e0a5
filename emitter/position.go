package emitter

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// mark is the last message that this process made durable.
type mark struct {
	stream events.Stream
	seq    uint64
	Applied
}

// position brings the ledger up to date with the stream as it is now, and
// returns the last applied sequence.
func (s *session) position(ctx context.Context, state jetstream.StreamState) (uint64, error) {
	ledger := &s.in.cfg.Ledger
	applied, err := ledger.Watermark(s.id)
	if err != nil {
		return 0, fmt.Errorf("read watermark: %w", err)
	}
	why, err := s.parted(ctx, state, applied)
	if err != nil {
		return 0, err
	}
	if why != "" {
		if applied, err = s.beginEpoch(ctx, state, applied, why); err != nil {
			return 0, err
		}
	}
	if state.FirstSeq <= applied+1 {
		return applied, nil
	}
	lost := lostRange{from: applied + 1, to: state.FirstSeq - 1, why: LostTrimmed}
	if err := s.recordLost(ctx, lost); err != nil {
		return 0, err
	}
	return lost.to, nil
}

// parted tells whether the stream's history is another one than the applied one, and why: "" when
// it is the same or nothing is known against it.
func (s *session) parted(ctx context.Context, state jetstream.StreamState, applied uint64) (string, error) {
	if applied == 0 {
		return "", nil
	}
	if state.LastSeq < applied {
		return EpochBehind, nil
	}
	same, known, err := s.same(ctx, applied)
	if err != nil || !known || same {
		return "", err
	}
	return EpochDiffers, nil
}

// same compares the stream's message with what was applied at the sequence. The
// broker's time counts: after a rollback a producer may well have sent the very
// same event again, with others before it. A message where the ledger knows of a
// loss is another history's, or came back: either way it is to be read.
func (s *session) same(ctx context.Context, seq uint64) (same, known bool, err error) {
	had, known, err := s.appliedAt(seq)
	if !known || err != nil {
		return false, false, err
	}
	m, there, err := s.message(ctx, seq, true)
	if err != nil || !there { // trimmed since, or still lost
		return false, false, err
	}
	return had == Applied{Sum: segments.Sum(m.Payload), BrokerMS: m.BrokerMS}, true, nil
}

func (s *session) appliedAt(seq uint64) (Applied, bool, error) {
	if last := s.in.last; last.stream == s.id && last.seq == seq {
		return last.Applied, true, nil
	}
	at := s.in.cfg.Ledger.AppliedAt
	if at == nil {
		return Applied{}, false, nil
	}
	had, known, err := at(s.id, seq)
	if err != nil {
		return Applied{}, false, fmt.Errorf("read ledger at %d: %w", seq, err)
	}
	return had, known, nil
}

// beginEpoch records that the histories part, and where.
func (s *session) beginEpoch(ctx context.Context, state jetstream.StreamState, applied uint64, why string) (uint64, error) {
	base, err := s.base(ctx, state, applied)
	if err != nil {
		return 0, err
	}
	ledger := &s.in.cfg.Ledger
	if err := ledger.BeginEpoch(ctx, s.id, base, why); err != nil {
		return 0, fmt.Errorf("begin epoch: %w", err)
	}
	s.in.stats.epochs.Add(1)
	s.in.cfg.Logger.Error("the broker's stream went back", "stream", s.id.Name, "applied", applied, "last", state.LastSeq, "base", base, "why", why)
	if applied, err = ledger.Watermark(s.id); err != nil {
		return 0, fmt.Errorf("read watermark: %w", err)
	}
	return applied, nil
}

// base finds the last sequence that both histories share, by halving. Where
// the ledger cannot tell, it is the one before the stream's first: messages
// that are read twice are duplicates, messages that are skipped are lost.
func (s *session) base(ctx context.Context, state jetstream.StreamState, applied uint64) (uint64, error) {
	first := max(state.FirstSeq, 1)
	low, high := first-1, min(state.LastSeq, applied)
	for low < high {
		middle := low + (high-low+1)/2
		same, known, err := s.same(ctx, middle)
		switch {
		case err != nil:
			return 0, err
		case !known:
			return first - 1, nil
		case same:
			low = middle
		default:
			high = middle - 1
		}
	}
	return low, nil
}
