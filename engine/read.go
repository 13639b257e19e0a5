package engine

import (
	"fmt"
	"strconv"

	"github.com/chaind/chaind/bundle"
)

// reader decodes typed members of values and keeps the first fault. Paths are
// made only when there is one.
type reader struct {
	fault *bundle.FormatError
}

// under puts a path in front of the fault that f meets, if it is the first.
func (r *reader) under(path func() string, f func()) {
	if r.fault != nil {
		return
	}
	f()
	if r.fault != nil {
		r.fault.Where = joinPath(path(), r.fault.Where)
	}
}

func joinPath(a, b string) string {
	switch {
	case b == "":
		return a
	case b[0] == '[':
		return a + b
	}
	return a + "." + b
}

// member demands a member of a kind; with orNull, null is returned too.
func (r *reader) member(v bundle.Value, name string, kind bundle.Kind, orNull bool) bundle.Value {
	m := v.Get(name)
	switch m.Kind() {
	case kind:
	case bundle.Absent:
		r.fail(bundle.MissingMember, name, "missing")
	case bundle.Null:
		if !orNull {
			r.fail(bundle.WrongType, name, fmt.Sprintf("want %s, got null", kind))
		}
	default:
		r.fail(bundle.WrongType, name, fmt.Sprintf("want %s, got %s", kind, m.Kind()))
	}
	return m
}

func (r *reader) fail(code Code, where, detail string) {
	if r.fault == nil {
		r.fault = &bundle.FormatError{Code: code, Where: where, Detail: detail}
	}
}

func (r *reader) text(v bundle.Value, name string) string {
	return r.member(v, name, bundle.String, false).Text()
}

func (r *reader) object(v bundle.Value, name string) bundle.Value {
	return r.member(v, name, bundle.Object, false)
}

func (r *reader) array(v bundle.Value, name string) bundle.Value {
	return r.member(v, name, bundle.Array, false)
}

func (r *reader) boolean(v bundle.Value, name string) bool {
	return r.member(v, name, bundle.Bool, false).True()
}

// number demands a number in the range of a double.
func (r *reader) number(v bundle.Value, name string) Number {
	token := r.member(v, name, bundle.Number, false).Text()
	if _, err := strconv.ParseFloat(token, 64); r.fault == nil && err != nil {
		r.fail(bundle.NumberForm, name, "the number is beyond the range of a double")
	}
	return Number(token)
}

// isObject demands that an item of a list is an object.
func (r *reader) isObject(v bundle.Value) {
	if v.Kind() != bundle.Object {
		r.fail(bundle.WrongType, "", fmt.Sprintf("want an object, got %s", v.Kind()))
	}
}

func (r *reader) pairs(v bundle.Value, name string) []Pair {
	list := r.array(v, name)
	if r.fault != nil {
		return nil
	}
	out := make([]Pair, 0, list.Len())
	for i, item := range list.Items() {
		var p Pair
		n := 0
		for j, text := range item.Items() {
			if j < 2 && text.Kind() == bundle.String {
				p[j] = text.Text()
				n++
			}
		}
		if n != 2 || item.Len() != 2 {
			r.fail(bundle.WrongType, fmt.Sprintf("%s[%d]", name, i), "want a pair of strings")
			return nil
		}
		out = append(out, p)
	}
	return out
}

// each reads the items of a list into a slice.
func each[T any](r *reader, list bundle.Value, name string, read func(bundle.Value) T) []T {
	if r.fault != nil {
		return nil
	}
	out := make([]T, 0, list.Len())
	for i, item := range list.Items() {
		r.under(func() string { return fmt.Sprintf("%s[%d]", name, i) }, func() {
			r.isObject(item)
			out = append(out, read(item))
		})
		if r.fault != nil {
			return nil
		}
	}
	return out
}

func (r *reader) record(v bundle.Value) Record {
	out := Record{ID: r.text(v, "id")}
	origin := r.object(v, "origin")
	out.Text = r.text(v, "text")
	r.under(func() string { return "origin" }, func() {
		out.Source = r.text(origin, "source")
		r.locator(origin, &out)
		out.IngestedAt = r.text(origin, "ingested_at")
	})
	return out
}

func (r *reader) locator(v bundle.Value, out *Record) {
	locator := r.object(v, "locator")
	r.under(func() string { return "locator" }, func() {
		out.Locator.Kind = r.text(locator, "kind")
		out.Locator.Parts = r.pairs(locator, "parts")
	})
}

func (r *reader) node(v bundle.Value) Node {
	record := r.object(v, "record")
	n := Node{Kind: r.text(v, "kind")}
	name := r.member(v, "name", bundle.String, true)
	n.Name, n.Named = name.Text(), name.Kind() == bundle.String
	n.Attributes = r.pairs(v, "attributes")
	r.under(func() string { return "record" }, func() { n.Record = r.record(record) })
	return n
}

func (r *reader) edge(v bundle.Value) Edge {
	return Edge{Src: r.text(v, "src"), Dst: r.text(v, "dst"), Relation: r.text(v, "relation")}
}

func (r *reader) resolution(v bundle.Value) Resolution {
	return Resolution{
		NodeA: r.text(v, "node_a"), NodeB: r.text(v, "node_b"),
		Score: r.number(v, "score"), Confidence: r.number(v, "confidence"), Reason: r.text(v, "reason"),
	}
}

func (r *reader) mention(v bundle.Value) Mention {
	return Mention{
		Chunk: r.text(v, "chunk"), Node: r.text(v, "node"),
		Confidence: r.number(v, "confidence"), Reason: r.text(v, "reason"),
	}
}

// ReadDecision decodes a result section. Extra members are ignored. The error
// is a *bundle.FormatError.
func ReadDecision(v bundle.Value) (*Decision, error) {
	r := &reader{}
	d := &Decision{}
	r.under(func() string { return "result" }, func() { r.decision(v, d) })
	if r.fault != nil {
		return nil, r.fault
	}
	return d, nil
}

func (r *reader) decision(v bundle.Value, d *Decision) {
	r.isObject(v)
	route := r.object(v, "route")
	d.Domain = r.text(v, "domain")
	d.Question = r.text(v, "question")
	r.under(func() string { return "route" }, func() {
		d.Route = Route{Kind: r.text(route, "kind"), Reason: r.text(route, "reason")}
	})
	d.Grounded = r.boolean(v, "grounded")
	d.Refused = r.boolean(v, "refused")
	refusal := r.member(v, "refusal", bundle.String, true)
	d.Refusal, d.HasRefusal = refusal.Text(), refusal.Kind() == bundle.String
	d.Claims = each(r, r.array(v, "claims"), "claims", r.claim)
}

func (r *reader) claim(v bundle.Value) RecordedClaim {
	c := RecordedClaim{Text: r.text(v, "text"), Verified: r.boolean(v, "verified")}
	c.Support = each(r, r.array(v, "support"), "support", r.evidence)
	return c
}

func (r *reader) evidence(v bundle.Value) *Record {
	out := &Record{}
	r.locator(v, out)
	out.ID = r.text(v, "id")
	out.Source = r.text(v, "source")
	out.IngestedAt = r.text(v, "ingested_at")
	out.Text = r.text(v, "text")
	return out
}

// Closure is the evidence of a bundle as far as it is not withheld.
type Closure struct {
	Graph    *Graph
	KB       []Record
	Withheld map[string]bool // ids of withheld nodes
	Partial  bool            // a node, the kb or the graph is withheld
}

// ReadClosure decodes the evidence closure. Withheld nodes are left out, a
// withheld kb is empty. The error is a *bundle.FormatError.
func ReadClosure(b *bundle.Bundle) (*Closure, error) {
	r := &reader{}
	c := &Closure{Withheld: map[string]bool{}}
	r.under(func() string { return "evidence_closure" }, func() { r.closure(b, c) })
	if r.fault != nil {
		return nil, r.fault
	}
	return c, nil
}

func (r *reader) closure(b *bundle.Bundle, c *Closure) {
	graph := r.object(b.Closure, "graph")
	kb := r.object(b.Closure, "kb")
	r.under(func() string { return "graph" }, func() { c.Graph = r.graph(graph, c.Withheld) })
	c.Partial = len(c.Withheld) > 0 || kb.Withheld()
	if kb.Withheld() {
		return
	}
	r.under(func() string { return "kb" }, func() { c.KB = each(r, r.array(kb, "records"), "records", r.record) })
}

func (r *reader) graph(v bundle.Value, withheld map[string]bool) *Graph {
	list := r.array(v, "nodes")
	var nodes []Node
	if r.fault == nil {
		nodes = make([]Node, 0, list.Len())
	}
	for i, item := range list.Items() {
		if item.Withheld() {
			withheld[item.Get("record").Get("id").Text()] = true
			continue
		}
		r.under(func() string { return fmt.Sprintf("nodes[%d]", i) }, func() {
			r.isObject(item)
			nodes = append(nodes, r.node(item))
		})
	}
	edges := each(r, r.array(v, "edges"), "edges", r.edge)
	resolutions := each(r, r.array(v, "resolutions"), "resolutions", r.resolution)
	mentions := each(r, r.array(v, "mentions"), "mentions", r.mention)
	if r.fault != nil {
		return nil
	}
	return NewGraph(nodes, edges, resolutions, mentions)
}
