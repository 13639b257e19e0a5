package action

import (
	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
)

// object writes the members of a canonical object, in the order of their names.
type object struct {
	dst   []byte
	comma bool
}

func newObject(dst []byte) *object { return &object{dst: append(dst, '{')} }

func (o *object) end() []byte { return append(o.dst, '}') }

func (o *object) name(name string) {
	if o.comma {
		o.dst = append(o.dst, ',')
	}
	o.comma = true
	o.dst = append(bundle.AppendString(o.dst, name), ':')
}

func (o *object) raw(name string, value []byte) {
	o.name(name)
	o.dst = append(o.dst, value...)
}

func (o *object) text(name, value string) {
	o.name(name)
	o.dst = bundle.AppendString(o.dst, value)
}

// textOrNull writes null for "".
func (o *object) textOrNull(name, value string) {
	if value == "" {
		o.raw(name, []byte("null"))
		return
	}
	o.text(name, value)
}

func (o *object) flag(name string, value bool) {
	if value {
		o.raw(name, []byte("true"))
		return
	}
	o.raw(name, []byte("false"))
}

func (o *object) list(name string, n int, item func(dst []byte, i int) []byte) {
	o.name(name)
	o.dst = append(o.dst, '[')
	for i := range n {
		if i > 0 {
			o.dst = append(o.dst, ',')
		}
		o.dst = item(o.dst, i)
	}
	o.dst = append(o.dst, ']')
}

func (o *object) support(records []*engine.Record) {
	o.list("support", len(records), func(dst []byte, i int) []byte { return records[i].AppendEvidence(dst) })
}

func (o *object) route(r engine.Route) {
	route := newObject(nil)
	route.text("kind", r.Kind)
	route.text("reason", r.Reason)
	o.raw("route", route.end())
}

// Append appends the canonical bytes of a proposal.
func (p *Proposal) Append(dst []byte) []byte {
	o := newObject(dst)
	o.flag("all_grounded", p.grounded())
	o.text("domain", p.Decision.Domain)
	o.flag("executed", false)
	o.list("fields", len(p.Fields), func(dst []byte, i int) []byte { return p.Fields[i].append(dst) })
	o.flag("grounded", p.Refusal == "")
	o.text("kind", p.Kind.Name)
	o.text("question", p.Decision.Question)
	o.textOrNull("refusal", p.Refusal)
	o.flag("refused", p.Refusal != "")
	o.flag("requires_approval", true)
	o.route(p.Decision.Route)
	return o.end()
}

func (f *Field) append(dst []byte) []byte {
	o := newObject(dst)
	o.text("name", f.Name)
	o.support(f.Support)
	o.text("value", f.Value)
	o.flag("verified", f.Verified)
	return o.end()
}

func (s *Slot) append(dst []byte) []byte {
	o := newObject(dst)
	o.text("label", s.Label)
	o.text("part", s.Part)
	o.text("role", s.Name)
	o.support(s.Support)
	o.text("value", s.Value)
	o.flag("verified", s.Verified)
	return o.end()
}

// Append appends the canonical bytes of a payload.
func (p *Payload) Append(dst []byte) []byte {
	o := newObject(dst)
	o.flag("all_grounded", p.Withheld == "")
	o.text("domain", p.Proposal.Decision.Domain)
	o.text("kind", p.Proposal.Kind.Name)
	o.text("question", p.Proposal.Decision.Question)
	o.flag("rendered", p.Withheld == "")
	o.raw("request", p.request())
	o.flag("requires_approval", true)
	o.route(p.Proposal.Decision.Route)
	o.flag("sent", false)
	p.slots(o)
	o.text("target", target)
	o.textOrNull("withheld_reason", p.Withheld)
	return o.end()
}

func (p *Payload) request() []byte {
	body := p.Body
	if body == nil {
		body = []byte("{}")
	}
	return appendRequest(nil, p.Method, p.Path, body)
}

func (p *Payload) slots(o *object) {
	o.list("slots", len(p.Slots), func(dst []byte, i int) []byte { return p.Slots[i].append(dst) })
}

// dryRun is the result of every simulation.
const dryRun = `{"detail":"dry run — no request left Tessera; a human or agent approves and sends.","simulated":true}`

// AppendReceipt appends the canonical bytes of the receipt of simulating a
// payload: the action section of a bundle, if it is not withheld.
func (p *Payload) AppendReceipt(dst []byte) []byte {
	done := p.Withheld == ""
	outcome, result := "withheld", "{}"
	if done {
		outcome, result = "simulated", dryRun
	}
	o := newObject(dst)
	o.text("actuator", "simulated")
	o.flag("all_grounded", done)
	o.flag("approved", false)
	o.text("domain", p.Proposal.Decision.Domain)
	o.flag("executed", done)
	o.raw("idempotency_key", []byte("null"))
	o.text("kind", p.Proposal.Kind.Name)
	o.text("outcome", outcome)
	o.flag("payload_grounded", done)
	o.text("question", p.Proposal.Decision.Question)
	o.raw("request", p.request())
	o.flag("requires_approval", true)
	o.raw("result", []byte(result))
	o.route(p.Proposal.Decision.Route)
	o.flag("sent", false)
	o.flag("simulated", done)
	p.slots(o)
	o.text("target", target)
	o.flag("withheld", !done)
	o.textOrNull("withheld_reason", p.Withheld)
	return o.end()
}
