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

	// maxQuestion bounds the normalized question, in characters.
	maxQuestion = 1 << 20

	// maxSteps bounds the length of a question times that of all names that have
	// minRun characters in common with it.
	maxSteps = 1 << 30
)

// enough says that a part is at least six tenths of a whole.
func enough(part, whole int) bool { return 5*part >= 3*whole }

// reading is what a question says of entities.
type reading struct {
	question string // normalized
	named    []mention
	nearest  []mention // whose names the question has most of, on a par

	grams map[string]bool // all parts of the question of minRun characters
	steps int             // that are left
}

// mention is an entity that a question speaks of.
type mention struct {
	entity int
	name   string // for display
	run    int    // characters in common
}

func (b *books) read(question string) (*reading, error) {
	r := &reading{question: engine.Normalize(question), grams: map[string]bool{}, steps: maxSteps}
	if len(r.question) > maxQuestion {
		return nil, engine.ErrQuestionTooLong
	}
	for i := minRun; i <= len(r.question); i++ {
		r.grams[r.question[i-minRun:i]] = true
	}
	for i := range b.entities {
		m := mention{entity: i, name: b.entities[i].name}
		if m.name == "" {
			continue
		}
		run, runOfNamed, err := r.runs(b.entities[i].names)
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

// runs is the most that the question has in common with a name, and the most
// with one that it has enough of to speak of it. Less than minRun counts as 0.
func (r *reading) runs(names []string) (run, runOfNamed int, err error) {
	for _, name := range names {
		if !r.touches(name) {
			continue
		}
		n, err := r.run(name)
		if err != nil {
			return 0, 0, err
		}
		run = max(run, n)
		if n >= minRun && enough(n, len(name)) {
			runOfNamed = max(runOfNamed, n)
		}
	}
	return run, runOfNamed, nil
}

// touches says that the question has minRun characters of a name in a row,
// without which there is no run to speak of.
func (r *reading) touches(name string) bool {
	for i := minRun; i <= len(name); i++ {
		if r.grams[name[i-minRun:i]] {
			return true
		}
	}
	return false
}

// run is what the question has in common with a name.
func (r *reading) run(name string) (int, error) {
	if len(name) > r.steps/max(len(r.question), 1) {
		return 0, engine.ErrQuestionTooLong
	}
	r.steps -= len(name) * len(r.question)
	n, err := text.LongestRun(r.question, name)
	if err != nil {
		return 0, engine.ErrQuestionTooLong
	}
	return n, nil
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
		run, err := r.run(engine.Normalize(name))
		if err != nil {
			return false, err
		}
		if enough(run, len(r.question)) {
			return true, nil
		}
	}
	return false, nil
}
