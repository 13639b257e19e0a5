package action

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
)

// Codes of findings about an action section, besides engine.ActionMalformed
// and engine.ActionUnknown.
const (
	ActionSent     engine.Code = "action_sent"     // it claims that a request was sent
	ActionQuestion engine.Code = "action_question" // it is about another domain or question than the answer
	ActionRoute    engine.Code = "action_route"    // it does not follow from answers of this kind
	ActionWithheld engine.Code = "action_withheld" // the answer yields no request
	ActionRequest  engine.Code = "action_request"  // method or path differ
	ActionBody     engine.Code = "action_body"     // the body differs
	ActionSlots    engine.Code = "action_slots"    // the slots differ
	ActionOutcome  engine.Code = "action_outcome"  // it is not the outcome of a simulation
	ActionAltered  engine.Code = "action_altered"  // anything else differs
)

// Set is the actions that a domain has.
type Set []*Kind

// Install gives a domain its actions.
func (s Set) Install(d *engine.Domain) {
	d.CheckAction = func(v bundle.Value, d *engine.Decision, _ *engine.Graph) ([]engine.Finding, error) {
		return s.check(v, d), nil
	}
	d.DraftAction = s.draft
}

func (s Set) find(name string) *Kind {
	i := slices.IndexFunc(s, func(k *Kind) bool { return k.Name == name })
	if i < 0 {
		return nil
	}
	return s[i]
}

// draft returns the receipt of an action.
func (s Set) draft(name string, d *engine.Decision) ([]byte, error) {
	kind := s.find(name)
	if kind == nil {
		return nil, fmt.Errorf("%w: %q in domain %q", engine.ErrNoAction, name, d.Domain)
	}
	payload := kind.Draft(d).Render()
	if payload.Withheld != "" {
		return nil, fmt.Errorf("%w: %s", engine.ErrActionWithheld, payload.Withheld)
	}
	return payload.AppendReceipt(nil), nil
}

// check compares a recorded receipt with the one that the recorded answer
// yields.
func (s Set) check(v bundle.Value, d *engine.Decision) []engine.Finding {
	var out []engine.Finding
	found := func(code engine.Code, format string, args ...any) {
		out = append(out, engine.Finding{Code: code, Where: "action", Detail: fmt.Sprintf(format, args...)})
	}
	if fault := malformed(v); fault != "" {
		found(engine.ActionMalformed, "the action section is malformed: %s", fault)
		return out
	}
	if v.Get("sent").True() {
		found(ActionSent, "the action says that its request was sent; bundles hold simulations only")
	}
	if v.Get("domain").Text() != d.Domain || v.Get("question").Text() != d.Question {
		found(ActionQuestion, "the action is about another domain or question than the answer it rests on")
	}
	kind := s.find(v.Get("kind").Text())
	switch {
	case kind == nil:
		found(engine.ActionUnknown, "the domain %s has no action of the kind %s", bundle.Quote(d.Domain), bundle.Quote(v.Get("kind").Text()))
		return out
	case d.Route.Kind != kind.Route:
		found(ActionRoute, "an action of the kind %q follows from answers of route %q, and this one is of route %s", kind.Name, kind.Route, bundle.Quote(d.Route.Kind))
		return out
	}
	payload := kind.Draft(d).Render()
	if payload.Withheld != "" {
		found(ActionWithheld, "the recorded answer yields no request for this action: %s", bundle.Quote(payload.Withheld))
		return out
	}
	return append(out, differences(v, payload.AppendReceipt(nil))...)
}

// outcomeMembers tell how a simulation went.
var outcomeMembers = [...]string{
	"target", "actuator", "executed", "simulated", "withheld", "withheld_reason", "outcome", "result", "idempotency_key", "approved", "requires_approval",
}

// differences names what is not as in the expected receipt.
func differences(v bundle.Value, receipt []byte) []engine.Finding {
	if v.EqualCanonical(receipt) {
		return nil
	}
	want, err := bundle.ParseValue(string(receipt))
	if err != nil {
		return []engine.Finding{{Code: ActionAltered, Where: "action", Detail: "the expected receipt cannot be represented: " + err.Error()}}
	}
	same := func(path ...string) bool {
		got, want := v, want
		for _, name := range path {
			got, want = got.Get(name), want.Get(name)
		}
		return got.EqualCanonical(want.AppendCanonical(nil))
	}
	var out []engine.Finding
	if !same("request", "method") || !same("request", "path") {
		out = append(out, engine.Finding{Code: ActionRequest, Where: "action.request", Detail: "method or path of the request are not those that the evidence yields"})
	}
	if !same("request", "body") {
		out = append(out, engine.Finding{Code: ActionBody, Where: "action.request.body", Detail: "the body of the request is not the one that the evidence yields"})
	}
	if !same("slots") {
		out = append(out, engine.Finding{Code: ActionSlots, Where: "action.slots", Detail: "the slots are not those that the evidence yields: a value, its evidence or its role differs"})
	}
	var altered []string
	for _, name := range outcomeMembers {
		if !same(name) {
			altered = append(altered, name)
		}
	}
	if altered != nil {
		out = append(out, engine.Finding{Code: ActionOutcome, Where: "action",
			Detail: "the outcome is not that of a simulation that nobody has approved or sent: " + strings.Join(altered, ", ")})
	}
	if out == nil {
		out = append(out, engine.Finding{Code: ActionAltered, Where: "action", Detail: "the receipt is not the one that the evidence yields"})
	}
	return out
}

// shape is the members that a receipt must have, and their kinds.
var shape = [...]struct {
	object, name string
	kind         bundle.Kind
	orNull       bool
}{
	{"", "route", bundle.Object, false}, {"", "request", bundle.Object, false},
	{"", "kind", bundle.String, false}, {"", "domain", bundle.String, false}, {"", "question", bundle.String, false}, {"", "target", bundle.String, false},
	{"request", "method", bundle.String, false}, {"request", "path", bundle.String, false}, {"request", "body", bundle.Object, false},
	{"", "slots", bundle.Array, false}, {"", "actuator", bundle.String, false},
	{"", "payload_grounded", bundle.Bool, false}, {"", "executed", bundle.Bool, false}, {"", "simulated", bundle.Bool, false},
	{"", "sent", bundle.Bool, false}, {"", "withheld", bundle.Bool, false}, {"", "withheld_reason", bundle.String, true},
	{"", "outcome", bundle.String, false}, {"", "result", bundle.Object, false}, {"", "idempotency_key", bundle.String, true},
	{"", "approved", bundle.Bool, false}, {"", "requires_approval", bundle.Bool, false},
	{"route", "kind", bundle.String, false}, {"route", "reason", bundle.String, false},
}

// malformed says what is wrong with the members of a receipt; "": nothing.
func malformed(v bundle.Value) string {
	for _, m := range shape {
		parent := v
		if m.object != "" {
			parent = v.Get(m.object)
		}
		got := parent.Get(m.name).Kind()
		if got != m.kind && !(m.orNull && got == bundle.Null) {
			return fmt.Sprintf("want %s at %q, got %s", m.kind, strings.TrimPrefix(m.object+"."+m.name, "."), got)
		}
	}
	return ""
}
