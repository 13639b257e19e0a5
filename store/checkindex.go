package store

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// indexes walks the tables that lead to chains and entries, and compares the
// counts. An index whose every value leads to an entry of its own, and which has
// as many values as there are entries, is whole.
func (c *checker) indexes() error {
	parts := []struct {
		table *table
		total uint64
		visit func(v *view, k, payload []byte) error
	}{
		{tableNames, c.place.n.chains, c.name},
		{tableIDs, 0, c.chainPrefix},
		{tableLists, 0, c.chainPrefix},
		{tableRuns, 0, c.run},
		{tableRejections, c.place.n.rejections, c.rejection},
		{tableSeen, c.place.n.rejections, c.seen},
		{tablePreimages, 0, c.preimage},
		{tableFixed, 0, c.ended},
		{tableSeals, 0, c.ended},
		{tableJobs, c.place.n.pending, c.job},
		{tableEpochs, uint64(c.place.n.epochs), c.epoch},
		{tableLost, c.place.n.lost, c.lostRange},
		{tableMeta, 0, c.meta},
	}
	for at := &c.place; at.table < uint64(len(parts)); at.table++ {
		part := &parts[at.table]
		if err := c.sweep(part.table, "indexes", part.total, part.visit); err != nil {
			return err
		}
		at.from, at.done = nil, 0
	}
	if err := c.settleRuns(); err != nil {
		return err
	}
	return c.counts()
}

// settleRuns looks again at runs whose segment was not there: a commit may have
// been in the file already, and its chain in memory not yet.
func (c *checker) settleRuns() error {
	if len(c.place.unsettled) == 0 {
		return nil
	}
	if _, err := c.s.fresh(c.ctx); err != nil { // after whatever was being committed
		return err
	}
	keys := c.place.unsettled
	c.place.unsettled, c.settled = nil, true
	chains := make([]events.Key, len(keys))
	err := c.s.view(func(v *view) error {
		for i, k := range keys {
			payload, err := v.get(tableRuns, k)
			if err != nil {
				continue // the look below says so
			}
			if r, err := v.run(k, payload); err == nil {
				chains[i] = r.Key
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	// This time memory is looked at before the transaction begins, which so has
	// what memory has let go of.
	_, err = c.s.judged(len(keys), func(i int) events.Key { return chains[i] }, func(v *view, i int, m *memory) (bool, error) {
		payload, err := v.get(tableRuns, keys[i])
		if err == nil {
			err = c.runOf(v, keys[i], payload, m.view, m.there)
		}
		return true, c.add(err)
	})
	return err
}

func (c *checker) counts() error {
	c.compare(tableLost, "lost ranges", c.place.n.lost, c.place.lost)
	c.compare(tableLost, "lost events", c.place.n.lostEvents, c.place.lostEvent)
	c.compare(tableEpochs, "epochs", uint64(c.place.n.epochs), c.place.epochs)
	c.compare(tableNames, "chain names", c.place.n.chains, c.place.numbered)
	c.compare(tableIDs, "event ids", c.place.holding, c.place.held)
	for l := range numLists {
		c.compare(tableLists, fmt.Sprintf("elements of the chains' lists %d", l), c.place.inLists[l], c.place.listed[l])
	}
	now, err := c.s.fresh(c.ctx) // after whatever was being committed
	if err != nil {
		return err
	}
	if now.jobs == c.place.n.jobs && now.pending == c.place.n.pending { // nobody sealed anything meanwhile
		c.compare(tableJobs, "seal jobs", c.place.n.pending, c.place.waiting)
		c.compare(tableJobs, "seal jobs for finished chains without a seal", c.place.unsealed, c.place.waiting)
	}
	return nil
}

func (c *checker) compare(t *table, what string, want, got uint64) {
	if want != got {
		c.add(contradicts(t, nil, fmt.Sprintf("%d %s, and there should be %d", got, what, want)))
	}
}

func (c *checker) name(v *view, k, payload []byte) error {
	key, no, err := readName(k, payload)
	if err != nil {
		return err
	}
	if no > c.place.n.chains {
		return nil
	}
	c.place.numbered++
	rec, err := v.chainRecord(no)
	if err == nil && rec.key != key {
		err = contradicts(tableNames, k, "the name leads to another chain")
	}
	return inChain(err, key)
}

// chainPrefix makes sure that values keyed by chain belong to one.
func (c *checker) chainPrefix(v *view, k, _ []byte) error {
	if len(k) < 9 {
		return corrupt(tableIDs, k, errCoding.Error())
	}
	if c.asides[number(k)] != nil {
		return nil
	}
	_, err := v.chainRecord(number(k))
	return err
}

func (c *checker) run(v *view, k, payload []byte) error {
	if len(k) >= 8 && c.asides[number(k[len(k)-8:])] != nil {
		return nil
	}
	r, err := v.run(k, payload)
	if err != nil {
		return err
	}
	cv, inMemory := c.s.peek(r.Key)
	return c.runOf(v, k, payload, cv, inMemory)
}

// runOf is run with what is in memory of the chain.
func (c *checker) runOf(v *view, k, payload []byte, cv chainView, inMemory bool) error {
	r, err := v.run(k, payload)
	if err != nil {
		return err
	}
	no := number(k[len(k)-8:])
	if !inMemory {
		rec, err := v.chainRecord(no)
		if err != nil {
			return err
		}
		cv = rec.view(no)
	}
	arrivals, err := v.arrivals(&cv, listSegments, r.Seq, 1)
	if err != nil || len(arrivals) == 0 && cv.last.lastArrival == 0 {
		return err // not published yet
	}
	if len(arrivals) == 0 && !c.settled && len(c.place.unsettled) < MaxFindings {
		c.place.unsettled = append(c.place.unsettled, bytes.Clone(k))
		return nil
	}
	if len(arrivals) == 0 {
		return inChain(missing(tableRuns, k, "the segment of the run"), r.Key)
	}
	e, err := v.journal(arrivals[0])
	if err != nil || e == nil {
		return err // reported with the journal
	}
	if kind, ok := e.kind.(*segments.RunSealed); !ok || kind.RunID != r.RunID || e.seq != r.Seq {
		return inChain(contradicts(tableRuns, k, "the run leads to another segment"), r.Key)
	}
	return nil
}

func (c *checker) rejection(v *view, k, payload []byte) error {
	r := rejection{Rejection: events.Rejection{ID: number(k)}}
	if err := decode(tableRejections, k, payload, &r); err != nil {
		return err
	}
	id, err := v.get(tableSeen, seenKey(r.Epoch, r.StreamSeq))
	if err != nil {
		return err
	}
	if id == nil {
		return missing(tableSeen, seenKey(r.Epoch, r.StreamSeq), "the place of the rejection")
	}
	whole := r.Class != events.TooLarge && len(r.Payload) < maxRejectedPayload // others may be cut
	if whole && segments.Sum(r.Payload) != r.Sum {
		return inChain(contradicts(tableRejections, k, "the rejected bytes have another digest"), r.Key)
	}
	if !r.Attributed || r.Class == events.ChainDamaged {
		return nil
	}
	e, err := v.journal(r.arrival)
	if err == nil && (e == nil || e.verdict != events.Rejected || e.rejection != r.ID) {
		err = contradicts(tableRejections, k, "the rejection leads to another entry")
	}
	return inChain(err, r.Key)
}

func (c *checker) seen(v *view, k, payload []byte) error {
	if len(payload) != 8 {
		return corrupt(tableSeen, k, errCoding.Error())
	}
	r, err := v.rejection(number(payload))
	if err == nil && !bytes.Equal(k, seenKey(r.Epoch, r.StreamSeq)) {
		err = contradicts(tableSeen, k, "the place leads to another rejection")
	}
	return err
}

func (c *checker) preimage(v *view, k, payload []byte) error {
	var p preimages
	if err := decode(tablePreimages, k, payload, &p); err != nil {
		return err
	}
	e, err := v.journal(number(k))
	if err == nil && (e == nil || !e.preimages) {
		err = contradicts(tablePreimages, k, "the preimage belongs to no entry")
	}
	return err
}

// ended makes sure that ends and seals belong to chains; chain looks at what
// they say.
func (c *checker) ended(v *view, k, _ []byte) error {
	_, err := v.chainRecord(number(k))
	return err
}

func (c *checker) job(v *view, k, payload []byte) error {
	c.place.waiting++
	var j jobRecord
	if err := decode(tableJobs, k, payload, &j); err != nil {
		return err
	}
	if c.asides[j.chain] != nil {
		c.place.unsealed++
		return nil
	}
	f, err := v.fixed(j.chain)
	switch {
	case err != nil:
		return err
	case f == nil:
		return missing(tableFixed, key64(j.chain), "the end of a chain with a seal job")
	}
	if r, err := v.sealResult(j.chain); err != nil || r == nil {
		return err
	}
	return inChain(contradicts(tableJobs, k, "the chain is sealed and waits for its seal"), f.State.Key)
}

func (c *checker) epoch(_ *view, k, payload []byte) error {
	var e Epoch
	if err := decode(tableEpochs, k, payload, &e); err != nil {
		return err
	}
	if number(k) <= uint64(c.place.n.epochs) {
		c.place.epochs++
	}
	if uint64(e.Number) != number(k) || e.Applied < e.Base {
		return contradicts(tableEpochs, k, "the epoch ends before it begins")
	}
	return nil
}

func (c *checker) lostRange(_ *view, k, payload []byte) error {
	var l LostRange
	if err := decode(tableLost, k, payload, &l); err != nil {
		return err
	}
	if l.From > l.To {
		return contradicts(tableLost, k, "the range ends before it begins")
	}
	if number(k) <= c.place.n.lost {
		c.place.lost++
		c.place.lostEvent += l.To - l.From + 1
	}
	return nil
}

// meta reads the names that this program knows.
func (c *checker) meta(_ *view, k, payload []byte) error {
	var r record
	var s settings
	switch _, ok := settingsArrival(k); {
	case ok:
		r = &s
	case bytes.Equal(k, metaIdentity):
		r = new(identity)
	case bytes.Equal(k, metaCounters):
		r = new(counters)
	case bytes.Equal(k, metaLife):
		r = new(life)
	case bytes.HasPrefix(k, asidePrefix):
		r = new(aside)
	case bytes.HasPrefix(k, missedPrefix):
		r = new(LostRange)
	case bytes.HasPrefix(k, latePrefix):
		r = new(late)
	default:
		return nil
	}
	if err := decode(tableMeta, k, payload, r); err != nil {
		return err
	}
	if r != &s {
		return nil
	}
	before := c.place.settings
	c.place.settings = s.number
	switch {
	case s.number != before+1:
		return missing(tableMeta, k, "the record of stream settings before")
	case !slices.Equal(s.weak, sortedUnion(s.weak)):
		return contradicts(tableMeta, k, "the settings are not in order")
	}
	return nil
}
