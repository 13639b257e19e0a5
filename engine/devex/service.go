package devex

import (
	"cmp"
	"slices"
	"strings"

	"github.com/chaind/chaind/engine"
)

// findServices are the entities with the longest name or alias in a question;
// several: it is ambiguous, none: it names no service.
func findServices(question string, g *engine.Graph) []int {
	q := engine.Normalize(question)
	best := 0
	var out []int
	consider := func(needle string, entity int) {
		needle = engine.Normalize(needle)
		n := len(needle)
		if n == 0 || n < best || !strings.Contains(q, needle) {
			return
		}
		if n > best {
			best, out = n, out[:0]
		}
		out = append(out, entity)
	}
	entities := g.Entities()
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Name == "" {
			continue
		}
		consider(n.Name, entities.Of(i))
		for _, attribute := range n.Attributes {
			if attribute[0] == "alias" {
				consider(attribute[1], entities.Of(i))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ownersOf tells everything that the catalog has of a service: components
// first, then owners.
func ownersOf(entities []int, g *engine.Graph) *answer {
	if len(entities) > 1 {
		names := make([]string, len(entities))
		for i, e := range entities {
			names[i] = g.DisplayName(e)
		}
		slices.Sort(names)
		return refuse("Ambiguous service reference — it could mean: '%s'.", strings.Join(names, "', '"))
	}
	var members []*engine.Node
	for _, i := range g.Entities().Members[entities[0]] {
		members = append(members, &g.Nodes[i])
	}
	slices.SortStableFunc(members, func(x, y *engine.Node) int {
		return cmp.Or(cmp.Compare(catalogRank(x), catalogRank(y)), byID(x, y))
	})
	a := &answer{}
	a.quote(members...)
	return a
}

func catalogRank(n *engine.Node) int {
	switch n.Kind {
	case "Component":
		return 0
	case "Owner":
		return 1
	}
	return 2
}
