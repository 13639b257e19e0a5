package engine

import (
	"iter"
	"sync"
	"unicode/utf8"
)

// Graph is the evidence of a decision. The order of all its lists means
// something and is that of the file. It must not change once NewGraph has
// seen it; then it is safe for concurrent use.
type Graph struct {
	Nodes       []Node
	Edges       []Edge
	Resolutions []Resolution
	Mentions    []Mention

	byID     map[string]int32 // position of the node with an id
	links    func() *links    // built at first use
	entities func() *Entities
	derived  sync.Map // of Derived
}

// NewGraph takes over the lists. Of two nodes with one id the first is found.
func NewGraph(nodes []Node, edges []Edge, resolutions []Resolution, mentions []Mention) *Graph {
	g := &Graph{Nodes: nodes, Edges: edges, Resolutions: resolutions, Mentions: mentions}
	g.byID = make(map[string]int32, len(nodes))
	for i := range nodes {
		if _, taken := g.byID[nodes[i].ID]; !taken {
			g.byID[nodes[i].ID] = int32(i)
		}
	}
	g.links = sync.OnceValue(g.linkUp)
	g.entities = sync.OnceValue(g.resolve)
	return g
}

// Node returns the node with an id; nil: there is none.
func (g *Graph) Node(id string) *Node {
	if i, ok := g.byID[id]; ok {
		return &g.Nodes[i]
	}
	return nil
}

// Position returns the place of a node in Nodes; false: no such node.
func (g *Graph) Position(id string) (int, bool) {
	i, ok := g.byID[id]
	return int(i), ok
}

// From yields the edges that start at an id, in file order.
func (g *Graph) From(id string) iter.Seq[*Edge] {
	return func(yield func(*Edge) bool) {
		for _, i := range g.links().from[id] {
			if !yield(&g.Edges[i]) {
				return
			}
		}
	}
}

// To yields the edges that end at an id, in file order.
func (g *Graph) To(id string) iter.Seq[*Edge] {
	return func(yield func(*Edge) bool) {
		for _, i := range g.links().to[id] {
			if !yield(&g.Edges[i]) {
				return
			}
		}
	}
}

// MentionsOf yields the mentions of a node, in file order.
func (g *Graph) MentionsOf(id string) iter.Seq[*Mention] {
	return func(yield func(*Mention) bool) {
		for _, i := range g.links().mentions[id] {
			if !yield(&g.Mentions[i]) {
				return
			}
		}
	}
}

// links holds positions of edges and mentions by the ids at their ends.
type links struct {
	from, to, mentions map[string][]int32
}

func (g *Graph) linkUp() *links {
	l := &links{}
	l.from = index(len(g.Edges), func(i int) string { return g.Edges[i].Src })
	l.to = index(len(g.Edges), func(i int) string { return g.Edges[i].Dst })
	l.mentions = index(len(g.Mentions), func(i int) string { return g.Mentions[i].Node })
	return l
}

// index groups the positions 0 to n-1 by key, in one array.
func index(n int, key func(int) string) map[string][]int32 {
	counts := map[string]int32{}
	for i := range n {
		counts[key(i)]++
	}
	all := make([]int32, n)
	out := make(map[string][]int32, len(counts))
	next := int32(0)
	for i := range n {
		k := key(i)
		list, ok := out[k]
		if !ok {
			size := counts[k]
			list = all[next : next : next+size]
			next += size
		}
		out[k] = append(list, int32(i))
	}
	return out
}

// Derived returns what derive makes of a graph, and makes it once for each
// type T: an index that a domain's router and grammars share, say. It must
// depend on the graph alone and not change afterwards.
func Derived[T any](g *Graph, derive func(*Graph) *T) *T {
	once, _ := g.derived.LoadOrStore((*T)(nil), sync.OnceValue(func() *T { return derive(g) }))
	return once.(func() *T)()
}

// DisplayName is the name by which answers speak of an entity: of its members'
// names the one with the most characters, of those the last in order; "" when
// no member has a name.
func (g *Graph) DisplayName(entity int) string {
	best, length := "", 0
	for _, i := range g.Entities().Members[entity] {
		name := g.Nodes[i].Name
		n := utf8.RuneCountInString(name)
		if n > length || n == length && name > best {
			best, length = name, n
		}
	}
	return best
}

// Entities groups nodes that resolutions say are the same.
type Entities struct {
	Members [][]int32 // positions of nodes in node order; ordered by first member
	of      []int32   // entity of each node
}

// Entities returns the connected components of the resolutions; a node that
// no resolution names is one of its own. Ends that are no nodes are ignored.
func (g *Graph) Entities() *Entities { return g.entities() }

// Of returns the entity of the node at a position.
func (e *Entities) Of(position int) int { return int(e.of[position]) }

func (g *Graph) resolve() *Entities {
	parent := make([]int32, len(g.Nodes))
	for i := range parent {
		parent[i] = int32(i)
	}
	for i := range g.Resolutions {
		a, okA := g.byID[g.Resolutions[i].NodeA]
		b, okB := g.byID[g.Resolutions[i].NodeB]
		if !okA || !okB {
			continue
		}
		a, b = rootOf(parent, a), rootOf(parent, b)
		parent[max(a, b)] = min(a, b) // so that a root is its component's first node
	}
	e := &Entities{of: make([]int32, len(g.Nodes))}
	for i := range parent {
		root := rootOf(parent, int32(i))
		if root == int32(i) {
			e.of[i] = int32(len(e.Members))
			e.Members = append(e.Members, nil)
		}
		e.of[i] = e.of[root]
		e.Members[e.of[i]] = append(e.Members[e.of[i]], int32(i))
	}
	return e
}

// rootOf finds the representative of a node and halves the path to it.
func rootOf(parent []int32, i int32) int32 {
	for parent[i] != i {
		parent[i] = parent[parent[i]]
		i = parent[i]
	}
	return i
}
