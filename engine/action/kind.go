package action

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chaind/chaind/engine"
)

// Kind describes one kind of action.
type Kind struct {
	Name    string
	Domains []string // that have it
	Route   string   // kind of the route that a question must take
	Hint    string   // what a question must name for that, for people
	Subject string   // role of the first claim
	Roles   []Role   // of claims and slots; the first whose prefix fits

	// Title finds the title, and the position of the claim that it is from.
	Title func(claims []engine.RecordedClaim) (title string, claim int, ok bool)

	Method, Path string
	Labels       []string  // of the request; nil: it has none
	Titled       bool      // the request has a title, and needs one
	Resource     *Resource // what Path addresses; nil: nothing that exists
}

// Role is what a field or a slot is for.
type Role struct {
	Name     string
	Label    string   // heading of its section
	Prefixes []string // of the claims that have this role
	Fenced   bool     // the value is a log or code
}

// Resource is the part of a path that names a record.
type Resource struct {
	Placeholder string // in Path
	Prefix      string // of the record's id, not part of its name
}

const (
	titleRole    = "title"
	resourceRole = "resource"
	target       = "github"
)

// roleOf names the role of the claim at a position.
func (k *Kind) roleOf(position int, text string) string {
	if position == 0 {
		return k.Subject
	}
	for i := range k.Roles {
		if slices.ContainsFunc(k.Roles[i].Prefixes, func(p string) bool { return strings.HasPrefix(text, p) }) {
			return k.Roles[i].Name
		}
	}
	return ""
}

func (k *Kind) role(name string) *Role {
	i := slices.IndexFunc(k.Roles, func(r Role) bool { return r.Name == name })
	if i < 0 {
		return &Role{Name: name, Label: name}
	}
	return &k.Roles[i]
}

// Field is a part of a proposal and the evidence for it.
type Field struct {
	Name     string // a role
	Value    string
	Verified bool
	Support  []*engine.Record
}

// Proposal is what an answer offers for an action: fields, or a refusal.
type Proposal struct {
	Kind     *Kind
	Decision *engine.Decision
	Refusal  string // "": it has fields
	Fields   []Field
}

// Draft drafts an action from an answer. A domain, an answer or a route that it
// cannot follow from make it a refusal.
func (k *Kind) Draft(d *engine.Decision) *Proposal {
	p := &Proposal{Kind: k, Decision: d}
	switch {
	case !slices.Contains(k.Domains, d.Domain):
		p.Refusal = fmt.Sprintf("the '%s' action applies to domain(s) %s, not '%s'.", k.Name, strings.Join(k.Domains, ", "), d.Domain)
	case d.Refused:
		p.Refusal = d.Refusal
	case d.Route.Kind != k.Route:
		p.Refusal = fmt.Sprintf("cannot draft a '%s' from this question: it routed to '%s', not '%s' — name %s.", k.Name, d.Route.Kind, k.Route, k.Hint)
	default:
		p.Fields = k.fields(d.Claims)
	}
	return p
}

func (k *Kind) fields(claims []engine.RecordedClaim) []Field {
	var out []Field
	if title, i, ok := k.Title(claims); ok {
		out = append(out, field(titleRole, title, &claims[i]))
	}
	for i := range claims {
		out = append(out, field(k.roleOf(i, claims[i].Text), claims[i].Text, &claims[i]))
	}
	return out
}

func field(name, value string, c *engine.RecordedClaim) Field {
	verified := c.Verified && (value == c.Text || cites(c, value))
	return Field{name, value, verified, c.Support}
}

// cites says that a value is part of what a claim cites.
func cites(c *engine.RecordedClaim, value string) bool {
	texts := make([]string, len(c.Support))
	for i, r := range c.Support {
		texts[i] = r.Text
	}
	value = engine.Normalize(value)
	return value != "" && strings.Contains(engine.Normalize(strings.Join(texts, "\n")), value)
}

// grounded says that there are fields and all are verified.
func (p *Proposal) grounded() bool {
	return len(p.Fields) > 0 && !slices.ContainsFunc(p.Fields, func(f Field) bool { return !f.Verified })
}

// field returns the first field of a role; nil: there is none.
func (p *Proposal) field(name string) *Field {
	i := slices.IndexFunc(p.Fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Fields[i]
}
