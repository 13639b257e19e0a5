package emitter

import (
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chaind/chaind/events"
)

// Stats is a snapshot of an [Intake], for metrics and readiness. Counts are
// since the start of the process.
type Stats struct {
	Fetched     uint64 // messages taken from the stream, each once
	Redelivered uint64 // deliveries that were dropped because the message was there already
	Batches     uint64 // successful Appends
	Bytes       uint64 // payload bytes appended
	Acked       uint64 // messages covered by an acknowledgement

	Verdicts map[events.Verdict]uint64 // effects by verdict
	Rejected map[events.Class]uint64   // rejections by class
	Lost     uint64                    // messages recorded as lost
	Epochs   uint64                    // epochs begun

	AppendErrors uint64 // failed Appends
	Sessions     uint64 // consumers created; more than one: reconnects and trouble

	Stream   events.Stream
	Applied  uint64 // last durable stream sequence
	Last     uint64 // last sequence of the stream when it was looked at
	Lag      uint64 // messages between the two
	LookedAt time.Time

	Connected bool      // a session reads the stream
	Trouble   Trouble   // why none does
	Failing   time.Time // since when Append has been failing; zero: it is not
	LastError string    // of the intake, of any time; "": none
	Warnings  []Warning // of the stream
}

// Trouble says what keeps an [Intake] from reading.
type Trouble string

const (
	NoTrouble         Trouble = ""
	TroubleConnection Trouble = "connection" // the broker does not answer, or has not been asked yet
	TroubleStream     Trouble = "stream"     // the stream is missing and cannot be made
	TroubleConsumer   Trouble = "consumer"   // the consumer is missing and cannot be made
	TroubleStopped    Trouble = "stopped"    // Run has ended
)

// troubled gives an error the trouble that it is about.
type troubled struct {
	error
	about Trouble
}

func (t *troubled) Unwrap() error { return t.error }

type stats struct {
	fetched, redelivered, batches, bytes, acked, lost, epochs, appendErrors, sessions, applied, last atomic.Uint64
	connected, stopped                                                                               atomic.Bool

	mu sync.Mutex
	// The rest is guarded by mu, held for a few assignments at a time.
	verdicts  map[events.Verdict]uint64
	rejected  map[events.Class]uint64
	stream    events.Stream
	warnings  []Warning
	lookedAt  time.Time
	failing   time.Time
	trouble   Trouble // of the last session that ended; "" before
	lastError string
}

// Stats returns a snapshot. It may be called at any time.
func (in *Intake) Stats() Stats {
	s := &in.stats
	snap := Stats{
		Fetched: s.fetched.Load(), Redelivered: s.redelivered.Load(), Batches: s.batches.Load(),
		Bytes: s.bytes.Load(), Acked: s.acked.Load(), Lost: s.lost.Load(), Epochs: s.epochs.Load(),
		AppendErrors: s.appendErrors.Load(), Sessions: s.sessions.Load(),
		Applied: s.applied.Load(), Last: s.last.Load(), Connected: s.connected.Load(),
	}
	if snap.Last > snap.Applied {
		snap.Lag = snap.Last - snap.Applied
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	snap.Verdicts, snap.Rejected = maps.Clone(s.verdicts), maps.Clone(s.rejected)
	snap.Stream, snap.LookedAt = s.stream, s.lookedAt
	snap.Failing, snap.LastError = s.failing, s.lastError
	switch {
	case s.stopped.Load():
		snap.Trouble = TroubleStopped
	case !snap.Connected && s.trouble == NoTrouble:
		snap.Trouble = TroubleConnection
	case !snap.Connected:
		snap.Trouble = s.trouble
	}
	snap.Warnings = append([]Warning(nil), s.warnings...)
	return snap
}

// count adds the effects of a durable batch.
func (s *stats) count(b *batch, effects []events.Effect) {
	s.batches.Add(1)
	s.bytes.Add(uint64(b.bytes))
	s.acked.Add(uint64(len(b.events)))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.verdicts == nil {
		s.verdicts, s.rejected = map[events.Verdict]uint64{}, map[events.Class]uint64{}
	}
	for i := range effects {
		s.verdicts[effects[i].Verdict]++
		if f := effects[i].Fault; f != nil && effects[i].Verdict == events.Rejected {
			s.rejected[f.Class]++
		}
	}
	s.failing = time.Time{}
}

func (s *stats) appendFailed(err error) {
	s.appendErrors.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastError = "append batch: " + err.Error()
	if s.failing.IsZero() {
		s.failing = time.Now()
	}
}

func (s *stats) failed(err error) {
	if errors.Is(err, errReconnected) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastError = err.Error()
}

// ended keeps what the end of a session was about.
func (s *stats) ended(err error) {
	about := TroubleConnection
	var t *troubled
	if errors.As(err, &t) {
		about = t.about
	}
	s.mu.Lock()
	s.trouble = about
	s.mu.Unlock()
	s.failed(err)
}

// looked records what a look at the stream showed.
func (s *stats) looked(stream events.Stream, last uint64) {
	s.last.Store(last)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream, s.lookedAt = stream, time.Now()
}

func (s *stats) warned(warnings []Warning) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warnings = warnings
}
