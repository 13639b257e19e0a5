package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/store"
	"github.com/chaind/chaind/verifier"
)

// verdict is what the checker found.
type verdict struct {
	seed       uint64
	troubles   map[string]int
	disk       bool
	tallies    map[string]int
	violations []string
}

func (v *verdict) count(what string) { v.tallies[what]++ }

func (v *verdict) wrong(key events.Key, format string, args ...any) {
	v.violations = append(v.violations, fmt.Sprintf("chain %s/%s: %s", key.Tenant, key.Chain, fmt.Sprintf(format, args...)))
}

func (v *verdict) print(out io.Writer) {
	const most = 40 // violations shown
	for _, m := range []map[string]int{v.troubles, v.tallies} {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			fmt.Fprintf(out, "%8d  %s\n", m[name], name)
		}
		fmt.Fprintln(out)
	}
	if !v.disk {
		fmt.Fprintln(out, "not done: the disk was never full")
	}
	for i, text := range v.violations {
		if i == most {
			fmt.Fprintf(out, "... and %d more\n", len(v.violations)-most)
			break
		}
		fmt.Fprintln(out, "VIOLATION", text)
	}
	if len(v.violations) == 0 {
		fmt.Fprintf(out, "PASS (-seed %d)\n", v.seed)
		return
	}
	fmt.Fprintf(out, "FAIL: %d violations (-seed %d)\n", len(v.violations), v.seed)
}

// check compares what the producers say with what is there.
func check(ctx context.Context, w *world) (*verdict, error) {
	v := &verdict{tallies: map[string]int{}}
	s, err := openStore(w)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	report, err := s.Check(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, f := range report.Findings {
		v.wrong(f.Chain, "the store is damaged: %s %s %s", f.Class, f.Bucket, f.Detail)
	}
	c := &checker{v: v, store: s, artifacts: filepath.Join(w.dataDir, "artifacts"), stories: map[events.Key]*story{}}
	for i := range producers {
		diary, err := readDiary(w.diary(i))
		if err != nil {
			return nil, err
		}
		for _, s := range tell(producerName(i), diary) {
			c.stories[s.key] = s
		}
	}
	return v, c.all(ctx)
}

type checker struct {
	v         *verdict
	store     *store.Store
	artifacts string
	stories   map[events.Key]*story
	lost      []store.LostRange
}

func (c *checker) all(ctx context.Context) error {
	if err := c.history(); err != nil {
		return err
	}
	found, err := keys(c.store)
	if err != nil {
		return err
	}
	there := map[events.Key]bool{}
	for _, key := range found {
		there[key] = true
		s := c.stories[key]
		if s == nil {
			c.v.wrong(key, "no producer ever wrote it")
			continue
		}
		f, err := readFacts(c.store, key)
		if err != nil {
			return err
		}
		c.chain(s, f)
		if err := c.evidence(ctx, s, f); err != nil {
			return err
		}
	}
	for key, s := range c.stories {
		if !there[key] {
			c.chain(s, &facts{})
		}
	}
	return nil
}

// history reads what the daemon knows to be lost.
func (c *checker) history() error {
	for after := uint64(0); ; {
		page, err := c.store.LostRanges(after, store.MaxPage)
		if err != nil {
			return err
		}
		c.lost = append(c.lost, page...)
		if len(page) == 0 {
			break
		}
		after = page[len(page)-1].ID
	}
	epochs, err := c.store.Epochs()
	if err != nil {
		return err
	}
	c.v.tallies["epochs of the stream"], c.v.tallies["lost ranges"] = len(epochs), len(c.lost)
	for _, l := range c.lost {
		c.v.tallies["lost sequences"] += int(l.To - l.From + 1)
	}
	return nil
}

// chain wants every message of a chain where it must be, and no others.
func (c *checker) chain(s *story, f *facts) {
	c.v.count("chains, " + s.flavour)
	missing := false
	for _, t := range s.told {
		if t.isAcked() {
			c.v.count("acknowledged, " + t.what)
		}
		missing = !c.message(s, f, t) || missing
	}
	c.foreign(s, f)
	c.order(s, f)
	if f.record != nil {
		c.coverage(s, f, missing)
	}
}

// message reports whether the message is there.
func (c *checker) message(s *story, f *facts, t *told) (there bool) {
	places := f.at(t)
	if len(places) > 1 {
		c.v.wrong(s.key, "%s %s stands in the chain %d times", t.what, t.id, len(places))
	}
	switch {
	case len(places) == 1 && t.what == whatMalformed:
		c.v.wrong(s.key, "nonsense %s is in the chain", t.sum)
		return true
	case len(places) == 1 && t.what == whatConflict && !c.gone(s, f, t):
		c.v.wrong(s.key, "conflict %s is in the chain beside its original", t.id)
		return true
	case len(places) > 0:
		return true
	case t.sum != "" && f.refused(t):
		if t.what == whatEvent && !c.usurped(s, f, t) {
			c.v.wrong(s.key, "event %s was rejected, and nothing has its id", t.id)
		}
		return true
	case !t.isAcked():
		return true // nobody was told that it is safe
	case c.named(t) && !t.durable:
		c.v.count("named as lost")
		return false
	case t.durable:
		c.v.wrong(s.key, "%s %s was called durable and is not there", t.what, t.id)
	default:
		c.v.wrong(s.key, "%s %s was acknowledged (%v), is not there, and is not named as lost", t.what, t.id, t.acked)
	}
	return false
}

// gone tells whether the original of a conflict never reached the chain, so that
// the other one got its id.
func (c *checker) gone(s *story, f *facts, conflict *told) bool {
	for _, t := range s.told {
		if t.what != whatConflict && t.id == conflict.id {
			return len(f.at(t)) == 0
		}
	}
	return true
}

// usurped tells whether another message with the event's id is in the chain.
func (c *checker) usurped(s *story, f *facts, event *told) bool {
	return slices.ContainsFunc(s.told, func(t *told) bool { return t.id == event.id && t.sum != event.sum && len(f.at(t)) > 0 })
}

// named tells whether every acknowledged copy is in a lost range.
func (c *checker) named(t *told) bool {
	for _, copy := range t.acked {
		if !slices.ContainsFunc(c.lost, func(l store.LostRange) bool { return l.From <= copy.seq && copy.seq <= l.To }) {
			return false
		}
	}
	return true
}

// foreign wants that a producer sent whatever is in the chain, with these bytes.
func (c *checker) foreign(s *story, f *facts) {
	for _, p := range f.places {
		if !slices.ContainsFunc(s.told, func(t *told) bool { return t.id == p.id && (t.sum == p.sum || t.sum == "" || p.sum == "") }) {
			c.v.wrong(s.key, "%s %s was never sent so", p.kind, p.id)
		}
	}
	for _, r := range f.rejected {
		if !slices.ContainsFunc(s.told, func(t *told) bool { return t.sum == r.Sum.String() }) {
			c.v.wrong(s.key, "rejected %s was never sent so", r.EventID)
		}
	}
}

// order wants the chain in the order in which the copies were sent that it is
// made of.
func (c *checker) order(s *story, f *facts) {
	type sent struct {
		order   int
		arrival uint64
		id      string
	}
	var line []sent
	for _, t := range s.told {
		for _, p := range f.at(t) {
			at := t.order
			if i := slices.IndexFunc(t.acked, func(c copy) bool { return c.seq == p.seq }); i >= 0 {
				at = t.acked[i].order
			}
			line = append(line, sent{at, p.arrival, t.id})
		}
	}
	slices.SortFunc(line, func(a, b sent) int { return cmp.Compare(a.order, b.order) })
	for i := 1; i < len(line); i++ {
		if line[i].arrival <= line[i-1].arrival {
			c.v.wrong(s.key, "%s stands before %s, which was sent first", line[i].id, line[i-1].id)
		}
	}
}

// coverage wants chains that lost something to say so, and undisturbed ones to
// be complete and to have the head that their producer computed.
func (c *checker) coverage(s *story, f *facts, missing bool) {
	coverage, why := f.record.Coverage()
	switch {
	case missing && f.record.Fixed == nil:
		c.v.count("chains that never ended and lost something")
	case missing && coverage != events.Incomplete && beganAnew(s, f):
		c.v.count("chains lost whole, and begun anew at number 0")
	case missing && coverage != events.Incomplete && !onlyLate(s, f):
		c.v.wrong(s.key, "it lost events and its coverage is %s %v:%s", coverage, why, s.account(f))
	case missing:
		c.v.count("chains that say they are incomplete")
	}
	calm := !missing && s.flavour == flavourPublished && s.finished && len(s.resumed) == 0 && len(f.record.Lost) == 0 && c.oneEpoch(f)
	if !calm {
		return
	}
	c.v.count("undisturbed chains")
	if coverage != events.Complete || f.record.State.ProducerHead != events.HeadAgrees {
		c.v.wrong(s.key, "undisturbed, and its coverage is %s %v, its producer's head %q", coverage, why, f.record.State.ProducerHead)
	}
}

// beganAnew tells whether another life of the producer took the chain up when
// nothing of it was left, and so began at number 0: what it then declares is
// complete, and that there was more nobody can know but the one that was killed.
func beganAnew(s *story, f *facts) bool {
	return slices.ContainsFunc(s.resumed, func(at int) bool {
		return !slices.ContainsFunc(s.told, func(t *told) bool {
			there := len(f.at(t)) > 0
			return t.order < at && there || t.order > at && t.isAcked() && !there && !f.refused(t)
		})
	})
}

// onlyLate tells whether nothing but messages after the end is missing: a chain
// that has ended says nothing about those.
func onlyLate(s *story, f *facts) bool {
	return !slices.ContainsFunc(s.told, func(t *told) bool {
		return t.isAcked() && t.what != whatLate && t.what != whatMalformed && t.what != whatConflict && len(f.at(t)) == 0
	})
}

func (c *checker) oneEpoch(f *facts) bool {
	for _, p := range f.places {
		if p.epoch != f.places[0].epoch {
			return false
		}
	}
	return true
}

// expected is the exit code for conforming evidence: a run that was cancelled or
// abandoned has no run seal, which verification tells.
func expected(r *verifier.Report) int {
	if r.SealCount == 0 {
		return 3
	}
	return 0
}

// evidence wants a file for each chain that ended with segments, which verifies
// with the head that the store has.
func (c *checker) evidence(ctx context.Context, s *story, f *facts) error {
	end, seal := f.record.Fixed, f.record.Seal
	if end == nil {
		return nil
	}
	if seal == nil {
		c.v.wrong(s.key, "it ended and has no evidence")
		return nil
	}
	if end.State.Head == nil {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(c.artifacts, filepath.FromSlash(seal.Path)))
	if err != nil {
		c.v.wrong(s.key, "its evidence cannot be read: %v", err)
		return nil
	}
	if segments.Sum(text) != seal.SHA256 {
		c.v.wrong(s.key, "its evidence is not what was sealed")
	}
	r := verifier.Evidence(ctx, bytes.NewReader(text), verifier.Options{ExpectHead: end.State.Head, Location: verifier.LocationOf(seal.Path)})
	conformity, _ := end.State.Conformity()
	c.v.count(fmt.Sprintf("evidence, %s, exit %d", conformity, r.ExitCode))
	switch {
	case r.ComputedHead == nil || *r.ComputedHead != *end.State.Head || r.Segments != end.State.Segments:
		c.v.wrong(s.key, "its evidence is of another chain: %s", r.Summary)
	case conformity == events.Conforming && r.ExitCode != expected(r):
		c.v.wrong(s.key, "its evidence does not verify: %s", r.Summary)
	case conformity != events.Conforming && r.ExitCode != 2:
		c.v.wrong(s.key, "%s, and verification says %d: %s", conformity, r.ExitCode, r.Summary)
	}
	return nil
}
