package bundle

import (
	"fmt"
	"slices"
	"strings"
)

// leafBuilder computes the leaves of a bundle in the order in which the
// format reads its sections, and keeps the first fault.
type leafBuilder struct {
	stored []leaf // sorted: commitments of withheld items
	leaves []leaf
	hash   *hasher
	err    error
}

// leaves recomputes the manifest, sorted by name.
func (b *Bundle) leaves(stored []leaf) ([]leaf, error) {
	lb := &leafBuilder{stored: stored, hash: newHasher()}
	graph := b.Closure.Get("graph")
	lb.fail(needObject(graph, "evidence_closure.graph"))
	lb.section("format", b.Format)
	lb.section("engine", b.Engine)
	lb.maybeWithheld("result", b.Result)
	lb.section("action", b.Action)
	lb.section("closure.kind", b.Closure.Get("kind"))
	lb.maybeWithheld("kb", b.Closure.Get("kb"))
	if graph.Withheld() {
		lb.withheldGraph()
	} else {
		lb.graph(graph)
	}
	if kind := b.Closure.Get("kind"); kind.Kind() == String && kind.Text() == KindChain {
		lb.upstreams(b.Upstream())
	}
	if lb.err != nil {
		return nil, lb.err
	}
	slices.SortFunc(lb.leaves, compareName)
	return lb.leaves, nil
}

func (lb *leafBuilder) fail(err error) {
	if lb.err == nil {
		lb.err = err
	}
}

func (lb *leafBuilder) add(name, digest string) {
	lb.leaves = append(lb.leaves, leaf{name, digest})
}

// section adds the leaf of a section that cannot be withheld.
func (lb *leafBuilder) section(name string, v Value) {
	if v.Kind() == Absent {
		lb.fail(faultf(MissingMember, name, "the section is missing"))
		return
	}
	lb.add(name, v.digest(lb.hash))
}

// maybeWithheld adds the leaf of a section, or its commitment.
func (lb *leafBuilder) maybeWithheld(name string, v Value) {
	if v.Withheld() {
		lb.commitment(name)
		return
	}
	lb.section(name, v)
}

func (lb *leafBuilder) commitment(name string) {
	digest, ok := findLeaf(lb.stored, name)
	if !ok {
		lb.fail(faultf(NoCommitment, name, "withheld, but the manifest has no leaf for it"))
		return
	}
	lb.add(name, digest)
}

func (lb *leafBuilder) withheldGraph() {
	for _, name := range []string{"graph.edges", "graph.mentions", "graph.resolutions"} {
		lb.commitment(name)
	}
	for _, l := range lb.stored {
		if strings.HasPrefix(l.name, "node:") {
			lb.leaves = append(lb.leaves, l)
		}
	}
}

func (lb *leafBuilder) graph(graph Value) {
	for _, name := range []string{"edges", "resolutions", "mentions"} {
		lb.maybeWithheld("graph."+name, graph.Get(name))
	}
	nodes := graph.Get("nodes")
	lb.fail(need(nodes, Array, "nodes"))
	first := len(lb.leaves)
	for i, node := range nodes.Items() {
		lb.node(i, node)
		if lb.err != nil {
			return
		}
	}
	if name, ok := repeatedName(lb.leaves[first:]); ok {
		lb.fail(faultf(DuplicateNode, "nodes", "two nodes have the id %s", Quote(strings.TrimPrefix(name, "node:"))))
	}
}

func (lb *leafBuilder) node(i int, node Value) {
	if node.Kind() != Object {
		lb.fail(need(node, Object, fmt.Sprintf("nodes[%d]", i)))
		return
	}
	record := node.Get("record")
	if record.Kind() != Object {
		lb.fail(need(record, Object, fmt.Sprintf("nodes[%d].record", i)))
		return
	}
	id := record.Get("id")
	if id.Kind() != String {
		lb.fail(need(id, String, fmt.Sprintf("nodes[%d].record.id", i)))
		return
	}
	lb.maybeWithheld("node:"+id.Text(), node)
}

func (lb *leafBuilder) upstreams(list Value) {
	lb.fail(need(list, Array, "evidence_closure.upstream"))
	first := len(lb.leaves)
	for i, up := range list.Items() {
		path := fmt.Sprintf("upstream[%d]", i)
		integrity := up.Get("integrity")
		root := integrity.Get("root")
		lb.fail(need(up, Object, path))
		lb.fail(need(integrity, Object, path+".integrity"))
		lb.fail(need(root, String, path+".integrity.root"))
		if lb.err != nil {
			return
		}
		lb.add("upstream:"+root.Text(), up.digest(lb.hash))
	}
	if name, ok := repeatedName(lb.leaves[first:]); ok {
		lb.fail(faultf(DuplicateUpstream, "evidence_closure.upstream", "the bundle %s is embedded twice", Quote(strings.TrimPrefix(name, "upstream:"))))
	}
}

// repeatedName sorts the leaves and finds a name that occurs twice.
func repeatedName(leaves []leaf) (string, bool) {
	slices.SortFunc(leaves, compareName)
	for i := 1; i < len(leaves); i++ {
		if leaves[i].name == leaves[i-1].name {
			return leaves[i].name, true
		}
	}
	return "", false
}
