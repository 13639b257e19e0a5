package engine

import (
	"errors"
	"slices"
	"strings"
)

// Claim is one sentence of an answer and the records it rests on.
type Claim struct {
	Text    string
	Support []*Record // not empty
}

// Route says how a question was understood.
type Route struct {
	Kind   string
	Reason string // one line for people; sealed
}

// Answer is what a domain makes of a question: claims, or a refusal.
type Answer struct {
	Route   Route
	Claims  []Claim
	Refusal string   // when there are no claims; "": the default text
	Ranking *Ranking // set when Claims are the hits of this ranking, one each
}

// DefaultRefusal is the refusal of an answer that gives no other.
const DefaultRefusal = "I don't have enough evidence to answer that."

// Opinion is what one grammar says of a claim.
type Opinion int8

// The opinions. The first grammar that has one decides.
const (
	NoOpinion Opinion = iota
	Supported
	Unsupported
)

// Grammar decides claims of one shape.
type Grammar struct {
	ID string // dotted identifier, sealed in engine.claim_shapes

	// WholeGraph says that the verdict depends on more of the graph than the
	// records that the claim cites, so that it means nothing when nodes are
	// withheld.
	WholeGraph bool

	// Judge must not keep or change its arguments. An error says that the
	// evidence cannot be evaluated at all, such as an amount that is no number.
	Judge func(*Claim, *Graph) (Opinion, error)
}

// ErrNoSupport says that a claim cites no evidence.
var ErrNoSupport = errors.New("a claim cites no evidence record")

// ruling is a grammar's final word on a claim.
type ruling struct {
	supported  bool
	wholeGraph bool
}

// judge asks the domain's grammars in order, then the two that every domain
// has (Tessera trust bundle format, appendix B).
func (d *Domain) judge(c *Claim, g *Graph) (ruling, error) {
	if len(c.Support) == 0 {
		return ruling{}, ErrNoSupport
	}
	for i := range d.Grammars {
		opinion, err := d.Grammars[i].Judge(c, g)
		if err != nil || opinion != NoOpinion {
			return ruling{opinion == Supported, d.Grammars[i].WholeGraph}, err
		}
	}
	if opinion := sharedFragment(c); opinion != NoOpinion {
		return ruling{supported: opinion == Supported}, nil
	}
	return ruling{supported: contained(c)}, nil
}

// contained says that the normalized claim is part of a supporting text.
func contained(c *Claim) bool {
	want := Normalize(c.Text)
	return want != "" && slices.ContainsFunc(c.Support, func(r *Record) bool {
		return strings.Contains(Normalize(r.Text), want)
	})
}

// sharedFragment owns claims of the form `… "F" appears in T`, where neither F
// nor T has a double quote: the sources named in T in single quotes, two at
// least, must be those of the support, and F part of every supporting text.
func sharedFragment(c *Claim) Opinion {
	last := strings.LastIndexByte(c.Text, '"')
	if last < 0 {
		return NoOpinion
	}
	first := strings.LastIndexByte(c.Text[:last], '"')
	tail, ok := strings.CutPrefix(c.Text[last+1:], " appears in ")
	if first < 0 || first+1 == last || !ok || tail == "" {
		return NoOpinion
	}
	fragment := Normalize(c.Text[first+1 : last])
	named := quoted(tail)
	if len(c.Support) < 2 || len(named) < 2 || fragment == "" || !slices.Equal(named, sources(c.Support)) {
		return Unsupported
	}
	for _, r := range c.Support {
		if !strings.Contains(Normalize(r.Text), fragment) {
			return Unsupported
		}
	}
	return Supported
}

// quoted returns the distinct texts in single quotes, sorted. An empty pair of
// quotes names nothing, and its second quote may open the next.
func quoted(s string) []string {
	var out []string
	for {
		open := strings.IndexByte(s, '\'')
		if open < 0 {
			break
		}
		s = s[open+1:]
		end := strings.IndexByte(s, '\'')
		if end < 0 {
			break
		}
		if end > 0 {
			out = append(out, s[:end])
			s = s[end+1:]
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// sources returns the distinct sources of records, sorted.
func sources(records []*Record) []string {
	out := make([]string, len(records))
	for i, r := range records {
		out[i] = r.Source
	}
	slices.Sort(out)
	return slices.Compact(out)
}
