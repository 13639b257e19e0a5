package engine

import (
	"slices"
	"strings"

	"github.com/chaind/chaind/bundle"
)

// Record is one piece of evidence and where it came from.
type Record struct {
	ID         string // unique in a graph, where it is the id of the node
	Source     string // origin, for instance a file
	Locator    Locator
	IngestedAt string // date or marker of the snapshot; not a clock
	Text       string
}

// Locator says where in its source a record stands.
type Locator struct {
	Kind  string // "table-row", "doc-span", "bundle-claim", …
	Parts []Pair // label and value, in order
}

// Pair is a label or key and its value.
type Pair [2]string

// Render is the text shown for a locator: label and value of each part.
func (l *Locator) Render() string {
	var b strings.Builder
	for i, p := range l.Parts {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(p[0] + " " + p[1])
	}
	return b.String()
}

// Part returns the value of the last part with a label; false: there is none.
func (l *Locator) Part(label string) (string, bool) {
	for i := len(l.Parts) - 1; i >= 0; i-- {
		if l.Parts[i][0] == label {
			return l.Parts[i][1], true
		}
	}
	return "", false
}

// equal compares texts first by length, so that many short records cost nothing
// beside a long one.
func (r *Record) equal(o *Record) bool {
	return r.ID == o.ID && r.Source == o.Source && r.IngestedAt == o.IngestedAt && r.Text == o.Text &&
		r.Locator.Kind == o.Locator.Kind && slices.Equal(r.Locator.Parts, o.Locator.Parts)
}

// Node is a record with its place in the graph.
type Node struct {
	Record
	Kind       string
	Name       string
	Named      bool   // false: the name is null, and Name is ""
	Attributes []Pair // in order; a key may repeat
}

// Attr returns the value of the first attribute with a key; false: there is none.
func (n *Node) Attr(key string) (string, bool) {
	for i := range n.Attributes {
		if n.Attributes[i][0] == key {
			return n.Attributes[i][1], true
		}
	}
	return "", false
}

// Edge is a relation from one node to another.
type Edge struct {
	Src, Dst string // record ids
	Relation string
}

// Number is the canonical text of a JSON number, as package bundle has it.
type Number string

// NumberOf is the text of a finite double: 1 is "1.0".
func NumberOf(f float64) Number { return Number(bundle.AppendFloat(nil, f)) }

// Resolution says that two nodes are the same entity.
type Resolution struct {
	NodeA, NodeB      string // record ids
	Score, Confidence Number
	Reason            string
}

// Mention says that a document chunk speaks of a node.
type Mention struct {
	Chunk, Node string // record ids
	Confidence  Number
	Reason      string
}

// Append appends the canonical bytes of a kb record.
func (r *Record) Append(dst []byte) []byte {
	dst = append(dst, `{"id":`...)
	dst = bundle.AppendString(dst, r.ID)
	dst = append(dst, `,"origin":{"ingested_at":`...)
	dst = bundle.AppendString(dst, r.IngestedAt)
	dst = append(dst, `,"locator":{"kind":`...)
	dst = bundle.AppendString(dst, r.Locator.Kind)
	dst = append(dst, `,"parts":`...)
	dst = appendPairs(dst, r.Locator.Parts)
	dst = append(dst, `},"source":`...)
	dst = bundle.AppendString(dst, r.Source)
	dst = append(dst, `},"text":`...)
	dst = bundle.AppendString(dst, r.Text)
	return append(dst, '}')
}

func appendPairs(dst []byte, pairs []Pair) []byte {
	dst = append(dst, '[')
	for i := range pairs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '[')
		dst = bundle.AppendString(dst, pairs[i][0])
		dst = append(dst, ',')
		dst = bundle.AppendString(dst, pairs[i][1])
		dst = append(dst, ']')
	}
	return append(dst, ']')
}

// Append appends the canonical bytes of a node.
func (n *Node) Append(dst []byte) []byte {
	dst = append(dst, `{"attributes":`...)
	dst = appendPairs(dst, n.Attributes)
	dst = append(dst, `,"kind":`...)
	dst = bundle.AppendString(dst, n.Kind)
	dst = append(dst, `,"name":`...)
	if n.Named {
		dst = bundle.AppendString(dst, n.Name)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"record":`...)
	dst = n.Record.Append(dst)
	return append(dst, '}')
}

// Append appends the canonical bytes of an edge.
func (e *Edge) Append(dst []byte) []byte {
	dst = append(dst, `{"dst":`...)
	dst = bundle.AppendString(dst, e.Dst)
	dst = append(dst, `,"relation":`...)
	dst = bundle.AppendString(dst, e.Relation)
	dst = append(dst, `,"src":`...)
	dst = bundle.AppendString(dst, e.Src)
	return append(dst, '}')
}

// Append appends the canonical bytes of a resolution.
func (r *Resolution) Append(dst []byte) []byte {
	dst = append(dst, `{"confidence":`...)
	dst = append(dst, r.Confidence...)
	dst = append(dst, `,"node_a":`...)
	dst = bundle.AppendString(dst, r.NodeA)
	dst = append(dst, `,"node_b":`...)
	dst = bundle.AppendString(dst, r.NodeB)
	dst = append(dst, `,"reason":`...)
	dst = bundle.AppendString(dst, r.Reason)
	dst = append(dst, `,"score":`...)
	dst = append(dst, r.Score...)
	return append(dst, '}')
}

// Append appends the canonical bytes of a mention.
func (m *Mention) Append(dst []byte) []byte {
	dst = append(dst, `{"chunk":`...)
	dst = bundle.AppendString(dst, m.Chunk)
	dst = append(dst, `,"confidence":`...)
	dst = append(dst, m.Confidence...)
	dst = append(dst, `,"node":`...)
	dst = bundle.AppendString(dst, m.Node)
	dst = append(dst, `,"reason":`...)
	dst = bundle.AppendString(dst, m.Reason)
	return append(dst, '}')
}
