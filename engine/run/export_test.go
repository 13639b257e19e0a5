package run

import (
	"iter"

	"github.com/chaind/chaind/engine"
)

// Unpack is the chain that a graph packages, for tests that pack it again. It
// fails when the graph has a fault or counts what it does not package.
func Unpack(g *engine.Graph) (*Chain, bool) {
	m := read(g)
	if len(m.faults) > 0 || m.intake != nil && m.intake.rest != nil {
		return nil, false
	}
	c := &Chain{Facts: m.facts, Segments: yielding(m.segments), Attempts: yielding(m.attempts), Rejected: yielding(m.rejected)}
	var texts []Preimage
	for i := range m.segments {
		id, text, ok := m.kept(m.segments[i].Kind)
		if !ok {
			continue
		}
		p := Preimage{Seq: uint64(i)}
		switch g.Node(id).Kind {
		case kindIntent:
			s, ok := jsonString(text)
			if !ok {
				return nil, false
			}
			p.Text = &s
		case kindPlan:
			p.Plan = []byte(text)
		case kindParsed:
			p.Parsed = []byte(text)
		case kindArtifact:
			p.Artifact = []byte(text)
		}
		texts = append(texts, p)
	}
	c.Preimages = yielding(texts)
	return c, true
}

func yielding[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, item := range list {
			if !yield(item, nil) {
				return
			}
		}
	}
}
