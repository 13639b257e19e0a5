package store

import (
	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// Watermark says how far a stream has been applied. Epoch 0 means that the
// stream identity (name and creation time) has not been seen yet.
type Watermark struct {
	Epoch   uint32 // counts from 1 over the whole store
	Applied uint64 // last stream sequence whose effect is durable; 0: none
}

// Epoch is one unbroken history of a stream. A stream that was created anew,
// or whose sequences went back, continues in another epoch; the old one stays.
type Epoch struct {
	Number    uint32
	Stream    events.Stream
	Base      uint64 // sequence before the first one that belongs to the epoch
	Applied   uint64 // last stream sequence applied in it
	Why       string // "first_seen", "recreated", "rolled_back" or "restored", or what BeginEpoch was told
	StartedMS int64  // Unix milliseconds of this machine's clock

	ahead uint64 // end of the lost ranges recorded above Applied
}

// LostRange is a range of stream sequences that never reached the store. What a chain
// misses of its own is told as ranges of one sequence, with ID 0: an event that was
// rejected because the chain was damaged, or that came out of stream order.
type LostRange struct {
	ID         uint64 // from 1, in the order of recording
	Stream     events.Stream
	Epoch      uint32
	From, To   uint64 // stream sequences, both included
	Why        string // "gap", or what RecordLost was told; "chain_damaged", "out_of_order"
	RecordedMS int64  // Unix milliseconds of this machine's clock
	Arrival    uint64 // the first arrival number that came after the loss
}

// Origin says where a stored event came from.
type Origin struct {
	EventID     string
	Verb        events.Verb
	Sum         segments.Digest // SHA-256 of the payload as it was delivered
	ProducerSeq *uint64         // nil: not given
	Epoch       uint32
	StreamSeq   uint64
	BrokerMS    uint64 // broker's timestamp, Unix milliseconds
	Arrival     uint64 // position in the store's arrival order, from 1
}

// SegmentRecord is a segment with its origin.
type SegmentRecord struct {
	Segment segments.Segment
	Origin
}

// AttemptRecord is a step's begin or failure.
type AttemptRecord struct {
	Ordinal   uint64 // position among the chain's attempts, from 0
	Phase     events.Phase
	StepID    string
	StepIndex uint32
	Reason    string  // "" when absent
	AtMS      *uint64 // as the producer claimed; nil: not given
	Origin
}

// Addendum is a well-formed event that came after the end of its chain.
type Addendum struct {
	Ordinal   uint64        // position among the addenda of the chain, from 0
	Kind      segments.Kind // nil for attempts and for seals without a run seal
	Phase     events.Phase
	StepID    string
	StepIndex uint32
	Outcome   events.Outcome // seals only
	Reason    string
	AtMS      *uint64
	Origin
}

// PreimageRecord holds the texts that came with one event, as far as the
// configuration keeps them.
type PreimageRecord struct {
	Ordinal  uint64  // position among the chain's kept preimages, from 0
	Seq      *uint64 // segment that they belong to; nil: a late event
	Preimage events.Preimage
	Origin
}

// ChainRecord is all that the store knows about one chain at one moment.
type ChainRecord struct {
	Key   events.Key
	State *events.State // a copy; the caller may keep and change it

	FirstArrival uint64 // arrival number of the chain's first event
	LastArrival  uint64 // arrival number of its last event of any effect
	Epoch        uint32 // epoch and sequence of that last event
	StreamSeq    uint64

	Fixed *Fixed      // nil while the chain is open
	Seal  *SealResult // nil until FinishSeal
	Lost  []LostRange // ranges lost while the chain was open, or just before a chain without a beginning, in order of recording; then what it misses of its own

	// Weak are the weakening settings that the stream was read under at any time
	// from the chain's first event to its end, or to its last event while it is
	// open, sorted; nil: none is known.
	Weak []events.Weakness
}

// Fixed is a chain as it was when its last seal had been applied: what a
// bundle over the finished chain rests on, whatever arrived since.
type Fixed struct {
	State        *events.State
	Epoch        uint32
	StreamSeq    uint64 // of the seal event
	BrokerMS     uint64 // of the seal event
	Arrival      uint64 // of the seal event
	RejectedUpTo uint64 // highest rejection ID of the store at that moment
}

// ChainSummary is one line of a list of chains.
type ChainSummary struct {
	Key        events.Key
	Outcome    events.Outcome
	Reason     string
	Conformity events.Conformity
	Segments   uint64
	Head       *segments.Digest // nil: no segment yet
	RunIDs     []string
	Duplicates uint64
	Late       uint64
	Rejected   uint64
	Coverage   events.Coverage
	Epoch      uint32
	StreamSeq  uint64      // of the last event of any effect
	Sealed     *SealResult // nil: no result yet
	Anchors    segments.Anchors
	LastAtMS   uint64 // at_ms (or broker time) of the last event that took effect
	Attempts   uint64 // steps of an open chain that have begun and neither ended nor failed
	Damage     string // what is wrong with the stored chain; then only Key is filled in. "": nothing
}

// ChainQuery selects chains. Zero members do not restrict.
type ChainQuery struct {
	Tenant     *string // nil: any; "" is the empty tenant
	PromptHash string
	Session    string
	Chain      string
	Outcome    events.Outcome
	Conformity events.Conformity
	RunID      string // a run id, or the beginning of one
	TraceID    string // of the anchors
	SinceMS    uint64 // LastAtMS at or after this
	UntilMS    uint64 // LastAtMS before this; 0: no bound
	After      string // cursor of the page before; "" starts
	Limit      int    // 1 to MaxPage; 0: DefaultPage
}

// RunRecord is one chain that carries a run seal of a run id. A run id is not
// an identity: the same request in the same catalog always has the same one.
type RunRecord struct {
	RunID string
	Key   events.Key
	Seq   uint64 // segment with the first seal of that run id in the chain
}

// RunQuery selects runs by the chains that carry them, with the same members.
type RunQuery ChainQuery

// RejectedQuery selects rejections. Zero members do not restrict.
type RejectedQuery struct {
	Key    *events.Key // one chain
	Tenant *string     // attributed rejections of one tenant
	Class  events.Class
	UpTo   uint64 // highest rejection ID; 0: no bound
	After  uint64 // rejection ID of the page before; 0 starts
	Limit  int    // 1 to MaxPage; 0: DefaultPage
}

// SealJob asks for the evidence of a finished chain.
type SealJob struct {
	ID        uint64 // from 1, in the order in which chains finished
	Key       events.Key
	Fixed     Fixed
	Attempts  uint32 // how often FailSeal was called
	LastError string // what it was told last; "" before
}

// SealResult is what became of a seal job.
type SealResult struct {
	Class string           // "heads", "unplanned", "nonconforming"; "" without segments
	Head  *segments.Digest // nil: the chain has no segment
	// Path is the sidecar, below the sidecar root; "" without segments, and when
	// the evidence of another scope stands under Head: then the chain has none.
	Path   string
	Bytes  uint64          // length of the sidecar
	SHA256 segments.Digest // of the sidecar
	Signed bool

	BundlePath   string          // trust bundle, below the sidecar root; "" when none was made
	BundleRoot   segments.Digest // its root
	BundleBytes  uint64          // length of the trust bundle
	BundleSHA256 segments.Digest // of the trust bundle, its signature included
	SealedMS     int64           // Unix milliseconds, set by FinishSeal
}
