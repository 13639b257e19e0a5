package run

import (
	"crypto"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/segments"
)

// ErrUnpackable is wrapped by the errors of [Pack] for a chain that the graph
// has no form for: segments that are not numbered 0, 1, 2, …, attempts or
// rejected events that are not in stream order, or are there without an intake
// record, a preimage that does not fit its segment, an unknown outcome.
var ErrUnpackable = errors.New("chain cannot be packaged")

// Packed is a chain as the evidence of a bundle. It must not be changed; it is
// safe for concurrent use.
type Packed struct {
	Graph   *engine.Graph
	Records []engine.Record // the kb: the record of each node, in node order
}

// Pack makes the graph of a chain, with the preimages that keep allows. Equal
// chains give equal graphs. What does not hold (a broken link, a wrong head, a
// preimage with another digest) is packaged as it is, and the claims say so.
func Pack(c *Chain, keep Keep) (*Packed, error) { return pack(&versions[0], c, keep) }

func pack(v *version, c *Chain, keep Keep) (*Packed, error) {
	m, err := gather(c, keep)
	if err != nil {
		return nil, fmt.Errorf("pack chain: %w", err)
	}
	v.restrict(m)
	nodes := m.nodes()
	var edges []engine.Edge
	for e := range m.edges() {
		edges = append(edges, e)
	}
	return &Packed{engine.NewGraph(nodes, edges, nil, nil), records(nodes)}, nil
}

// Draft answers a question, which must be one of [Questions] or is refused,
// and prepares the bundle.
func (p *Packed) Draft(question string) (*bundle.Draft, *engine.Decision, error) {
	return p.draft(&versions[0], question)
}

func (p *Packed) draft(v *version, question string) (*bundle.Draft, *engine.Decision, error) {
	return engine.NewDraft(v.domain(), question, p.Graph, p.Records)
}

// Write packs a chain, answers a question about it and writes the sealed
// bundle, signed when signer is not nil. It returns root and answer.
func Write(w io.Writer, c *Chain, question string, keep Keep, signer crypto.Signer) (root string, d *engine.Decision, err error) {
	return WriteVersion(w, Version, c, question, keep, signer)
}

// WriteVersion is [Write] under an engine version: to make a bundle again that was
// sealed under an earlier one. It fails with [ErrOtherDomain] for an unknown one.
func WriteVersion(w io.Writer, engineVersion string, c *Chain, question string, keep Keep, signer crypto.Signer) (root string, d *engine.Decision, err error) {
	v := versionOf(engineVersion)
	if v == nil {
		return "", nil, ErrOtherDomain
	}
	p, err := pack(v, c, keep)
	if err != nil {
		return "", nil, err
	}
	draft, d, err := p.draft(v, question)
	if err != nil {
		return "", nil, err
	}
	if root, err = bundle.Write(w, draft, signer); err != nil {
		return "", nil, err
	}
	return root, d, nil
}

func records(nodes []engine.Node) []engine.Record {
	out := make([]engine.Record, len(nodes))
	for i := range nodes {
		out[i] = nodes[i].Record
	}
	return out
}

// gather reads the sequences of a chain.
func gather(c *Chain, keep Keep) (*model, error) {
	m := &model{facts: c.Facts, texts: map[string]map[string]string{}}
	if err := m.gatherSegments(c.Segments); err != nil {
		return nil, err
	}
	if c.Conformity == "" {
		m.facts.Conformity = m.conformity()
	}
	if !m.facts.known() {
		return nil, fmt.Errorf("%w: outcome %q, conformity %q", ErrUnpackable, c.Outcome, c.Conformity)
	}
	if err := each(c.Attempts, m.gatherAttempt); err != nil {
		return nil, fmt.Errorf("read attempts: %w", err)
	}
	if err := each(c.Preimages, func(p Preimage) error { return m.keep(p, keep) }); err != nil {
		return nil, fmt.Errorf("read preimages: %w", err)
	}
	return m, m.gatherIntake(c)
}

func (f *Facts) known() bool {
	switch f.Outcome {
	case Open, Succeeded, Failed, Cancelled, Abandoned, Unrecorded:
	default:
		return false
	}
	switch f.Conformity {
	case Conforming, Unplanned, Nonconforming:
		return true
	}
	return false
}

func each[T any](seq iter.Seq2[T, error], visit func(T) error) error {
	if seq == nil {
		return nil
	}
	for item, err := range seq {
		if err != nil {
			return err
		}
		if err := visit(item); err != nil {
			return err
		}
	}
	return nil
}

func (m *model) gatherAttempt(t Attempt) error {
	if t.Phase != PhaseBegin && t.Phase != PhaseFailed {
		return fmt.Errorf("%w: phase %q of an attempt", ErrUnpackable, t.Phase)
	}
	if n := len(m.attempts); n > 0 && m.attempts[n-1].Position.compare(t.Position) >= 0 {
		return fmt.Errorf("%w: attempts are not in stream order", ErrUnpackable)
	}
	m.attempts = append(m.attempts, t)
	return nil
}

func (m *model) gatherSegments(seq iter.Seq2[Segment, error]) error {
	err := each(seq, func(s Segment) error {
		if s.Seq != uint64(len(m.segments)) {
			return fmt.Errorf("%w: segment %d has number %d", ErrUnpackable, len(m.segments), s.Seq)
		}
		if err := s.Check(); err != nil {
			return fmt.Errorf("%w: segment %d: %w", ErrUnpackable, s.Seq, err)
		}
		m.segments = append(m.segments, s)
		m.order.Add(&s.Segment)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read segments: %w", err)
	}
	return nil
}

// keep takes a preimage for its segment, if it is to be kept. Of several texts
// with one digest the first is kept.
func (m *model) keep(p Preimage, keep Keep) error {
	if p.Seq >= uint64(len(m.segments)) {
		return fmt.Errorf("%w: preimage of segment %d, which is not there", ErrUnpackable, p.Seq)
	}
	kind := m.segments[p.Seq].Kind
	text, wanted, err := p.fit(kind, keep)
	if err != nil || !wanted {
		return err
	}
	if _, _, known := m.kept(kind); !known {
		m.setText(preimageKind(kind), preimageKey(kind), text)
	}
	return nil
}

// fit returns the text to keep for a segment of a kind.
func (p *Preimage) fit(kind segments.Kind, keep Keep) (text string, wanted bool, err error) {
	_, isIntent := kind.(*segments.IntentBound)
	_, isCommit := kind.(*segments.CompCommitted)
	_, isStep := kind.(*segments.StepExecuted)
	_, isSeal := kind.(*segments.RunSealed)
	switch {
	case p.Text != nil && isIntent:
		return string(bundle.AppendString(nil, *p.Text)), keep.Intents, nil
	case len(p.Plan) > 0 && isCommit:
		return string(p.Plan), keep.Plans, nil
	case len(p.Parsed) > 0 && isStep:
		return string(p.Parsed), keep.Parsed, nil
	case len(p.Artifact) > 0 && isSeal:
		text, err := reduce(p.Artifact)
		return text, keep.Artifacts, err
	case p.Text == nil && len(p.Plan)+len(p.Parsed)+len(p.Artifact) == 0:
		return "", false, nil
	}
	return "", false, fmt.Errorf("%w: preimage of segment %d does not fit its kind", ErrUnpackable, p.Seq)
}

// reduce leaves of a run snapshot what its seal needs, in the form of the
// package doc.
func reduce(artifact []byte) (string, error) {
	doc, err := segments.DecodeSealDocument(artifact)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnpackable, err)
	}
	return string(appendSealDocument(nil, doc)), nil
}

func appendSealDocument(dst []byte, doc *segments.SealDocument) []byte {
	dst = appendStrings(append(dst, `{"display_lines":`...), doc.DisplayLines)
	dst = bundle.AppendString(append(dst, `,"entry_id":`...), doc.EntryID)
	dst = append(append(dst, `,"parsed_preimage":`...), doc.ParsedPreimage...)
	dst = appendStrings(append(dst, `,"request_fingerprints":`...), doc.RequestFingerprints)
	return append(dst, '}')
}

func appendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = bundle.AppendString(dst, s)
	}
	return append(dst, ']')
}

func (m *model) gatherIntake(c *Chain) error {
	var r rejections
	var last *Position
	if err := each(c.Rejected, func(e Rejected) error {
		if last != nil && last.compare(e.Position) >= 0 {
			return fmt.Errorf("%w: rejected events are not in stream order", ErrUnpackable)
		}
		last = &e.Position
		r.add(e)
		return nil
	}); err != nil {
		return fmt.Errorf("read rejected events: %w", err)
	}
	m.rejected = r.nodes
	if c.Intake == nil {
		if r.total > 0 || len(m.attempts) > 0 {
			return fmt.Errorf("%w: attempts or rejected events without an intake record", ErrUnpackable)
		}
		return nil
	}
	m.intake = &intake{Intake: *c.Intake, attempts: uint64(len(m.attempts)), rejected: r.total}
	if c.Declared != nil && c.Declared.At == (Position{}) {
		m.facts.Declared = &Declared{c.Declared.Count, m.declaredAt(c.Declared.Count, c.Miscounted, r.ids)}
	}
	m.intake.rest = r.end(m)
	return nil
}

// declaredAt is the last seal before the end at which a declared count was right,
// or with wrong the last of all at which it was not; the end when there is none. rest
// are the events that are only counted, each id once.
func (m *model) declaredAt(count uint64, wrong bool, rest []Event) Position {
	end := m.intake.Last
	if m.facts.End != nil {
		end = m.facts.End.Position
	}
	at, found := end, false
	seals := map[Position]bool{end: m.facts.End != nil}
	for i := range m.segments {
		if s := &m.segments[i]; s.Event != nil && s.Kind.Tag() == segments.TagRunSealed {
			seals[s.Event.Position] = true
		}
	}
	all := slices.Collect(m.accepted())
	for i := range m.rejected {
		all = append(all, &m.rejected[i].Event)
	}
	for i := range rest {
		all = append(all, &rest[i])
	}
	slices.SortFunc(all, func(a, b *Event) int { return a.Position.compare(b.Position) })
	ids := map[string]bool{}
	for _, e := range all {
		if e.ID != "" {
			ids[e.ID] = true
		}
		right := uint64(len(ids)) == count
		if seals[e.Position] && right != wrong && (wrong || !found || e.Position != end) {
			at, found = e.Position, true
		}
	}
	return at
}

// accepted yields the events that took effect: segments, attempts, and the end
// when it brought no segment.
func (m *model) accepted() iter.Seq[*Event] {
	return func(yield func(*Event) bool) {
		for i := range m.segments {
			if e := m.segments[i].Event; e != nil && !yield(e) {
				return
			}
		}
		for i := range m.attempts {
			if !yield(&m.attempts[i].Event) {
				return
			}
		}
		if m.bareEnd() {
			yield(m.facts.End)
		}
	}
}

// bareEnd says that the chain ended with an event that is no segment.
func (m *model) bareEnd() bool {
	if m.facts.End == nil {
		return false
	}
	n := len(m.segments)
	return n == 0 || m.segments[n-1].Event == nil || m.segments[n-1].Event.ID != m.facts.End.ID
}

// nodes makes the nodes in the order of the package doc.
func (m *model) nodes() []engine.Node {
	f := newForm(&m.facts)
	nodes := make([]engine.Node, 0, 2+len(m.segments)+len(m.attempts)+len(m.rejected))
	nodes = append(nodes, f.chain(&m.facts))
	var jcs []byte
	for i := range m.segments {
		s := &m.segments[i]
		jcs = segments.AppendKindJCS(jcs[:0], s.Kind)
		nodes = append(nodes, f.segment(nil, s, s.Digest(), string(jcs)))
	}
	for i := range m.attempts {
		nodes = append(nodes, f.attempt(&m.attempts[i]))
	}
	for kind, key := range m.preimages() {
		nodes = append(nodes, f.preimage(kind, key, m.texts[kind][key]))
	}
	if m.intake != nil {
		nodes = append(nodes, f.intake(m.intake))
	}
	for i := range m.rejected {
		nodes = append(nodes, f.rejected(&m.rejected[i]))
	}
	return nodes
}
