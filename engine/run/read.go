package run

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/segments"
)

// read takes a graph for a packed chain. Each part that can be read enters the
// model; each place where packing the model would give something else is a
// fault. A graph without faults is exactly what [Pack] makes.
func read(g *engine.Graph) *model {
	m := &model{texts: map[string]map[string]string{}}
	if len(g.Nodes) == 0 || !m.readChain(&g.Nodes[0]) {
		m.headless = true
		m.fault(areaChain, "the first node is no chain node")
		return m
	}
	r := &graphReader{model: m, form: newForm(&m.facts)}
	r.settle(g)
	r.ahead = readAhead(g.Nodes[1:], r.form)
	for i := 1; i < len(g.Nodes); i++ {
		r.node(&g.Nodes[i])
	}
	r.compare(&g.Nodes[0], r.form.chain(&m.facts), areaChain)
	m.comparePreimages(g)
	m.compareEdges(g)
	if len(g.Resolutions) > 0 || len(g.Mentions) > 0 {
		m.fault(areaShape, "there are resolutions or mentions, which this domain does not have")
	}
	m.compareCounts()
	return m
}

// graphReader reads the nodes behind the first.
type graphReader struct {
	*model
	form form
	rank int // of the last node's kind

	ahead []segmentNode // of the nodes of segments to come, read already
}

// ranks is the order of kinds in a graph.
var ranks = map[string]int{
	kindSegment: 1, kindAttempt: 2, kindPlan: 3, kindArtifact: 3, kindIntent: 3, kindParsed: 3, kindIntake: 4, kindRejected: 5,
}

// settle finds the epoch that positions do not name, and reads the positions
// of the chain node anew in its light.
func (r *graphReader) settle(g *engine.Graph) {
	n := g.Node(kindIntake)
	if n == nil || n.Kind != kindIntake {
		return
	}
	rd := &reader{Node: n}
	r.facts.Intake = &Intake{Last: Position{rd.small("epoch"), rd.number("last_stream_seq")}}
	r.form = newForm(&r.facts)
	r.readPositions(&reader{Node: &g.Nodes[0]})
}

func (r *graphReader) node(n *engine.Node) {
	var s *segmentNode
	if n.Kind == kindSegment {
		s, r.ahead = &r.ahead[0], r.ahead[1:]
	}
	rank, known := ranks[n.Kind]
	if !known || rank < r.rank || rank == ranks[kindIntake] && r.rank == rank {
		r.fault(areaShape, fmt.Sprintf("node %q is of no kind that may stand there", n.ID))
		return
	}
	r.rank = rank
	if s != nil {
		r.readSegment(n, s)
		return
	}
	rd := &reader{Node: n}
	switch n.Kind {
	case kindAttempt:
		r.readAttempt(rd)
	case kindIntake:
		r.readIntake(rd)
	case kindRejected:
		r.readRejected(rd)
	default:
		r.readText(rd)
	}
}

// compare demands that a node is the one that was made of what it says.
func (r *graphReader) compare(n *engine.Node, made engine.Node, a area) {
	if !equal(n, &made) {
		r.misshapen(n, a)
	}
}

func (r *graphReader) misshapen(n *engine.Node, a area) {
	r.fault(a, fmt.Sprintf("node %q is not in the form that its content has", n.ID))
}

func equal(a, b *engine.Node) bool {
	return a.ID == b.ID && a.Source == b.Source && a.IngestedAt == b.IngestedAt && a.Text == b.Text &&
		a.Locator.Kind == b.Locator.Kind && slices.Equal(a.Locator.Parts, b.Locator.Parts) &&
		a.Kind == b.Kind && a.Named == b.Named && a.Name == b.Name && slices.Equal(a.Attributes, b.Attributes)
}

func (r *graphReader) unreadable(n *engine.Node, a area) {
	r.fault(a, fmt.Sprintf("node %q lacks an attribute or has one that cannot be read", n.ID))
}

func (m *model) readChain(n *engine.Node) bool {
	if n.ID != kindChain || n.Kind != kindChain {
		return false
	}
	r := &reader{Node: n}
	scope, deviations, err := segments.DecodeScope([]byte(r.text("scope")))
	if err != nil || len(deviations) > 0 {
		return false
	}
	m.facts = Facts{
		Name: r.text("chain"), Scope: *scope,
		Outcome: Outcome(r.text("outcome")), Reason: r.some("reason"), Conformity: Conformity(r.text("conformity")),
		Count: r.number("segments"), Head: r.someDigest("head"), Signature: r.signature(""),
	}
	_, m.facts.Unscoped = r.Attr("unscoped")
	if _, ok := r.Attr("producer_head"); ok {
		m.facts.Producer = &Producer{r.digest("producer_head"), r.number("producer_segments"), r.signature("producer_")}
	}
	m.readPositions(r)
	return !r.bad && m.facts.known()
}

func (m *model) readPositions(r *reader) {
	home := newForm(&m.facts).home
	m.facts.End = r.event("end_", home)
	if _, ok := r.Attr("event_count"); ok {
		m.facts.Declared = &Declared{r.number("event_count"), r.position("event_count_", home)}
	}
}

func (r *graphReader) readSegment(n *engine.Node, s *segmentNode) {
	seq := uint64(len(r.segments))
	if s.Kind != nil {
		r.order.Add(&s.Segment.Segment)
	}
	r.segments = append(r.segments, s.Segment)
	if !s.readable || s.Seq != seq {
		r.broken = append(r.broken, seq)
		r.unreadable(n, areaSegments)
		return
	}
	if !s.digested {
		r.broken = append(r.broken, seq)
	}
	switch {
	case !s.canonical:
		r.unreadable(n, areaSegments)
	case !s.formed:
		r.misshapen(n, areaSegments)
	}
}

func (r *graphReader) readAttempt(n *reader) {
	t := Attempt{Phase: n.text("phase"), StepID: n.text("step_id"), StepIndex: n.small("step_index"), Reason: n.some("reason"), AtMS: n.someNumber("at_ms")}
	e := n.event("", r.form.home)
	if n.bad || e == nil || e.ID == "" || t.Phase != PhaseBegin && t.Phase != PhaseFailed {
		r.unreadable(n.Node, areaAttempts)
		return
	}
	t.Event = *e
	r.attempts = append(r.attempts, t)
	r.compare(n.Node, r.form.attempt(&t), areaAttempts)
}

var preimageAreas = map[string]area{kindPlan: areaPlan, kindArtifact: areaArtifact, kindIntent: areaIntent, kindParsed: areaParsed}

func (r *graphReader) readText(n *reader) {
	_, key, _ := strings.Cut(n.ID, ":")
	text := n.text("json")
	if n.bad {
		r.unreadable(n.Node, preimageAreas[n.Kind])
		return
	}
	r.setText(n.Kind, key, text)
	r.compare(n.Node, r.form.preimage(n.Kind, key, text), preimageAreas[n.Kind])
}

func (r *graphReader) readIntake(n *reader) {
	if r.facts.Intake == nil { // its id is another, so that its epoch was not found
		r.unreadable(n.Node, areaIntake)
		return
	}
	created, err := strconv.ParseInt(n.text("created_ns"), 10, 64)
	i := &intake{
		Intake: Intake{
			Stream: n.text("stream"), CreatedNS: created, First: n.position("first_", r.form.home), Last: r.facts.Intake.Last,
			Duplicates: n.number("duplicates"), Weak: n.all("weak"),
		},
		attempts: n.number("attempts"), rejected: n.number("rejected"), rest: readRest(n),
	}
	for _, text := range n.all("lost") {
		l, ok := parseLost(text)
		n.bad = n.bad || !ok
		i.Lost = append(i.Lost, l)
	}
	r.intake, r.facts.Intake = i, &i.Intake
	n.number("epoch")
	n.number("last_stream_seq")
	if n.bad || err != nil {
		r.unreadable(n.Node, areaIntake)
		return
	}
	r.compare(n.Node, r.form.intake(i), areaIntake)
}

func parseLost(text string) (Lost, bool) {
	ranged, why, okWhy := strings.Cut(text, " ")
	epoch, ranged, okEpoch := strings.Cut(ranged, ":")
	from, to, okTo := strings.Cut(ranged, "-")
	e, errE := strconv.ParseUint(epoch, 10, 32)
	a, errA := strconv.ParseUint(from, 10, 64)
	b, errB := strconv.ParseUint(to, 10, 64)
	ok := okWhy && okEpoch && okTo && errE == nil && errA == nil && errB == nil
	return Lost{uint32(e), a, b, why}, ok
}

func (r *graphReader) readRejected(n *reader) {
	e := Rejected{Class: n.text("class"), Detail: n.some("detail"), Sum: n.digest("payload_sha256"), Existing: n.someDigest("existing_sha256")}
	event := n.event("", r.form.home)
	if n.bad || event == nil {
		r.unreadable(n.Node, areaIntake)
		return
	}
	e.Event = *event
	r.rejected = append(r.rejected, e)
	r.compare(n.Node, r.form.rejected(&e), areaIntake)
}

// comparePreimages demands that each kept text belongs to a segment, in order.
func (m *model) comparePreimages(g *engine.Graph) {
	var have []string
	for i := range g.Nodes {
		if ranks[g.Nodes[i].Kind] == ranks[kindPlan] {
			have = append(have, g.Nodes[i].ID)
		}
	}
	var want []string
	wanted := map[string]bool{}
	for kind, key := range m.preimages() {
		want = append(want, kind+":"+key)
		wanted[kind+":"+key] = true
	}
	if !slices.Equal(have, want) {
		m.fault(areaShape, "the kept texts are not those of the segments, in their order")
	}
	for _, id := range have {
		kind, _, _ := strings.Cut(id, ":")
		if !wanted[id] {
			m.fault(preimageAreas[kind], fmt.Sprintf("node %q belongs to no segment", id))
		}
	}
}

func (m *model) compareEdges(g *engine.Graph) {
	n := 0
	for want := range m.edges() {
		if n == len(g.Edges) || g.Edges[n] != want {
			m.fault(areaShape, fmt.Sprintf("edge %d is not the one from %q to %q that the nodes imply", n, want.Src, want.Dst))
			return
		}
		n++
	}
	if n != len(g.Edges) {
		m.fault(areaShape, fmt.Sprintf("edge %d is not implied by the nodes", n))
	}
}

// compareCounts holds the counts that the intake record states against the
// nodes.
func (m *model) compareCounts() {
	var rejected uint64
	if m.intake == nil {
		if len(m.attempts)+len(m.rejected) > 0 {
			m.fault(areaIntake, "there are attempts or rejected events without an intake record")
		}
		return
	}
	rejected = uint64(len(m.rejected))
	if rest := m.intake.rest; rest != nil {
		rejected += rest.count
		if len(m.rejected) != maxRejected {
			m.fault(areaIntake, "rejected events are only counted, though there is room for their nodes")
		}
	}
	if len(m.rejected) > maxRejected || rejected != m.intake.rejected {
		m.fault(areaIntake, "the rejected events are not as many as the intake record says")
	}
	if uint64(len(m.attempts)) != m.intake.attempts {
		m.fault(areaAttempts, "the attempts are not as many as the intake record says")
	}
}
