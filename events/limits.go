package events

// Limits bound what one message may hold. The zero value of a member means
// its value in [DefaultLimits].
type Limits struct {
	MaxBytes   int // payload bytes; more is too_large
	MaxDepth   int // levels of nesting, the envelope being level 1; more is too_deep
	MaxMembers int // members of one object; more is too_large
}

// DefaultLimits are the limits of the contract.
var DefaultLimits = Limits{MaxBytes: 1 << 20, MaxDepth: 64, MaxMembers: 4096}

// What a chain's state keeps, however long the chain and however hostile its
// publisher; beside it the topologies of two commits, each within one payload.
// What lies beyond is counted, not kept.
const (
	MaxTrackedSteps   = 4096      // distinct step ids with their own tally
	MaxTrackedRuns    = 4096      // distinct run ids
	MaxTrackedBytes   = 256 << 10 // bytes of step ids and of run ids, each
	MaxTrackedOrder   = 4096      // executed steps remembered for a later commit
	MaxSeqIntervals   = 1024      // gaps in the producer's numbers
	maxTokenBytes     = 64        // tenant and chain tokens
	maxEventIDBytes   = 128
	maxSafeInteger    = 1<<53 - 1
	maxKnownSubjects  = 4096     // subjects that a decoder need not read again
	maxShared         = 4 << 10  // bytes of a payload whose event shares memory with others
	eventsAtOnce      = 16       // such events that a decoder makes together
	stringsAtOnce     = 16 << 10 // bytes of their strings
	maxQuotedName     = 64       // bytes of an unknown name shown in a fault
	minOverflowDigits = 300
)

func (l Limits) withDefaults() Limits {
	if l.MaxBytes <= 0 {
		l.MaxBytes = DefaultLimits.MaxBytes
	}
	if l.MaxDepth <= 0 {
		l.MaxDepth = DefaultLimits.MaxDepth
	}
	if l.MaxMembers <= 0 {
		l.MaxMembers = DefaultLimits.MaxMembers
	}
	return l
}
