package events

import (
	"strings"

	"github.com/chaind/chaind/segments"
)

// Agreement is what the producer's own head or signature says about the chain.
// The empty value means that none was given.
type Agreement string

const (
	HeadAgrees       Agreement = "agrees"
	HeadDiffers      Agreement = "differs"
	SignatureValid   Agreement = "valid"
	SignatureInvalid Agreement = "invalid"
)

// State is a whole chain, open or finished, without its segments. It changes
// only through [State.Apply], and is the same whatever the batches were in
// which the events came.
type State struct {
	Key   Key
	Scope *segments.Scope // what the chain is bound to; nil: not bound yet

	Outcome Outcome
	Reason  string // as the last seal gave it; "": none

	Segments uint64           // count, and seq of the next segment
	Head     *segments.Digest // digest of the last segment; nil: none

	Steps       []StepTally // per step id, in order of appearance
	UntoldSteps StepTally   // sums over the step ids beyond MaxTrackedSteps; no StepID
	RunIDs      []string    // distinct run ids of the run seals, in order
	UntoldRuns  uint64      // run seals whose run id is beyond MaxTrackedRuns
	Anchors     segments.Anchors
	Seals       uint64 // seal events applied, the last one included

	Duplicates, Late, Rejected uint64

	Order Order
	Facts Facts

	// What the producer itself said, as the last seal with a producer_head gave
	// it: the head, the signature over that head (nil: none), and how many
	// segments the chain had then.
	ProducerHead      Agreement // "", agrees or differs
	ProducerSignature Agreement // "", valid or invalid
	GivenHead         *segments.Digest
	GivenSignature    *segments.Signature
	GivenSegments     uint64

	FirstStreamSeq uint64 // of the first event of the chain, whatever became of it
	LastStreamSeq  uint64 // of the last event
	EndStreamSeq   uint64 // of the event that ended the chain; 0: open
	LastAtMS       uint64 // at_ms (or broker time) of the last event that took effect

	LastEventID string  // last event answered, duplicates and rejections included; "": unreadable
	LastSeq     *uint64 // its producer_seq; nil: none

	underWay struct {
		n     uint64 // see UnderWay
		known bool   // it has been counted; from then on it is kept
	}
	index   map[string]int // step id to its place in Steps; nil while they are few
	tracked trackedBytes
}

// trackedBytes is what the step ids and run ids kept take up.
type trackedBytes struct{ steps, runs int }

// StepTally counts one step's events.
type StepTally struct {
	StepID string
	Begun  uint64 // phase begin
	Ended  uint64 // step_executed segments
	Failed uint64 // phase failed
}

// underWay is how many attempts of the step have begun and neither ended nor failed.
func (t *StepTally) underWay() uint64 {
	if over := t.Ended + t.Failed; t.Begun > over {
		return t.Begun - over
	}
	return 0
}

// tell counts one more event of a step: count is a member of its tally.
func (s *State) tell(tally *StepTally, count *uint64) {
	before := tally.underWay()
	*count++
	s.underWay.n += tally.underWay() - before // may wrap around, and so comes right
}

// UnderWay is how many attempts of an open chain have begun and neither ended nor
// failed; those of the untold steps count as of one. 0 for a chain that has ended.
func (s *State) UnderWay() uint64 {
	if s.Outcome != Open {
		return 0
	}
	if !s.underWay.known {
		s.underWay.n, s.underWay.known = s.UntoldSteps.underWay(), true
		for i := range s.Steps {
			s.underWay.n += s.Steps[i].underWay()
		}
	}
	return s.underWay.n
}

// NewState is the state of a chain before its first event.
func NewState(key Key) *State { return &State{Key: key, Outcome: Open} }

// BoundScope is the scope of the chain; until an event carried one, what the
// subject says, with the schema version and no catalog or entry.
func (s *State) BoundScope() segments.Scope {
	if s.Scope != nil {
		return *s.Scope
	}
	return segments.Scope{
		SchemaVersion:    segments.ScopeSchemaVersion,
		TenantID:         s.Key.Tenant,
		PromptHash:       s.Key.PromptHash,
		ExecuteSessionID: s.Key.Session,
	}
}

// Conformity judges the chain so far; the codes name what strict verification
// would find: kind_order, comp_missing, topo_mismatch, scope_missing.
func (s *State) Conformity() (Conformity, []string) {
	codes := s.Order.Codes()
	unscoped := s.Outcome != Open && s.Scope == nil
	if unscoped {
		codes = append(codes, CodeScopeMissing)
	}
	switch {
	case unscoped || s.Order.Misplaced || s.Order.topoBroken():
		return Nonconforming, codes
	case !s.Order.Planned:
		return Unplanned, codes
	}
	return Conforming, codes
}

// step finds or makes the tally of a step id; at is -1 when the limits are
// reached and the untold sums count instead.
func (s *State) step(id string) (tally *StepTally, at int) {
	if i := s.findStep(id); i >= 0 {
		return &s.Steps[i], i
	}
	if s.tracked.steps == 0 {
		for i := range s.Steps {
			s.tracked.steps += len(s.Steps[i].StepID)
		}
	}
	if len(s.Steps) >= MaxTrackedSteps || s.tracked.steps+len(id) > MaxTrackedBytes {
		return &s.UntoldSteps, -1
	}
	id = strings.Clone(id)
	s.tracked.steps += len(id)
	if s.index != nil {
		s.index[id] = len(s.Steps)
	}
	s.Steps = append(s.Steps, StepTally{StepID: id})
	return &s.Steps[len(s.Steps)-1], len(s.Steps) - 1
}

// fewSteps are looked through one by one: a map takes more, and each of the many
// states that a daemon keeps would have one.
const fewSteps = 8

// findStep is the place of a step id in Steps; -1: it is not there.
func (s *State) findStep(id string) int {
	if len(s.Steps) <= fewSteps {
		for i := range s.Steps {
			if s.Steps[i].StepID == id {
				return i
			}
		}
		return -1
	}
	if s.index == nil {
		s.index = make(map[string]int, len(s.Steps))
		for i := range s.Steps {
			s.index[s.Steps[i].StepID] = i
		}
	}
	if i, ok := s.index[id]; ok {
		return i
	}
	return -1
}

func clone(s string) string { return strings.Clone(s) }

func cloneOptional(s *string) *string {
	if s == nil {
		return nil
	}
	return pointer(clone(*s))
}

func cloneStrings(list []string) []string {
	c := make([]string, len(list))
	for i, s := range list {
		c[i] = clone(s)
	}
	return c
}
