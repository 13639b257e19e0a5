package run

import (
	"strings"

	"github.com/chaind/chaind/segments"
)

// conformity judges the chain anew, as strict verification of an evidence
// bundle and the daemon do.
func (m *model) conformity() Conformity {
	switch {
	case m.order.KindOrder != nil || m.misstep() != nil || m.unscoped():
		return Nonconforming
	case m.order.Comps == 0:
		return Unplanned
	}
	return Conforming
}

// misstep is the first step that breaks the first or the last plan.
func (m *model) misstep() *segments.Offence {
	if p := m.order.First; p != nil && p.Broken != nil {
		return p.Broken
	}
	if p := m.order.Last; p != nil {
		return p.Broken
	}
	return nil
}

// unscoped says that the chain ended without ever having carried a scope.
func (m *model) unscoped() bool { return m.facts.Unscoped && m.facts.Outcome != Open }

// steps holds the executed steps against the committed plan.
func (m *model) steps() *claim {
	conformity := m.conformity()
	executed := m.order.Steps
	var c *claim
	switch {
	case conformity == Nonconforming:
		c = newClaim("Steps: ", "")
		c.fail("not as committed, %s executed.", plural(executed, "step"))
		m.offences(c)
	case m.order.Comps == 0 && executed == 0:
		c = newClaim("Steps: ", "none was executed, and none was planned.")
	case m.order.Comps == 0:
		c = newClaim("Steps: ", "%s executed without a plan.", plural(executed, "step"))
	default:
		planned := len(m.order.AgainstLast().Topo)
		c = newClaim("Steps: ", "%s executed of %d planned, in the committed order.", plural(executed, "step"), planned)
	}
	m.missing(c)
	if conformity != m.facts.Conformity {
		c.fail(" The chain was recorded as %s and is %s.", m.facts.Conformity, conformity)
	}
	m.citeSteps(c)
	m.parsed(c)
	return c
}

func (m *model) offences(c *claim) {
	if o := m.order.KindOrder; o != nil {
		c.say(" Segment %d is out of place: the order is an intent, commits, steps, run seals.", o.Seq)
	}
	if o := m.misstep(); o != nil {
		c.say(" Step %s of segment %d is not in the plan, or not in its order.", quote(o.StepID), o.Seq)
	}
	if m.unscoped() {
		c.say(" No event ever carried the scope.")
	}
}

// missing tells the planned steps that were not executed, and what is known of
// each.
func (m *model) missing(c *claim) {
	ids, total := m.order.Missing(maxListed)
	if total == 0 {
		return
	}
	tallies, _ := m.tallies()
	told := list{total: total}
	for _, id := range ids {
		told.told = append(told.told, quote(id)+" ("+tallies[id].state()+")")
	}
	c.say(" Not executed: %s.", &told)
}

// citeSteps cites the first and the last executed step.
func (m *model) citeSteps(c *claim) {
	first, last := -1, -1
	for i := range m.segments {
		if _, ok := m.segments[i].Kind.(*segments.StepExecuted); ok {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first >= 0 {
		c.cite(segmentID(uint64(first)))
		c.cite(segmentID(uint64(last)))
	}
}

// parsed holds kept expressions against the steps.
func (m *model) parsed(c *claim) {
	kept := uint64(0)
	for i := range m.segments {
		k, ok := m.segments[i].Kind.(*segments.StepExecuted)
		if !ok {
			continue
		}
		_, text, ok := m.kept(k)
		if !ok {
			continue
		}
		if segments.ParsedDigest([]byte(text)) != k.ParsedExprDigest {
			c.fail(" The expression that is kept for segment %d is another.", i)
			return
		}
		kept++
	}
	if kept > 0 {
		c.say(" The expressions of %s are kept and give their digests.", plural(kept, "step"))
	}
}

// tally is what is known of one step.
type tally struct {
	begun, failed, ended uint64
	open                 uint64 // begun, and neither ended nor failed since
	reason               string // of the last failure
}

// state is the step's own verdict. That no attempt is recorded does not say
// that there was none.
func (t *tally) state() string {
	switch {
	case t == nil:
		return "no attempt recorded"
	case t.open > 0:
		return "outcome unknown"
	case t.ended > 0:
		return "ended"
	}
	return "failed"
}

func (t *tally) settle() {
	if t.open > 0 {
		t.open--
	}
}

// tallies goes through attempts and executed steps in stream order. It returns
// the tally of each step, and the steps in order of appearance.
func (m *model) tallies() (byStep map[string]*tally, steps []string) {
	byStep = map[string]*tally{}
	of := func(id string) *tally {
		if byStep[id] == nil {
			byStep[id] = &tally{}
			steps = append(steps, id)
		}
		return byStep[id]
	}
	next := 0
	ended := func(until *Position) {
		for ; next < len(m.segments) && (until == nil || m.segments[next].before(*until)); next++ {
			if k, ok := m.segments[next].Kind.(*segments.StepExecuted); ok {
				t := of(k.StepID)
				t.ended++
				t.settle()
			}
		}
	}
	for i := range m.attempts {
		a := &m.attempts[i]
		ended(&a.Position)
		t := of(a.StepID)
		if a.Phase == PhaseBegin {
			t.begun++
			t.open++
			continue
		}
		t.failed, t.reason = t.failed+1, a.Reason
		t.settle()
	}
	ended(nil)
	return byStep, steps
}

// attempted gives each attempted step its verdict.
func (m *model) attempted() *claim {
	if len(m.attempts) == 0 {
		return newClaim("Attempts: ", "none was recorded.")
	}
	byStep, steps := m.tallies()
	var begun, failures, over uint64
	var unknown, failed, ended list
	for _, id := range steps {
		t := byStep[id]
		begun, failures = begun+t.begun, failures+t.failed
		if t.begun+t.failed == 0 {
			continue
		}
		over++
		switch t.state() {
		case "outcome unknown":
			unknown.add(func() string { return quote(id) })
		case "failed":
			failed.add(func() string { return quote(id) + " (" + plural(t.failed, "time") + because(t.reason) + ")" })
		default:
			ended.add(func() string { return quote(id) + afterFailures(t) })
		}
	}
	c := newClaim("Attempts: ", "%d begun and %d failed, of %s.", begun, failures, plural(over, "step"))
	for _, l := range []struct {
		lead string
		of   *list
	}{{"Outcome unknown", &unknown}, {"Failed", &failed}, {"Ended", &ended}} {
		if l.of.total > 0 {
			c.say(" %s: %s.", l.lead, l.of)
		}
	}
	f := newForm(&m.facts)
	c.cite(kindAttempt + ":" + f.at(m.attempts[0].Position))
	c.cite(kindAttempt + ":" + f.at(m.attempts[len(m.attempts)-1].Position))
	return c
}

func afterFailures(t *tally) string {
	if t.failed == 0 {
		return ""
	}
	return " (after " + plural(t.failed, "failure") + ")"
}

// computedPrefix marks the fingerprint of a step that was computed from the
// plan and issued no request.
const computedPrefix = "plan-compute:"

// requests sums the requests of all executed steps and finds the step with the
// most; of several the first.
func (m *model) requests() *claim {
	var issued, computed uint64
	most, at := uint64(0), -1
	for i := range m.segments {
		k, ok := m.segments[i].Kind.(*segments.StepExecuted)
		if !ok {
			continue
		}
		n := uint64(0)
		for _, f := range k.RequestFingerprints {
			if strings.HasPrefix(strings.TrimSpace(f), computedPrefix) {
				computed++
			} else {
				n++
			}
		}
		issued += n
		if n > most {
			most, at = n, i
		}
	}
	c := newClaim("Requests: ", "%d issued by %s.", issued, plural(m.order.Steps, "executed step"))
	if at >= 0 {
		id := m.segments[at].Kind.(*segments.StepExecuted).StepID
		c.say(" The most, %d, by step %s of segment %d.", most, quote(id), at)
		c.cite(segmentID(uint64(at)))
	}
	if computed > 0 {
		c.say(" %s computed from the plan, without a request.", plural(computed, "result"))
	}
	return c
}
