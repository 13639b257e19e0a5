package business

import (
	"cmp"
	"slices"
	"strings"

	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/text"
)

const (
	// minRun is how many characters of a name a question must have in a row.
	minRun = 6

	// maxSteps bounds the length of a question times that of all names.
	maxSteps = 1 << 30
)

// enough says that a part is at least six tenths of a whole.
func enough(part, whole int) bool { return 5*part >= 3*whole }

// reading is what a question says of entities.
type reading struct {
	question string // normalized
	named    []mention
	nearest  []mention // whose names the question has most of, on a par
}

// mention is an entity that a question speaks of.
type mention struct {
	entity int
	name   string // for display
	run    int    // characters in common
}

func (b *books) read(question string) (*reading, error) {
	r := &reading{question: engine.Normalize(question)}
	if b.tooLong(r.question) {
		return nil, engine.ErrQuestionTooLong
	}
	for i := range b.entities {
		m := mention{entity: i, name: b.entities[i].name}
		if m.name == "" {
			continue
		}
		run, runOfNamed, err := b.runs(r.question, i)
		if err != nil {
			return nil, err
		}
		if m.run = runOfNamed; m.run > 0 {
			r.named = append(r.named, m)
		}
		if m.run = run; m.run >= minRun {
			r.near(m)
		}
	}
	slices.SortStableFunc(r.named, func(x, y mention) int {
		return cmp.Or(cmp.Compare(y.run, x.run), strings.Compare(x.name, y.name))
	})
	return r, nil
}

func (b *books) tooLong(question string) bool {
	budget := maxSteps
	for i := range b.entities {
		for _, name := range b.entities[i].names {
			if len(name) > budget/max(len(question), 1) {
				return true
			}
			budget -= len(name) * len(question)
		}
	}
	return false
}

// runs is the most that the question has in common with a name of an entity,
// and the most with one that it has enough of to speak of it.
func (b *books) runs(question string, entity int) (run, runOfNamed int, err error) {
	for _, name := range b.entities[entity].names {
		n, err := text.LongestRun(question, name)
		if err != nil {
			return 0, 0, engine.ErrQuestionTooLong
		}
		run = max(run, n)
		if n >= minRun && enough(n, len(name)) {
			runOfNamed = max(runOfNamed, n)
		}
	}
	return run, runOfNamed, nil
}

func (r *reading) near(m mention) {
	if len(r.nearest) > 0 && r.nearest[0].run > m.run {
		return
	}
	if len(r.nearest) > 0 && r.nearest[0].run < m.run {
		r.nearest = r.nearest[:0]
	}
	r.nearest = append(r.nearest, m)
}

// ambiguous says that several entities fit the question equally well.
func (r *reading) ambiguous() bool { return len(r.nearest) > 1 }

// candidates are the names of the nearest entities, sorted; two entities may
// have one name.
func (r *reading) candidates() []string {
	list := names(r.nearest)
	slices.Sort(list)
	return list
}

func names(list []mention) []string {
	out := make([]string, len(list))
	for i := range list {
		out[i] = list[i].name
	}
	return out
}

// aboutSeveral says that the question fits several entities and is mostly the
// name of one of them.
func (r *reading) aboutSeveral() (bool, error) {
	if !r.ambiguous() {
		return false, nil
	}
	for _, name := range r.candidates() {
		run, err := text.LongestRun(r.question, engine.Normalize(name))
		if err != nil {
			return false, engine.ErrQuestionTooLong
		}
		if enough(run, len(r.question)) {
			return true, nil
		}
	}
	return false, nil
}
