package run

import (
	"cmp"
	"iter"
	"strconv"

	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/segments"
)

// area is a part of the evidence that a claim may rest on.
type area uint16

const (
	areaChain area = 1 << iota // the chain node
	areaSegments
	areaAttempts
	areaPlan
	areaArtifact
	areaIntent
	areaParsed
	areaIntake // the intake record and the rejected events
	areaShape  // nodes that nothing made, their order, edges and other lists
)

// fault is a place where the graph is not what [Pack] makes of any chain.
type fault struct {
	area   area
	detail string
}

// model is a chain as its graph tells it, or as it is about to become one.
type model struct {
	facts    Facts
	intake   *intake // with Facts.Intake
	segments []Segment
	attempts []Attempt
	rejected []Rejected
	texts    map[string]map[string]string // kept texts, by kind of node and key

	midway bool // judged as [Version1] did; see declaredMidway

	order  segments.Order
	broken []uint64 // segments whose digest attribute is not their digest, or that are none

	// Of a graph only: no fault means that packing the model again gives it.
	faults   []fault
	headless bool // there is no chain node that can be read
}

func (m *model) faulty(a area) bool {
	if m.headless {
		return true
	}
	for _, f := range m.faults {
		if f.area&a != 0 {
			return true
		}
	}
	return false
}

// maxFaults bounds the list; the areas of all faults are kept.
const maxFaults = 100

func (m *model) fault(a area, detail string) {
	if len(m.faults) >= maxFaults && m.faulty(a) {
		return
	}
	m.faults = append(m.faults, fault{a, detail})
}

func segmentID(seq uint64) string { return kindSegment + ":" + strconv.FormatUint(seq, 10) }

// preimageKind is the kind of node that holds the text behind a segment.
func preimageKind(k segments.Kind) string {
	switch k.(type) {
	case *segments.IntentBound:
		return kindIntent
	case *segments.CompCommitted:
		return kindPlan
	case *segments.StepExecuted:
		return kindParsed
	case *segments.RunSealed:
		return kindArtifact
	}
	return ""
}

// preimageKey is the digest that the text behind a segment gives.
func preimageKey(k segments.Kind) string {
	switch k := k.(type) {
	case *segments.IntentBound:
		return k.IntentDigest.String()
	case *segments.CompCommitted:
		return k.CompSemanticSHA256.String()
	case *segments.StepExecuted:
		return k.ParsedExprDigest.String()
	case *segments.RunSealed:
		return k.RunBundleDigest.String()
	}
	return ""
}

// setText keeps the text of a node.
func (m *model) setText(kind, key, text string) {
	if m.texts[kind] == nil {
		m.texts[kind] = map[string]string{}
	}
	m.texts[kind][key] = text
}

// kept returns the text behind a segment.
func (m *model) kept(k segments.Kind) (id, text string, ok bool) {
	kind := preimageKind(k)
	texts := m.texts[kind]
	if len(texts) == 0 {
		return "", "", false
	}
	key := preimageKey(k)
	text, ok = texts[key]
	return kind + ":" + key, text, ok
}

// preimages yields kind and key of each kept text, in order of the first
// segment that it belongs to.
func (m *model) preimages() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		told := map[string]bool{}
		for i := range m.segments {
			id, _, ok := m.kept(m.segments[i].Kind)
			if !ok || told[id] {
				continue
			}
			told[id] = true
			if k := m.segments[i].Kind; !yield(preimageKind(k), preimageKey(k)) {
				return
			}
		}
	}
}

// edges yields the edges that the nodes imply, by the node that they start at.
func (m *model) edges() iter.Seq[engine.Edge] {
	return func(yield func(engine.Edge) bool) {
		_ = m.segmentEdges(yield) && m.attemptEdges(yield) && m.intakeEdges(yield)
	}
}

func (m *model) segmentEdges(yield func(engine.Edge) bool) bool {
	commit := ""
	for i := range m.segments {
		id := segmentID(uint64(i))
		if !yield(engine.Edge{Src: id, Dst: kindChain, Relation: "in"}) {
			return false
		}
		if i > 0 && !yield(engine.Edge{Src: id, Dst: segmentID(uint64(i - 1)), Relation: "follows"}) {
			return false
		}
		relation := ""
		switch m.segments[i].Kind.(type) {
		case *segments.IntentBound:
			relation = "binds"
		case *segments.CompCommitted:
			relation, commit = "commits", id
		case *segments.StepExecuted:
			relation = "executes"
			if commit != "" && !yield(engine.Edge{Src: id, Dst: commit, Relation: relation}) {
				return false
			}
		case *segments.RunSealed:
			relation = "seals"
		}
		if text, _, ok := m.kept(m.segments[i].Kind); ok && !yield(engine.Edge{Src: id, Dst: text, Relation: relation}) {
			return false
		}
	}
	return true
}

// attemptEdges links an attempt with the commit last made before it.
func (m *model) attemptEdges(yield func(engine.Edge) bool) bool {
	f := newForm(&m.facts)
	next, commit := 0, ""
	for i := range m.attempts {
		at := m.attempts[i].Position
		for ; next < len(m.segments) && m.segments[next].before(at); next++ {
			if _, ok := m.segments[next].Kind.(*segments.CompCommitted); ok {
				commit = segmentID(uint64(next))
			}
		}
		id := kindAttempt + ":" + f.at(at)
		if !yield(engine.Edge{Src: id, Dst: kindChain, Relation: "in"}) {
			return false
		}
		if commit != "" && !yield(engine.Edge{Src: id, Dst: commit, Relation: "attempts"}) {
			return false
		}
	}
	return true
}

func (m *model) intakeEdges(yield func(engine.Edge) bool) bool {
	if m.intake != nil && !yield(engine.Edge{Src: kindIntake, Dst: kindChain, Relation: "in"}) {
		return false
	}
	f := newForm(&m.facts)
	for i := range m.rejected {
		if !yield(engine.Edge{Src: kindRejected + ":" + f.at(m.rejected[i].Position), Dst: kindChain, Relation: "in"}) {
			return false
		}
	}
	return true
}

// before says that the segment came before a place in the stream.
func (s *Segment) before(p Position) bool { return s.Event != nil && s.Event.Position.compare(p) < 0 }

func (p Position) compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Epoch, q.Epoch), cmp.Compare(p.StreamSeq, q.StreamSeq))
}
