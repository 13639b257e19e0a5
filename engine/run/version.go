package run

import (
	"maps"
	"slices"

	"github.com/chaind/chaind/engine"
)

// version is one of the versions of the domain. They package runs alike and make
// the same claims, but for what makes an intake complete and one attribute.
type version struct {
	name   string
	derive func(*engine.Graph) *evidence
}

var versions = []version{
	{Version, func(g *engine.Graph) *evidence { return engine.Derived(g, extract) }},
	{Version1, func(g *engine.Graph) *evidence { return &engine.Derived(g, extract1).evidence }},
}

// versionOf finds a version by its name; nil: it is not known.
func versionOf(name string) *version {
	for i := range versions {
		if versions[i].name == name {
			return &versions[i]
		}
	}
	return nil
}

func (v *version) domain() *engine.Domain {
	d := &engine.Domain{Name: Name, Version: v.name, Route: v.route}
	for i := range shapes {
		d.Grammars = append(d.Grammars, shapes[i].grammar(v))
	}
	return d
}

// evidence1 is evidence as [Version1] judges it; a type of its own, since a graph
// keeps what is derived from it by type.
type evidence1 struct{ evidence }

// extract1 makes anew the one claim that differs.
func extract1(g *engine.Graph) *evidence1 {
	e := engine.Derived(g, extract)
	if e.model.headless {
		return &evidence1{*e}
	}
	m := *e.model
	m.midway = true
	if m.intake != nil && m.intake.rest != nil && m.intake.rest.counted != nil {
		m.faults = slices.Clip(m.faults) // those of the other versions stay as they are
		m.fault(areaIntake, "the intake record has an attribute that this version does not have")
	}
	claims := maps.Clone(e.claims)
	claims[labelIntake] = m.complete()
	return &evidence1{evidence{&m, claims}}
}

// restrict leaves out of a model that is to be packaged what the version does not have.
func (v *version) restrict(m *model) {
	if v.name == Version1 && m.intake != nil && m.intake.rest != nil {
		m.intake.rest.counted = nil
	}
}

// declaredMidway is the rule of [Version1] beside numbers, of which any were
// enough: any count, and a head of the last segment, whichever seal gave them. What
// was lost behind the last declaration it did not ask.
func (m *model) declaredMidway() bool {
	p := m.facts.Producer
	return m.facts.Declared != nil || p != nil && p.Segments == uint64(len(m.segments)) && m.producerHeadAgrees()
}
