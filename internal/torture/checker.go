package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/store"
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
	c, err := newChecker(ctx, w)
	if err != nil {
		return nil, err
	}
	defer c.store.Close()
	return c.v, c.all(ctx)
}

// newChecker walks the store, and reads the diaries. The store is the caller's to
// close.
func newChecker(ctx context.Context, w *world) (_ *checker, err error) {
	c := &checker{v: &verdict{tallies: map[string]int{}}, artifacts: filepath.Join(w.dataDir, "artifacts"), stories: map[events.Key]*story{},
		facts: map[events.Key]*facts{}, anchors: map[string]anchors{}, files: map[string]file{}}
	if c.trust, err = trusted(); err != nil {
		return nil, err
	}
	for i := range producers {
		diary, err := readDiary(w.diary(i))
		if err != nil {
			return nil, err
		}
		for _, s := range tell(producerName(i), diary) {
			c.stories[s.key] = s
		}
	}
	if c.store, err = openStore(w); err != nil {
		return nil, err
	}
	report, err := c.store.Check(ctx, nil)
	if err != nil {
		return nil, errors.Join(err, c.store.Close())
	}
	for _, f := range report.Findings {
		c.v.wrong(f.Chain, "the store is damaged: %s %s %s", f.Class, f.Bucket, f.Detail)
	}
	return c, nil
}

type checker struct {
	v         *verdict
	store     *store.Store
	artifacts string
	trust     *keys.TrustList
	stories   map[events.Key]*story
	facts     map[events.Key]*facts
	lost      []store.LostRange
	anchors   map[string]anchors // of each producer
	files     map[string]file    // that must be there, by path below artifacts
}

func (c *checker) all(ctx context.Context) error {
	if err := c.history(); err != nil {
		return err
	}
	found, err := chains(c.store)
	if err != nil {
		return err
	}
	for _, key := range found {
		if c.stories[key] == nil {
			c.v.wrong(key, "no producer ever wrote it")
			continue
		}
		if c.facts[key], err = readFacts(c.store, key); err != nil {
			return err
		}
	}
	c.anchor()
	for key, s := range c.stories {
		f := c.facts[key]
		if f == nil {
			c.chain(s, &facts{})
			continue
		}
		undisturbed := c.chain(s, f)
		if err := c.sealed(ctx, s, f, undisturbed); err != nil {
			return err
		}
	}
	return c.tree()
}

// anchor finds out what is known of the epochs of acknowledgements.
func (c *checker) anchor() {
	for key, f := range c.facts {
		a := c.anchors[key.Tenant]
		a.anchor(c.stories[key], f)
		c.anchors[key.Tenant] = a
	}
	for _, a := range c.anchors {
		a.sort()
	}
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

// chain wants every message of a chain where it must be, and no others. It tells
// whether nothing happened to the chain.
func (c *checker) chain(s *story, f *facts) (undisturbed bool) {
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
	return f.record != nil && c.coverage(s, f, missing)
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
	case c.named(s, t) && !t.durable:
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

// named tells whether every acknowledged copy is in a lost range, of an epoch in
// which it can have been acknowledged: sequences come again.
func (c *checker) named(s *story, t *told) bool {
	for _, copy := range t.acked {
		if !slices.ContainsFunc(c.lost, func(l store.LostRange) bool {
			return l.From <= copy.seq && copy.seq <= l.To && c.anchors[s.key.Tenant].possible(copy.order, l.Epoch)
		}) {
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
func (c *checker) coverage(s *story, f *facts, missing bool) (undisturbed bool) {
	coverage, why := f.record.Coverage()
	switch {
	case missing && f.record.Fixed == nil:
		c.v.count("chains that never ended and lost something")
	case missing && coverage != events.Incomplete && forgotten(s, f):
		c.v.count("chains that lost their end, or all, with a producer that forgot it")
	case missing && coverage != events.Incomplete && !onlyLate(s, f):
		c.v.wrong(s.key, "it lost events and its coverage is %s %v:%s", coverage, why, s.account(f))
	case missing:
		c.v.count("chains that say they are incomplete")
	}
	calm := !missing && s.flavour == flavourPublished && s.finished && len(s.resumed) == 0 && len(f.record.Lost) == 0 && c.oneEpoch(f)
	if !calm {
		return false
	}
	c.v.count("undisturbed chains")
	if coverage != events.Complete || f.record.State.ProducerHead != events.HeadAgrees {
		c.v.wrong(s.key, "undisturbed, and its coverage is %s %v, its producer's head %q", coverage, why, f.record.State.ProducerHead)
	}
	return true
}

// forgotten tells whether broker and daemon had both not kept the end of the
// chain, or the whole of it, when another life of the producer took it up that
// knew only what the stream held: it gave the lost numbers to others, so what it
// then declares is complete, and that there was more nobody can know but the life
// that was killed. What is lost behind something that is there, what is lost
// later, and what a life that kept its last acknowledgement misses, is noticed.
func forgotten(s *story, f *facts) bool {
	return slices.ContainsFunc(s.forgot, func(at int) bool {
		end := -1 // of what was left
		for _, t := range s.told {
			if t.order < at && len(f.at(t)) > 0 {
				end = max(end, t.order)
			}
		}
		return !slices.ContainsFunc(s.told, func(t *told) bool {
			return (t.order < end || t.order > at) && t.isAcked() && len(f.at(t)) == 0 && !f.refused(t)
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
