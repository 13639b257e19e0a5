package store

import (
	"container/list"
	"encoding/binary"

	"github.com/chaind/chaind/events"
)

// list is one of a chain's lists of arrival numbers.
type listing byte

const (
	listSegments listing = iota
	listAttempts
	listAddenda
	listPreimages
	listRejected
	numLists
)

// pend is an entry of a chain that is in the journal only: the chain's stored
// state and lists do not know of it yet.
type pend struct {
	arrival uint64
	lists   uint8 // bit l is set: the entry stands in list l
}

// standing is where a chain stands, beside its state.
type standing struct {
	firstArrival uint64
	lastArrival  uint64 // of the last entry that the stored state has in it; 0: none
	epoch        uint32 // of that entry
	streamSeq    uint64 // of that entry
	fixedArrival uint64 // of the seal that ended the chain; 0: open
	counts       [numLists]uint64
}

func (s *standing) fields(c *codec) {
	c.uint(&s.firstArrival)
	c.uint(&s.lastArrival)
	c.uint32(&s.epoch)
	c.uint(&s.streamSeq)
	c.uint(&s.fixedArrival)
	for i := range s.counts {
		c.uint(&s.counts[i])
	}
}

// advance moves the standing over one more entry.
func (s *standing) advance(e *entry, lists uint8) {
	s.over(e.Arrival, e.Epoch, e.StreamSeq, lists)
	if e.verdict == events.Finished {
		s.fixedArrival = e.Arrival
	}
}

// over is advance for an entry that does not end the chain.
func (s *standing) over(arrival uint64, epoch uint32, streamSeq uint64, lists uint8) {
	s.lastArrival, s.epoch, s.streamSeq = arrival, epoch, streamSeq
	if s.firstArrival == 0 {
		s.firstArrival = arrival
	}
	for l := range numLists {
		if lists&(1<<l) != 0 {
			s.counts[l]++
		}
	}
}

// lists tells in which lists of its chain an entry stands.
func (e *entry) lists() uint8 {
	var set uint8
	if e.segment {
		set |= 1 << listSegments
	}
	if e.preimages {
		set |= 1 << listPreimages
	}
	switch e.verdict {
	case events.Attempted:
		set |= 1 << listAttempts
	case events.Late:
		set |= 1 << listAddenda
	case events.Rejected:
		set |= 1 << listRejected
	}
	return set
}

// chainRecord is a value of the chain table: the chain as of its last flush.
type chainRecord struct {
	key events.Key
	standing
	state []byte // encoded State; empty: nothing has been flushed yet
}

func (r *chainRecord) fields(c *codec) {
	c.key(&r.key)
	r.standing.fields(c)
	c.bytes(&r.state)
}

// chainView is a chain as of one commit. Copies share pending, of which only
// what lies beyond their length ever changes.
type chainView struct {
	no      uint64
	key     *events.Key // never changed; one for all copies, since the collector looks at each
	stored  standing    // as of the last flush
	pending []pend      // entries since
	last    standing    // with the pending entries
}

// view is a chain of which the database has everything.
func (r *chainRecord) view(no uint64) chainView {
	key := r.key
	return chainView{no: no, key: &key, stored: r.standing, last: r.standing}
}

// chain is a chain that the writer has in memory.
type chain struct {
	view     chainView // as of the last commit; guarded by Store.mu, copied by readers
	glance   *glance   // as of view, for lists; nil: nobody has asked lately; guarded likewise
	watched  watched
	attempts uint64 // under way as of view, if counted; guarded likewise

	// The rest belongs to the writer.
	next   chainView // as the running transaction will leave it
	state  *events.State
	ids    chainIDs      // empty without state
	recent *list.Element // in Store.recent, while state is there

	touched bool // in the running transaction
	flushed bool // in the running transaction
	counted bool // guarded by Store.mu
}

// chainRecord reads the record of a chain, which must exist.
func (v *view) chainRecord(no uint64) (*chainRecord, error) {
	r := new(chainRecord)
	found, err := v.read(tableChains, key64(no), r)
	if err == nil && !found {
		err = missing(tableChains, key64(no), "the record of the chain")
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// chainNumber finds the number of a chain; 0: there is none.
func (v *view) chainNumber(key events.Key) (uint64, error) {
	name := nameKey(key)
	payload, err := v.get(tableNames, name)
	if err != nil {
		return 0, err
	}
	if payload == nil {
		return 0, v.noName(name)
	}
	if len(payload) != 8 {
		return 0, corrupt(tableNames, name, errCoding.Error())
	}
	return binary.BigEndian.Uint64(payload), nil
}

// noName makes sure that there is no such name.
func (v *view) noName(name []byte) error {
	b, err := v.bucket(tableNames)
	if err != nil {
		return err
	}
	n := around(b.Cursor(), name)
	return v.absent(tableNames, name, name, &n)
}

// nameKey spells a key so that names sort by tenant, prompt hash, session and
// chain, and none is the beginning of another. Tokens hold no byte below '-'.
func nameKey(k events.Key) []byte {
	b := make([]byte, 0, len(k.Tenant)+len(k.PromptHash)+len(k.Session)+len(k.Chain)+3)
	b = append(append(b, k.Tenant...), 0)
	b = append(append(b, k.PromptHash...), 0)
	b = append(append(b, k.Session...), 0)
	return append(b, k.Chain...)
}

// replay brings a chain's stored state up to its pending entries: the one way
// in which a state comes into memory, after a restart, a failed transaction, an
// eviction, and for readers. The record may be newer than the view (it was
// flushed since); what it already has in it is skipped.
func (v *view) replay(cv *chainView) (*events.State, []heldID, standing, error) {
	rec, err := v.chainRecord(cv.no)
	if err != nil {
		return nil, nil, standing{}, inChain(err, *cv.key)
	}
	return v.replayFrom(rec, cv)
}

// replayFrom is replay from a record that may be further than the stored one.
func (v *view) replayFrom(rec *chainRecord, cv *chainView) (*events.State, []heldID, standing, error) {
	state, err := rec.decode(cv.no)
	if err != nil {
		return nil, nil, standing{}, err
	}
	last, ids := rec.standing, make([]heldID, 0, len(cv.pending))
	for _, p := range cv.pending {
		if p.arrival <= rec.lastArrival || p.arrival > v.horizon {
			continue
		}
		e, err := v.journal(p.arrival)
		if err == nil && e == nil {
			err = missing(tableJournal, key64(p.arrival), "the entry")
		}
		if err == nil {
			err = e.applyTo(state)
		}
		if err != nil {
			return nil, nil, standing{}, inChain(err, rec.key)
		}
		last.advance(e, p.lists)
		if e.EventID != "" && e.verdict != events.Duplicate {
			ids = append(ids, heldID{e.EventID, e.after()})
		}
	}
	return state, ids, last, nil
}

func (r *chainRecord) decode(no uint64) (*events.State, error) {
	if len(r.state) == 0 {
		return events.NewState(r.key), nil
	}
	state, err := events.DecodeState(r.state)
	if err != nil {
		return nil, inChain(corrupt(tableChains, key64(no), err.Error()), r.key)
	}
	return state, nil
}

// applyTo applies the entry again, and makes sure that it does what it did.
func (e *entry) applyTo(state *events.State) error {
	ev, known := e.event(state.Key)
	eff := state.Apply(ev, known)
	differs := ""
	switch again := e.record().Segment; {
	case eff.Verdict != e.verdict:
		differs = "the event was " + string(e.verdict) + ", and is " + string(eff.Verdict) + " when applied again"
	case (eff.Segment != nil) != e.segment:
		differs = "the event makes another segment when applied again"
	case e.segment && eff.Segment.Digest() != again.Digest():
		differs = "the segment has another digest when applied again"
	default:
		return nil
	}
	return contradicts(tableJournal, key64(e.Arrival), differs)
}

// inChain names the chain in a CorruptError.
func inChain(err error, key events.Key) error {
	if c, ok := err.(*CorruptError); ok && c.Chain == (events.Key{}) {
		c.Chain = key
	}
	return err
}
