package devex

import (
	"slices"
	"strings"

	"github.com/chaind/chaind/engine"
)

// causeOf tells why a run failed: the run, its error chunks, and, by the line
// that characterizes the failure, earlier runs, tickets, and what fixed it.
func causeOf(name string, g *engine.Graph) *answer {
	run := g.Node(runPrefix + name)
	if run == nil {
		return refuse("There is no run %s in the knowledge graph.", name)
	}
	if status, _ := run.Attr("status"); status != "failed" {
		return refuse("Run %s did not fail — it passed. There is no failure to explain.", name)
	}
	a := &answer{}
	a.quote(run)
	chunks := errorChunks(g, run)
	a.quote(chunks...)
	line, anchor := signature(chunks)
	if anchor == nil {
		return a
	}
	if before := earlier(g, run, line); len(before) > 0 {
		a.share("Recurring failure", line, append([]*engine.Node{anchor}, before...)...)
	}
	for _, ticket := range ticketsWith(g, line) {
		a.share("Documented incident", line, anchor, ticket)
		a.quote(ticket)
		a.fixes(g, ticket)
	}
	return a
}

// fixes tells which pull requests a ticket motivated, and what they change.
func (a *answer) fixes(g *engine.Graph, ticket *engine.Node) {
	name := strings.TrimPrefix(ticket.ID, ticketPrefix)
	for _, pr := range sourcesOf(g, ticket.ID, motivatedBy) {
		a.share("Resolved by", name, ticket, pr)
		a.quote(pr)
		if a.tooLong {
			return
		}
		a.quote(sourcesOf(g, pr.ID, diffOf)...)
	}
}

func errorChunks(g *engine.Graph, run *engine.Node) []*engine.Node {
	return slices.DeleteFunc(sourcesOf(g, run.ID, logOf), func(n *engine.Node) bool {
		return !strings.Contains(n.Text, "ERROR") && !strings.Contains(n.Text, actionsMark)
	})
}

// signature is the first error line by which others can be found, and its
// chunk: one that is more than an exit code, if there is one. Nil: none.
func signature(chunks []*engine.Node) (string, *engine.Node) {
	var trailer string
	var trailerChunk *engine.Node
	for _, chunk := range chunks {
		for _, line := range append(namedErrors(chunk.Text), actionsErrors(chunk.Text)...) {
			if strings.Contains(line, `"`) || engine.Normalize(line) == "" {
				continue // it could not be quoted in a claim that verifies
			}
			if !isTrailer(line) {
				return line, chunk
			}
			if trailerChunk == nil {
				trailer, trailerChunk = line, chunk
			}
		}
	}
	return trailer, trailerChunk
}

// earlier are the chunks with a line in the logs of runs that started before.
func earlier(g *engine.Graph, run *engine.Node, line string) []*engine.Node {
	started, _ := run.Attr("started")
	var out []*engine.Node
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Kind != documentKind || !strings.Contains(n.Text, line) {
			continue
		}
		owner := runOf(g, n)
		if owner == nil || owner.ID == run.ID {
			continue
		}
		if ownerStarted, _ := owner.Attr("started"); ownerStarted < started {
			out = append(out, n)
		}
	}
	slices.SortStableFunc(out, byID)
	return out
}

// runOf is the run to whose log a chunk belongs; nil: none.
func runOf(g *engine.Graph, chunk *engine.Node) *engine.Node {
	for e := range g.From(chunk.ID) {
		if e.Relation == logOf {
			return g.Node(e.Dst)
		}
	}
	return nil
}

func ticketsWith(g *engine.Graph, line string) []*engine.Node {
	var out []*engine.Node
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Kind == ticketKind && strings.Contains(n.Text, line) {
			out = append(out, n)
		}
	}
	slices.SortStableFunc(out, byID)
	return out
}

// summaryOf tells what a pull request changes, and which tickets asked for it.
func summaryOf(name string, g *engine.Graph) *answer {
	pr := g.Node(prPrefix + name)
	if pr == nil {
		return refuse("There is no pull request %s in the knowledge graph.", name)
	}
	a := &answer{}
	a.quote(pr)
	a.quote(sourcesOf(g, pr.ID, diffOf)...)
	var tickets []*engine.Node
	for e := range g.From(pr.ID) {
		if n := g.Node(e.Dst); n != nil && e.Relation == motivatedBy {
			tickets = append(tickets, n)
		}
	}
	slices.SortStableFunc(tickets, byID)
	for _, ticket := range tickets {
		a.share("Motivating ticket", strings.TrimPrefix(ticket.ID, ticketPrefix), pr, ticket)
		a.quote(ticket)
	}
	return a
}
