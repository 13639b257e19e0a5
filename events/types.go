package events

import "github.com/chaind/chaind/segments"

// Key is the identity of a chain. Tenant "" is the empty tenant, spelled "_" in subjects.
type Key struct {
	Tenant, PromptHash, Session, Chain string
}

// Verb is the last token of a subject.
type Verb string

const (
	VerbIntent Verb = "intent"
	VerbCommit Verb = "commit"
	VerbStep   Verb = "step"
	VerbSeal   Verb = "seal"
)

// Class names why an event was rejected. The names are normative.
type Class string

const (
	BadSubject         Class = "bad_subject"
	TooLarge           Class = "too_large"
	Malformed          Class = "malformed"
	TooDeep            Class = "too_deep"
	DuplicateName      Class = "duplicate_name"
	BadID              Class = "bad_id"
	UnsafeInteger      Class = "unsafe_integer"
	UnknownMember      Class = "unknown_member"
	Conflict           Class = "conflict"
	ScopeContradiction Class = "scope_contradiction"
	DigestMismatch     Class = "digest_mismatch"
	TopoMismatch       Class = "topo_mismatch"
	RunIDMismatch      Class = "run_id_mismatch"

	// ChainDamaged is no fault of the event: the store cannot read its chain.
	ChainDamaged Class = "chain_damaged"
)

// Fault is the first thing wrong with an event.
type Fault struct {
	Class  Class
	Detail string // one sentence, our words, never the payload's bytes unescaped
}

// Phase of a step event.
type Phase string

const (
	PhaseEnd    Phase = "end"
	PhaseBegin  Phase = "begin"
	PhaseFailed Phase = "failed"
)

// Outcome of a chain.
type Outcome string

const (
	Open      Outcome = "open"
	Succeeded Outcome = "succeeded"
	Failed    Outcome = "failed"
	Cancelled Outcome = "cancelled"
	Abandoned Outcome = "abandoned"
)

// Conformity of a chain.
type Conformity string

const (
	Conforming    Conformity = "conforming"
	Unplanned     Conformity = "unplanned"
	Nonconforming Conformity = "nonconforming"
)

// Message is one delivery as it came from the broker.
type Message struct {
	Subject   string
	Payload   []byte
	StreamSeq uint64
	BrokerMS  uint64 // broker's timestamp, Unix milliseconds
}

// Event is a decoded message: all that its bytes alone can tell.
type Event struct {
	Message
	Sum        segments.Digest // SHA-256 of Payload
	Key        Key
	Attributed bool // the chain can be told from the subject
	Verb       Verb

	// Fault is the first fault that the bytes alone show; nil: none. Faults
	// that rank after "conflict" may accompany an otherwise decoded event.
	Fault *Fault

	ID          string // "" when it cannot be read
	Scope       *segments.Scope
	AtMS        *uint64
	ProducerSeq *uint64

	// Kind is the segment payload; nil for a seal without run seal and for
	// attempts. A digest that depends on the scope (intent, run) and was left
	// out is filled in by the state machine; DigestStated tells.
	Kind         segments.Kind
	DigestStated bool

	Phase     Phase  // steps only
	StepID    string // attempts: begin and failed
	StepIndex uint32
	Reason    string // failed attempts and seals; "" when absent

	Preimage Preimage
	Anchors  *segments.Anchors

	Outcome           Outcome // seals only
	EventCount        *uint64
	ProducerHead      *segments.Digest
	ProducerSignature *segments.Signature
	More              bool

	room room

	// signed is the verdict on ProducerSignature under the event's own scope;
	// nil: not looked at, because there is no such scope.
	signed *bool
}

// room is where a decoded event keeps what its fields point to, so that a
// common one is no piece of memory beside this and its strings.
type room struct {
	atMS, producerSeq uint64
	step              segments.StepExecuted
	entryID           string
	fingerprints      [2]string

	segment  segments.Segment // that the event became
	linkedMS uint64           // its time
}

// Preimage holds the raw texts that digests were computed from; nil: absent.
type Preimage struct {
	Text     *string
	Comp     []byte
	Parsed   []byte
	Artifact []byte
}

// Verdict says what an event did.
type Verdict string

const (
	Appended  Verdict = "appended"
	Attempted Verdict = "attempt"
	Finished  Verdict = "finished" // a seal ended the chain (with or without a segment)
	Duplicate Verdict = "duplicate"
	Late      Verdict = "late"
	Rejected  Verdict = "rejected"
)

// Known is what the store knows about an event id in its chain.
type Known struct {
	Sum      *segments.Digest // payload digest of the event that holds the id; nil: free
	Rejected bool             // an event with this id was rejected before
}

// Effect is what the state machine decided; the store makes it durable.
type Effect struct {
	Verdict  Verdict
	Fault    *Fault            // Rejected: why
	Existing *segments.Digest  // conflict: the digest that holds the id
	AfterEnd bool              // the chain had ended before
	Segment  *segments.Segment // set when a segment was appended; it lies in the event, until that is applied again
	Head     *segments.Digest  // head of the chain after the event
}

// Stream identifies the JetStream stream that a batch came from. The store
// adds an epoch of its own when the broker loses or replaces its store.
type Stream struct {
	Name      string
	CreatedNS int64 // creation time as the broker tells it, Unix nanoseconds
}

// Batch is a run of events in stream order, made durable in one transaction.
type Batch struct {
	Stream Stream
	Events []*Event
}

// Rejection is the record of a rejected event. The record, not a log line, is
// what makes the missing event visible.
type Rejection struct {
	ID         uint64 // position in the store's list of rejections, from 1
	Message           // Payload up to the size limit
	Key        Key    // zero unless Attributed
	Attributed bool
	EventID    string // "" when it cannot be read
	Class      Class

	// ProducerSeq is the number that was read when the event came, of which the kept
	// bytes may lack the end. A query for one chain tells it; nil: not given, or not told.
	ProducerSeq *uint64

	Detail   string
	Sum      segments.Digest  // SHA-256 of the whole payload
	Existing *segments.Digest // conflict: the digest that holds the id
	AfterEnd bool
	Epoch    uint32 // of the stream's history, as the store counts them; with StreamSeq the place in it
}
