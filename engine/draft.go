package engine

import (
	"errors"
	"fmt"
	"iter"

	"github.com/chaind/chaind/bundle"
)

// ErrNoEvidence says that there is not one node, so that nothing could ever be
// re-derived.
var ErrNoEvidence = errors.New("there is no evidence to seal")

// NewDraft answers a question and prepares the bundle that seals question,
// evidence and answer. The sequences of the draft read g and kb. It fails with
// ErrNoEvidence for a graph without nodes, and with whatever the domain's
// router or grammars fail with.
func NewDraft(d *Domain, question string, g *Graph, kb []Record) (*bundle.Draft, *Decision, error) {
	if len(g.Nodes) == 0 {
		return nil, nil, ErrNoEvidence
	}
	decision, err := d.Decide(question, g, kb)
	if err != nil {
		return nil, nil, fmt.Errorf("answer question: %w", err)
	}
	return draft(d, decision, g, kb), decision, nil
}

func draft(d *Domain, decision *Decision, g *Graph, kb []Record) *bundle.Draft {
	return &bundle.Draft{
		Engine:      d.appendEngine(nil),
		Result:      decision.Append(nil),
		Kind:        bundle.KindFull,
		Nodes:       nodeSeq(g.Nodes),
		Edges:       itemSeq(g.Edges, (*Edge).Append),
		Mentions:    itemSeq(g.Mentions, (*Mention).Append),
		Resolutions: itemSeq(g.Resolutions, (*Resolution).Append),
		Records:     itemSeq(kb, (*Record).Append),
	}
}

// appendEngine appends the canonical engine section.
func (d *Domain) appendEngine(dst []byte) []byte {
	dst = append(dst, `{"claim_shapes":[`...)
	for i := range d.Grammars {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = bundle.AppendString(dst, d.Grammars[i].ID)
	}
	dst = append(dst, `],"domain":`...)
	dst = bundle.AppendString(dst, d.Name)
	dst = append(dst, `,"tessera_version":`...)
	dst = bundle.AppendString(dst, d.Version)
	return append(dst, '}')
}

// itemSeq yields the canonical bytes of each item in one buffer.
func itemSeq[T any](list []T, appendTo func(*T, []byte) []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var buf []byte
		for i := range list {
			buf = appendTo(&list[i], buf[:0])
			if !yield(buf) {
				return
			}
		}
	}
}

func nodeSeq(nodes []Node) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		var buf []byte
		for i := range nodes {
			buf = nodes[i].Append(buf[:0])
			if !yield(nodes[i].ID, buf) {
				return
			}
		}
	}
}
