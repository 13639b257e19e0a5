package run

import (
	"slices"
	"strings"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/segments"
	"github.com/go-json-experiment/json/jsontext"
)

// plan says which plan was committed, and holds kept texts against it.
func (m *model) plan() *claim {
	if m.order.Comps == 0 {
		return newClaim("Plan: ", "none was committed.")
	}
	var last, first *segments.CompCommitted
	at, same := 0, true
	for i := range m.segments {
		if k, ok := m.segments[i].Kind.(*segments.CompCommitted); ok {
			if first == nil {
				first = k
			}
			at, last, same = i, k, same && k.CompSemanticSHA256 == first.CompSemanticSHA256
		}
	}
	c := newClaim("Plan: ", "%s committed by segment %d with %s", last.CompSemanticSHA256, at, plural(len(last.StepTopo), "step"))
	if len(last.StepTopo) > 0 {
		c.say(": %s", quoted(last.StepTopo))
	}
	c.say(".")
	c.cite(segmentID(uint64(at)))
	if m.order.Comps > 1 {
		c.say(" It is the last of %s, %s.", plural(m.order.Comps, "commit"), map[bool]string{true: "all of one plan", false: "which are of several plans"}[same])
	}
	m.planTexts(c)
	if id, _, ok := m.kept(last); ok {
		c.cite(id)
		if c.holds {
			c.say(" Its text is kept and gives this id and these steps.")
		}
	} else {
		c.say(" Its text is not kept.")
	}
	return c
}

// planTexts checks every commit; the first that does not fit is told.
func (m *model) planTexts(c *claim) {
	read := map[string]*planText{}
	for i := range m.segments {
		k, ok := m.segments[i].Kind.(*segments.CompCommitted)
		if !ok {
			continue
		}
		if k.PlanCommitIDHex != k.CompSemanticSHA256.String() {
			c.fail(" The plan id of segment %d is not the digest of its plan.", i)
			return
		}
		id, text, ok := m.kept(k)
		if !ok {
			continue
		}
		if read[id] == nil {
			read[id] = readPlan(text, k.CompSemanticSHA256)
		}
		switch {
		case !read[id].fits:
			c.fail(" The text that is kept for segment %d is another plan.", i)
			return
		case !slices.Equal(read[id].topo, k.StepTopo):
			c.fail(" The plan that is kept for segment %d has other steps.", i)
			return
		}
	}
}

// planText is a kept plan: whether it gives its digest, and its topology.
type planText struct {
	fits bool
	topo []string
}

func readPlan(text string, digest segments.Digest) *planText {
	d, err := segments.PlanDigest([]byte(text))
	if err == nil && d != digest {
		d, err = segments.PlanDigestOlder([]byte(text))
	}
	if err != nil || d != digest {
		return &planText{}
	}
	bind, ok := member(jsontext.Value(text), "bind")
	if !ok {
		return &planText{}
	}
	list, ok := member(bind, "topo")
	if !ok {
		return &planText{}
	}
	topo, ok := stringList(list)
	return &planText{ok, topo}
}

// member returns a member of an object; false: it is no object, has no such
// member or one twice.
func member(object jsontext.Value, name string) (found jsontext.Value, ok bool) {
	d := jsontext.NewDecoder(strings.NewReader(string(object)))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, false
	}
	for d.PeekKind() != '}' {
		key, err := d.ReadToken()
		if err != nil {
			return nil, false
		}
		matches := key.String() == name
		value, err := d.ReadValue()
		if err != nil {
			return nil, false
		}
		if matches {
			found, ok = value.Clone(), true
		}
	}
	return found, ok
}

func stringList(list jsontext.Value) ([]string, bool) {
	d := jsontext.NewDecoder(strings.NewReader(string(list)))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '[' {
		return nil, false
	}
	out := []string{}
	for d.PeekKind() != ']' {
		t, err := d.ReadToken()
		if err != nil || t.Kind() != '"' {
			return nil, false
		}
		out = append(out, t.String())
	}
	return out, true
}

// jsonString reads a string in canonical form.
func jsonString(text string) (string, bool) {
	s, err := jsontext.AppendUnquote(nil, text)
	if err != nil || string(bundle.AppendString(nil, string(s))) != text {
		return "", false
	}
	return string(s), true
}
