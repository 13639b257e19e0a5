package engine

import (
	"slices"
	"strings"

	"github.com/chaind/chaind/bundle"
)

// Decision is the `result` section of a bundle: a question and its answer,
// with the verdict on each claim.
type Decision struct {
	Domain, Question  string
	Route             Route
	Grounded, Refused bool   // exactly one in a sound decision
	Refusal           string // "" with HasRefusal false: null
	HasRefusal        bool
	Claims            []RecordedClaim
}

// RecordedClaim is a claim with the verdict of its domain's grammars.
type RecordedClaim struct {
	Text     string
	Verified bool
	Support  []*Record // in the order of their ids
}

// Decide answers a question from evidence and judges each claim of the answer.
func (d *Domain) Decide(question string, g *Graph, kb []Record) (*Decision, error) {
	a, err := d.Route(question, g, kb)
	if err != nil {
		return nil, err
	}
	return d.decision(question, a, g)
}

func (d *Domain) decision(question string, a *Answer, g *Graph) (*Decision, error) {
	out := &Decision{Domain: d.Name, Question: question, Route: a.Route}
	for i := range a.Claims {
		ruling, err := d.judge(&a.Claims[i], g)
		if err != nil {
			return nil, err
		}
		support := slices.Clone(a.Claims[i].Support)
		slices.SortStableFunc(support, func(x, y *Record) int { return strings.Compare(x.ID, y.ID) })
		out.Claims = append(out.Claims, RecordedClaim{a.Claims[i].Text, ruling.supported, support})
	}
	out.Grounded = a.Refusal == "" && len(out.Claims) > 0
	out.Refused = !out.Grounded
	if out.Refused {
		out.HasRefusal = true
		out.Refusal = a.Refusal
		if a.Refusal == "" {
			out.Refusal = DefaultRefusal
		}
	}
	return out, nil
}

// Append appends the canonical bytes of the result section.
func (d *Decision) Append(dst []byte) []byte {
	all := !slices.ContainsFunc(d.Claims, func(c RecordedClaim) bool { return !c.Verified })
	dst = appendBool(dst, `{"all_verified":`, all)
	dst = append(dst, `,"claims":[`...)
	for i := range d.Claims {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = d.Claims[i].append(dst)
	}
	dst = append(dst, `],"domain":`...)
	dst = bundle.AppendString(dst, d.Domain)
	dst = appendBool(dst, `,"grounded":`, d.Grounded)
	dst = append(dst, `,"question":`...)
	dst = bundle.AppendString(dst, d.Question)
	dst = append(dst, `,"refusal":`...)
	if d.HasRefusal {
		dst = bundle.AppendString(dst, d.Refusal)
	} else {
		dst = append(dst, "null"...)
	}
	dst = appendBool(dst, `,"refused":`, d.Refused)
	dst = append(dst, `,"route":{"kind":`...)
	dst = bundle.AppendString(dst, d.Route.Kind)
	dst = append(dst, `,"reason":`...)
	dst = bundle.AppendString(dst, d.Route.Reason)
	return append(dst, "}}"...)
}

// leastSize is less than the length of what Append appends, in bytes: that of the
// texts in it.
func (d *Decision) leastSize() int {
	n := 0
	for i := range d.Claims {
		n += len(d.Claims[i].Text)
		for _, r := range d.Claims[i].Support {
			n += len(r.ID) + len(r.Source) + len(r.Text)
		}
	}
	return n
}

func appendBool(dst []byte, name string, b bool) []byte {
	dst = append(dst, name...)
	if b {
		return append(dst, "true"...)
	}
	return append(dst, "false"...)
}

func (c *RecordedClaim) append(dst []byte) []byte {
	dst = append(dst, `{"support":[`...)
	for i, r := range c.Support {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = r.AppendEvidence(dst)
	}
	dst = append(dst, `],"text":`...)
	dst = bundle.AppendString(dst, c.Text)
	dst = appendBool(dst, `,"verified":`, c.Verified)
	return append(dst, '}')
}

// AppendEvidence appends the canonical bytes of a record in the form that the
// support of a claim has: with the rendered locator.
func (r *Record) AppendEvidence(dst []byte) []byte {
	dst = append(dst, `{"id":`...)
	dst = bundle.AppendString(dst, r.ID)
	dst = append(dst, `,"ingested_at":`...)
	dst = bundle.AppendString(dst, r.IngestedAt)
	dst = append(dst, `,"locator":{"kind":`...)
	dst = bundle.AppendString(dst, r.Locator.Kind)
	dst = append(dst, `,"parts":`...)
	dst = appendPairs(dst, r.Locator.Parts)
	dst = append(dst, `,"render":`...)
	dst = bundle.AppendString(dst, r.Locator.Render())
	dst = append(dst, `},"source":`...)
	dst = bundle.AppendString(dst, r.Source)
	dst = append(dst, `,"text":`...)
	dst = bundle.AppendString(dst, r.Text)
	return append(dst, '}')
}

// difference names the first respect in which the recorded decision is not
// the one that the evidence yields; the two differ in canonical bytes.
func difference(recorded, fresh *Decision) (Code, string) {
	text := func(c RecordedClaim) string { return c.Text }
	switch {
	case recorded.Refused != fresh.Refused:
		return AnswerMode, "the evidence yields " + mode(fresh) + " for this question, and the file records the opposite"
	case recorded.HasRefusal != fresh.HasRefusal || recorded.Refusal != fresh.Refusal:
		return AnswerRefusal, "the evidence yields another reason for the refusal than the file records"
	case !slices.Equal(mapped(recorded.Claims, text), mapped(fresh.Claims, text)):
		return AnswerClaims, "the evidence yields other claims for this question: claims, question or evidence were altered"
	case recorded.leastSize() != fresh.leastSize(), string(recorded.Append(nil)) != string(fresh.Append(nil)):
		return AnswerMetadata, "domain, route, verdicts or support are not those that the evidence yields"
	}
	return AnswerDerived, "a member that is derived from others (a rendered locator, all_verified) or that nothing derives was altered"
}

func mode(d *Decision) string {
	if d.Refused {
		return "a refusal"
	}
	return "a grounded answer"
}

func mapped[T, U any](list []T, f func(T) U) []U {
	out := make([]U, len(list))
	for i, item := range list {
		out[i] = f(item)
	}
	return out
}
