package events

import "slices"

// Conformity codes, as strict verification of the chain names them; the last
// one is ours, for a chain that ended without ever having carried a scope.
const (
	CodeKindOrder    = "kind_order"
	CodeCompMissing  = "comp_missing"
	CodeTopoMismatch = "topo_mismatch"
	CodeScopeMissing = "scope_missing"
)

// Ranks of the four kinds, in the order in which they may come.
const (
	rankIntent = 1 + iota
	rankCommit
	rankStep
	rankSeal
)

// Order follows a chain's segments and tells what strict verification would
// say about their plan and order, without keeping the chain. What is kept of a
// plan is the part that no step has used up yet.
type Order struct {
	Rank      uint8 // of the last kind: 1 intent, 2 commit, 3 step, 4 seal; 0: no segment yet
	Misplaced bool  // not intent_bound? comp_committed* step_executed* run_sealed*
	Planned   bool  // a comp was committed
	Intended  bool  // an intent was bound before any other segment or attempt
	Same      bool  // the last commit says what the first does: Last is not used
	First     Plan  // of the first commit anywhere
	Last      Plan  // of the last commit

	// Executed are the executed steps in order, as positions in State.Steps,
	// for a commit that comes after them. Forgotten: more than are kept, so a
	// later commit is not compared with them (it is misplaced anyway).
	Executed  []uint32
	Forgotten bool
}

// Plan is a topology that executed steps must be a subsequence of.
type Plan struct {
	Rest   []string // step ids behind the last one executed
	Broken bool     // a step was not in the rest
}

func (p *Plan) step(id string) {
	if p.Broken {
		return
	}
	i := slices.Index(p.Rest, id)
	if i < 0 {
		p.Broken, p.Rest = true, nil
		return
	}
	p.Rest = p.Rest[i+1:]
}

func (o *Order) place(rank uint8) {
	if rank < o.Rank || rank == rankIntent && o.Rank == rankIntent {
		o.Misplaced = true
	}
	o.Rank = max(o.Rank, rank)
}

// commit takes the topology of a comp_committed; steps are all the tallies of
// the chain, to look up those executed before.
func (o *Order) commit(topo []string, steps []StepTally) {
	o.place(rankCommit)
	if o.Planned && o.Same && len(o.Executed) == 0 && !o.Forgotten && slices.Equal(o.First.Rest, topo) {
		return
	}
	plan := Plan{Rest: cloneStrings(topo)}
	for _, i := range o.Executed {
		plan.step(steps[i].StepID)
	}
	if o.Forgotten {
		plan = Plan{}
	}
	if !o.Planned {
		o.Planned, o.Same, o.First = true, true, plan
		return
	}
	o.Same, o.Last = false, plan
}

// step takes an executed step, which is steps[at]; at is negative when the
// step's tally is not kept.
func (o *Order) step(id string, at int) {
	o.place(rankStep)
	if o.Planned {
		o.First.step(id)
	}
	if o.Planned && !o.Same {
		o.Last.step(id)
	}
	if o.Forgotten {
		return
	}
	if at < 0 || len(o.Executed) >= MaxTrackedOrder {
		o.Executed, o.Forgotten = nil, true
		return
	}
	o.Executed = append(o.Executed, uint32(at))
}

// Codes names what is wrong, as strict verification does: kind_order,
// comp_missing, topo_mismatch.
func (o *Order) Codes() []string {
	codes := []string{}
	if o.Misplaced {
		codes = append(codes, CodeKindOrder)
	}
	if o.Rank > 0 && !o.Planned {
		codes = append(codes, CodeCompMissing)
	}
	if o.topoBroken() {
		codes = append(codes, CodeTopoMismatch)
	}
	return codes
}

func (o *Order) topoBroken() bool { return o.First.Broken || !o.Same && o.Last.Broken }
