package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/chaind/chaind/events"
)

// Check walks everything and reports what does not fit:
//
//	pages    every page is used once or free, every tree is in order; otherwise
//	         the rest, which follows the trees, is left out, and a finding says so
//	journal  every entry up to the last one at the start, its checksum and chain
//	chains   every segment from genesis, hashed and linked again, against the
//	         state; every list, id, run and preimage against the journal
//	indexes  names, ids, lists, runs, rejections, epochs, seal jobs and results,
//	         the other way round, and by number
//
// The store may be in use meanwhile: what arrives after the start is left to
// the next check. Only the first phase holds one transaction throughout, during
// which the file may grow. Memory is bounded. The error is about not being able
// to check; findings are in the report.
func (s *Store) Check(ctx context.Context, progress func(CheckProgress)) (*CheckReport, error) {
	return s.CheckFrom(ctx, new(Checkpoint), progress)
}

// CheckFrom is Check, taken up at the place of an earlier one that was
// interrupted. It moves at along; while progress is called, and when an error
// was returned, at is where the next one can go on. ErrCheckpoint: at belongs to
// another database, or this one has changed since; at is as it was.
func (s *Store) CheckFrom(ctx context.Context, at *Checkpoint, progress func(CheckProgress)) (*CheckReport, error) {
	s.long.RLock()
	defer s.long.RUnlock()
	c := &checker{s: s, ctx: ctx, tell: progress, kept: at, place: *at}
	err := c.begin()
	if errors.Is(err, ErrCheckpoint) {
		return nil, err
	}
	if err != nil {
		if err := c.cut("database", err); err != nil {
			return nil, fmt.Errorf("check store: %w", err)
		}
		return &c.place.report, nil
	}
	phases := []struct {
		name string
		look func() error
	}{{"pages", c.pages}, {"journal", c.journal}, {"chains", c.chains}, {"indexes", c.indexes}}
	for c.place.phase < uint64(len(phases)) {
		phase := phases[c.place.phase]
		err := phase.look()
		if errors.Is(err, errPages) {
			c.enter(uint64(len(phases))) // the finding says what was not looked at
			break
		}
		if err := c.cut(phase.name, err); err != nil {
			return nil, fmt.Errorf("check store: %w", err)
		}
		c.enter(c.place.phase + 1)
	}
	return &c.place.report, nil
}

// begin makes sure that the check and the database belong together.
func (c *checker) begin() error {
	var n counters
	err := c.s.settled(c.ctx, func() { n, c.asides = c.s.n, c.s.asidesOnRecord() })
	if err != nil {
		c.place.report.StoreID = c.s.identity.id
		return err
	}
	var tx uint64
	if err := c.s.view(func(v *view) error { tx = uint64(v.tx.ID()); return nil }); err != nil {
		return err
	}
	if c.place.phase == 0 {
		c.place = Checkpoint{tx: tx, n: n, report: CheckReport{StoreID: c.s.identity.id}}
		if c.s.unsynced != "" && c.s.readOnly { // else it is being made good
			c.add(&CorruptError{Class: Torn, Detail: c.s.unsynced + "; the next start of the daemon checks the database and writes it anew"})
		}
		if c.s.torn {
			return c.add(&CorruptError{Class: Torn, Detail: "one meta page was damaged when the store was opened"})
		}
		return nil
	}
	if c.place.report.StoreID != c.s.identity.id || c.place.tx != tx || c.place.n != n {
		return ErrCheckpoint
	}
	return nil
}

// cut makes a finding of damage in whose face a part of the check cannot go on;
// the other parts do. Other errors end the check.
func (c *checker) cut(part string, err error) error {
	bad, ok := errors.AsType[*CorruptError](err)
	if !ok {
		return err
	}
	damage := *bad
	damage.Detail += "; the rest of the " + part + " was not looked at"
	return c.add(&damage)
}

// fresh returns the counters after making sure that memory is what the database
// says: after a failed transaction it is read anew only with the next one.
func (s *Store) fresh(ctx context.Context) (n counters, err error) {
	err = s.settled(ctx, func() { n = s.n })
	return n, err
}

// settled runs look over memory that is what the database says, while nobody writes.
func (s *Store) settled(ctx context.Context, look func()) error {
	select {
	case s.token <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.done:
		return ErrClosed
	}
	defer func() { <-s.token }()
	if s.stale {
		if err := s.recover(); err != nil {
			return err
		}
	}
	look()
	return nil
}

// checker is a check that is running.
type checker struct {
	s       *Store
	ctx     context.Context
	tell    func(CheckProgress)
	place   Checkpoint
	kept    *Checkpoint       // the caller's
	settled bool              // runs whose segment was not there are being looked at again
	asides  map[uint64]*aside // chains that were on record as set aside at the beginning, by number
}

// add turns an error about a value into a finding. Other errors end the check.
func (c *checker) add(err error) error {
	var bad *CorruptError
	if !errors.As(err, &bad) {
		return err
	}
	if len(c.place.report.Findings) == MaxFindings {
		c.place.report.More++
		return nil
	}
	chain, class := bad.Chain, cmp.Or(bad.Class, Mismatch)
	if a := c.asideOf(bad); a != nil {
		chain = a.key
	}
	c.place.report.Findings = append(c.place.report.Findings, Finding{Class: class, Chain: chain, Bucket: bad.Bucket,
		Key: bad.Key, Detail: bad.Detail})
	return nil
}

func (c *checker) step(phase string, done, total uint64) error {
	if c.tell != nil {
		c.tell(CheckProgress{Phase: phase, Done: done, Total: total})
	}
	return c.ctx.Err()
}

// pages looks at the file beneath the values.
func (c *checker) pages() error {
	const tries = 100
	for range tries {
		done, err := c.pageSnapshot()
		if done || err != nil {
			return err
		}
	}
	return errors.New("the pages change too fast to be looked at")
}

func (c *checker) pageSnapshot() (done bool, err error) {
	err = c.s.view(func(v *view) error {
		p, err := snapshotPages(c.s.mark.f, uint64(v.tx.ID()))
		if p == nil || err != nil {
			return err
		}
		done = true
		w := &pageWalk{pageFile: p}
		w.finding = func(detail string) { c.add(&CorruptError{Class: Mismatch, Detail: detail}) }
		w.progress = func(done, total uint64) error {
			if done%1024 != 0 {
				return nil
			}
			return c.step("pages", done, total)
		}
		if err := w.run(); err != nil || !w.broken {
			return err
		}
		c.add(&CorruptError{Class: Mismatch, Detail: errPages.Error() + ": the values in them were not looked at"})
		return errPages
	})
	return done, err
}

// sweep visits all values of a table in short transactions; damaged ones become
// findings, as do errors about values that visit returns.
func (c *checker) sweep(t *table, phase string, total uint64, visit func(v *view, k, payload []byte) error) error {
	at := &c.place
	for more := true; more; {
		c.mark()
		if err := c.step(phase, at.done, total); err != nil {
			return err
		}
		more = false
		err := c.s.view(func(v *view) error {
			b, err := v.bucket(t)
			if err != nil {
				return err
			}
			cursor := b.Cursor()
			budget := cmp.Or(c.s.testingOnly.scan, scanPerTx)
			for k, value := cursor.Seek(at.from); k != nil; k, value = cursor.Next() {
				if budget == 0 {
					more = true
					return nil
				}
				budget--
				at.done++
				at.from = append(append(at.from[:0], k...), 0)
				if err := c.value(v, t, k, value, visit); err != nil {
					return err
				}
			}
			return nil
		})
		if err := c.add(err); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) value(v *view, t *table, k, value []byte, visit func(v *view, k, payload []byte) error) error {
	c.place.report.Values++
	one := func(k, raw []byte) error {
		payload, err := v.open(t, k, raw)
		if err == nil {
			err = visit(v, k, payload)
		}
		return c.add(err)
	}
	if t != tableJournal {
		return one(k, value)
	}
	return c.add(inValue(k, value, func(arrival uint64, raw []byte) (bool, error) {
		return true, one(key64(arrival), raw)
	}))
}

// journal reads every entry.
func (c *checker) journal() error {
	return c.sweep(tableJournal, "journal", c.place.n.arrivals, func(v *view, k, payload []byte) error {
		at := number(k)
		if at > c.place.n.arrivals {
			return nil
		}
		var hole error
		if want := c.place.entry + 1; at != want {
			hole = missing(tableJournal, key64(want), "the entry")
		}
		c.place.entry = at
		c.place.report.Records++
		e, err := decodeEntry(at, payload)
		if err != nil {
			return errors.Join(hole, err)
		}
		if c.asides[e.chain] == nil {
			c.countEntry(e)
		}
		if e.chain == 0 || e.chain > c.place.n.chains {
			return contradicts(tableJournal, k, fmt.Sprintf("the entry names chain number %d of %d", e.chain, c.place.n.chains))
		}
		return hole
	})
}

func (c *checker) countEntry(e *entry) {
	for l := range numLists {
		if e.lists()&(1<<l) != 0 {
			c.place.inLists[l]++
		}
	}
	if e.holds() {
		c.place.holding++
	}
}

// holds tells whether the entry occupies its event id.
func (e *entry) holds() bool {
	return e.EventID != "" && e.verdict != events.Duplicate && e.verdict != events.Rejected
}

// chains looks at every chain from its first segment on.
func (c *checker) chains() error {
	at := &c.place
	for at.chain < at.n.chains {
		c.mark()
		if err := c.step("chains", at.chain, at.n.chains); err != nil {
			return err
		}
		// A transaction of its own, so that no chain is walked inside the one that found it.
		found, err := c.record(at.chain + 1)
		if a := c.asides[at.chain+1]; err == nil && a != nil {
			at.report.Chains++
			err = c.add(a.damage())
		} else if err == nil && found {
			at.report.Chains++
			err = c.add(c.chain(at.chain + 1))
		}
		if err != nil {
			return err
		}
		at.chain++
	}
	if at.report.Chains != at.n.chains {
		c.add(contradicts(tableMeta, metaCounters, fmt.Sprintf("%d chains were counted, and %d have a record", at.n.chains, at.report.Chains)))
	}
	return nil
}

// record checks the record of a chain, and says whether there is one to go by.
func (c *checker) record(no uint64) (found bool, err error) {
	err = c.s.view(func(v *view) error {
		b, err := v.bucket(tableChains)
		if err != nil {
			return err
		}
		value := b.Get(key64(no))
		if value == nil {
			return nil
		}
		return c.value(v, tableChains, key64(no), value, func(v *view, k, payload []byte) error {
			var rec chainRecord
			if err := decode(tableChains, k, payload, &rec); err != nil {
				return err
			}
			found = true
			leads, err := v.chainNumber(rec.key)
			if err == nil && leads != no {
				err = contradicts(tableChains, k, fmt.Sprintf("its name leads to chain number %d", leads))
			}
			return inChain(err, rec.key)
		})
	})
	return found, c.add(err)
}
