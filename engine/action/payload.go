package action

import (
	"fmt"
	"strings"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
)

// Payload is the request that an action would send, or the reason why there is
// none.
type Payload struct {
	Proposal     *Proposal
	Withheld     string // "": there is a request
	Method, Path string
	Body         []byte // canonical object
	Slots        []Slot
}

// Slot is a part of a request and the evidence for it.
type Slot struct {
	Part  string // "title", "path" or "body"
	Label string // heading of the section in a body
	Field
}

// Render makes the request of a proposal.
func (p *Proposal) Render() *Payload {
	out := &Payload{Proposal: p}
	if out.Withheld = p.obstacle(); out.Withheld != "" {
		return out
	}
	out.Method, out.Path = p.Kind.Method, p.Kind.Path
	if p.Kind.Titled {
		out.Slots = append(out.Slots, Slot{Part: "title", Field: *p.field(titleRole)})
	}
	if p.Kind.Resource != nil {
		name, support := p.resource()
		out.Path = strings.ReplaceAll(out.Path, p.Kind.Resource.Placeholder, name)
		slot := Field{resourceRole, name, p.field(p.Kind.Subject).Verified, []*engine.Record{support}}
		out.Slots = append(out.Slots, Slot{Part: "path", Field: slot})
	}
	var sections []string
	for _, f := range p.Fields {
		if f.Name == titleRole && p.Kind.Titled {
			continue
		}
		role := p.Kind.role(f.Name)
		out.Slots = append(out.Slots, Slot{Part: "body", Label: role.Label, Field: f})
		sections = append(sections, section(role, f.Value))
	}
	out.Body = p.body(strings.Join(sections, "\n\n"))
	return out
}

// obstacle is why there is no request; "": there is one.
func (p *Proposal) obstacle() string {
	switch {
	case !p.grounded() && p.Refusal != "":
		return p.Refusal
	case !p.grounded():
		return "the action proposal is not fully grounded (an unverified field); no payload is rendered."
	case p.Kind.Titled && p.field(titleRole) == nil:
		return "no grounded title is available for a GitHub issue; none rendered."
	case p.Kind.Resource != nil:
		if name, _ := p.resource(); name == "" {
			return "no grounded PR resource id to address the comment; none rendered."
		}
	}
	return ""
}

// resource finds the name that the path takes and the record that it is from;
// "": there is none that may stand in a path.
func (p *Proposal) resource() (string, *engine.Record) {
	subject := p.field(p.Kind.Subject)
	if subject == nil {
		return "", nil
	}
	for _, r := range subject.Support {
		name, ok := strings.CutPrefix(r.ID, p.Kind.Resource.Prefix)
		if !ok {
			continue
		}
		if strings.Trim(name, ".") == "" || strings.IndexFunc(name, notInPath) >= 0 {
			return "", nil
		}
		return name, r
	}
	return "", nil
}

func notInPath(r rune) bool {
	switch {
	case 'A' <= r && r <= 'Z', 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '.', r == '_', r == '-':
		return false
	}
	return true
}

func section(r *Role, value string) string {
	if !r.Fenced {
		return fmt.Sprintf("## %s\n%s", r.Label, value)
	}
	longest, run := 0, 0
	for i := range len(value) {
		if value[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", max(3, longest+1))
	return fmt.Sprintf("## %s\n%s\n%s\n%s", r.Label, fence, value, fence)
}

func (p *Proposal) body(text string) []byte {
	o := newObject(nil)
	o.text("body", text)
	if p.Kind.Labels != nil {
		o.list("labels", len(p.Kind.Labels), func(dst []byte, i int) []byte { return bundle.AppendString(dst, p.Kind.Labels[i]) })
	}
	if p.Kind.Titled {
		o.text("title", p.field(titleRole).Value)
	}
	return o.end()
}

// IdempotencyKey is the key under which a real send of a request would be made
// once: the digest of its method, path and body, which is canonical bytes and has
// no marker of any kind yet.
func IdempotencyKey(method, path string, body []byte) string {
	return bundle.Digest(appendRequest(nil, method, path, body))
}

func appendRequest(dst []byte, method, path string, body []byte) []byte {
	o := newObject(dst)
	o.raw("body", body)
	o.text("method", method)
	o.text("path", path)
	return o.end()
}
