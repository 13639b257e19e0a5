package run

import (
	"iter"

	"github.com/chaind/chaind/segments"
)

// Outcome says how a run ended.
type Outcome string

// The outcomes.
const (
	Open       Outcome = "open"
	Succeeded  Outcome = "succeeded"
	Failed     Outcome = "failed"
	Cancelled  Outcome = "cancelled"
	Abandoned  Outcome = "abandoned"
	Unrecorded Outcome = "unrecorded" // made from an evidence bundle alone, which does not say
)

// Conformity says whether a chain keeps the plan and the order of the evidence
// format.
type Conformity string

// The conformities.
const (
	Conforming    Conformity = "conforming"
	Unplanned     Conformity = "unplanned"     // no commit, and nothing else wrong
	Nonconforming Conformity = "nonconforming" // plan, order or scope broken
)

// Coverage says whether all events of a run are accounted for.
type Coverage string

// The coverages.
const (
	Complete    Coverage = "complete"
	Incomplete  Coverage = "incomplete"
	Unspecified Coverage = "unspecified" // open, or nothing that the producer declared covers the end
	NotRecorded Coverage = "unrecorded"  // no daemon recorded the intake
)

// Chain is everything a bundle packages about one run. The sequences are read
// once, each in stream order; nil is an empty one. An error that they yield
// ends the building and is wrapped by [Pack].
type Chain struct {
	Facts
	Segments  iter.Seq2[Segment, error]
	Attempts  iter.Seq2[Attempt, error]
	Preimages iter.Seq2[Preimage, error] // in order of Seq
	Rejected  iter.Seq2[Rejected, error] // up to the chain's end

	// Miscounted says of a count of which it is not known which seal declared it that
	// it was wrong there: the last seal at which it is wrong is taken for that one. Else
	// it is the last one before the end at which it is right. If there is none, the end.
	Miscounted bool
}

// Facts are what is known of a chain beside its lists.
type Facts struct {
	Name     string // the chain token of the subject
	Scope    segments.Scope
	Unscoped bool // no event ever carried the scope: it is what the subject says

	Outcome    Outcome
	Reason     string           // as the last seal gave it; "": none
	Conformity Conformity       // as the daemon judged; "": as the segments show
	Count      uint64           // segments, as recorded
	Head       *segments.Digest // digest of the last segment, as recorded; nil: none
	End        *Event           // the seal event that ended the chain; nil: open, or not recorded

	Signature *segments.Signature // of the evidence bundle over the head; nil: unsigned
	Declared  *Declared           // nil: the producer declared no count
	Producer  *Producer           // nil: the producer stated no head
	Intake    *Intake             // nil: no daemon took the events in
}

// Position is a place in a stream: the epoch that the daemon gave the stream's
// history, and the stream sequence in it.
type Position struct {
	Epoch     uint32
	StreamSeq uint64
}

// Event says which event brought something.
type Event struct {
	ID          string  // 1 to 128 of [A-Za-z0-9_.:-]; "" only for a rejected event whose id cannot be read
	ProducerSeq *uint64 // nil: not given
	Position
}

// Segment is a segment and the event that brought it.
type Segment struct {
	segments.Segment
	Event *Event // nil: made from an evidence bundle alone
}

// Attempt is a step's begin or failure.
type Attempt struct {
	Event
	Phase     string // PhaseBegin or PhaseFailed
	StepID    string
	StepIndex uint32
	Reason    string  // "": none
	AtMS      *uint64 // Unix milliseconds; nil: not known
}

// The phases of an attempt.
const (
	PhaseBegin  = "begin"
	PhaseFailed = "failed"
)

// Preimage holds the text that a digest of one segment was computed from. At
// most one member is set, the one that fits the segment's kind.
type Preimage struct {
	Seq      uint64  // of the segment
	Text     *string // intent
	Plan     []byte  // comp, JSON
	Parsed   []byte  // parsed expression, JSON
	Artifact []byte  // run snapshot, JSON body or framed; only what its seal needs is packaged
}

// Rejected is an event that was refused.
type Rejected struct {
	Event
	Class    string // reason class, such as "conflict"
	Detail   string
	Sum      segments.Digest  // SHA-256 of the payload
	Existing *segments.Digest // conflict: that of the payload that holds the id
}

// Declared is a number of events that a seal declared.
type Declared struct {
	Count uint64
	At    Position // of the seal that declared it; zero: not known, see [Chain].Miscounted
}

// Producer is what the producer says about the chain independently of the
// operator.
type Producer struct {
	Head      segments.Digest
	Segments  uint64              // how many the chain had when the head was stated
	Signature *segments.Signature // over the scope and Head; nil: none
}

// Intake is what the daemon recorded about the stream while the chain came in.
type Intake struct {
	Stream      string // JetStream name
	CreatedNS   int64  // creation time of the stream, Unix nanoseconds
	First, Last Position
	Duplicates  uint64   // repeats with equal bytes
	Lost        []Lost   // ranges lost while the chain was open
	Weak        []string // stream settings that weaken evidence, such as "memory_storage"
}

// Lost is a range of stream sequences, both ends included, that never reached
// the daemon's store.
type Lost struct {
	Epoch    uint32
	From, To uint64
	Why      string
}

// Keep says which preimages are packaged.
type Keep struct {
	Plans, Artifacts, Intents, Parsed bool
}

// DefaultKeep packages plans, and of artifacts the members that the seal needs.
var DefaultKeep = Keep{Plans: true, Artifacts: true}
