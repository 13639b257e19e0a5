package store

import "hash/maphash"

// Most events are new. So that they need not be looked up in the database, a chain
// in memory knows its ids by their hashes: an id whose hash is not there is new, as
// far as the set is complete, which it is for a chain that began in this process.
// A hash that is there proves nothing, and the id itself is looked for. The sets of
// all chains have maxIDSlots places; a chain for which there is no more room keeps
// the ids of its pending entries only.
const (
	minIDSlots = 8       // places of the smallest set; a power of two, 4 bytes each
	maxIDSlots = 1 << 22 // places of all sets, 16 MiB, besides those that pending entries need

	sparedIDs   = 32 // pending ids for which a chain keeps the memory
	maxSpareIDs = 64 // larger pieces of memory kept for the next chain that needs one
)

// heldID is an event id and what it stands for.
type heldID struct {
	id string
	holder
}

// chainIDs are what a chain in memory knows of its ids.
type chainIDs struct {
	pending  []heldID // of the pending entries, each id once
	seen     hashSet  // of all that is pending, at least
	complete bool     // seen has all ids of the chain
}

// find gives what an id stands for by the pending entries; nil: they do not say.
func (c *chainIDs) find(id string) *holder {
	for i := len(c.pending) - 1; i >= 0; i-- {
		if c.pending[i].id == id {
			return &c.pending[i].holder
		}
	}
	return nil
}

// hashSet is an open-addressed set of hashes, 0 being an empty place.
type hashSet struct {
	slots []uint32
	n     int
}

// hashID never gives 0. The seed is the process's own, so that nobody can choose
// ids which fall together.
func (s *Store) hashID(id string) uint32 { return uint32(maphash.String(s.idSeed, id)) | 1 }

// place is where a hash is, or where it would be put.
func (s *hashSet) place(hash uint32) int {
	mask := len(s.slots) - 1
	i := int(hash>>1) & mask
	for s.slots[i] != 0 && s.slots[i] != hash {
		i = (i + 1) & mask
	}
	return i
}

func (s *hashSet) has(hash uint32) bool {
	return s.n > 0 && s.slots[s.place(hash)] == hash
}

func (s *hashSet) full() bool { return 4*(s.n+1) > 3*len(s.slots) }

// add puts a hash into a set that is not full.
func (s *hashSet) add(hash uint32) {
	if i := s.place(hash); s.slots[i] == 0 {
		s.slots[i] = hash
		s.n++
	}
}

// resize makes room for n places, a power of two, and keeps what is there.
func (s *hashSet) resize(n int) {
	old := s.slots
	*s = hashSet{slots: make([]uint32, n)}
	for _, hash := range old {
		if hash != 0 {
			s.add(hash)
		}
	}
}

// hold notes what an id of the chain stands for now. The string is kept.
func (s *Store) hold(c *chain, id string, h holder) {
	hash := s.hashID(id)
	if c.ids.seen.has(hash) {
		if known := c.ids.find(id); known != nil {
			*known = h
			return
		}
	}
	if n := len(c.ids.pending); n == cap(c.ids.pending) && n >= sparedIDs {
		s.takeSpare(c)
	}
	c.ids.pending = append(c.ids.pending, heldID{id, h})
	if c.ids.seen.full() {
		s.growIDs(c)
	}
	c.ids.seen.add(hash)
}

// growIDs makes room for one more id, or gives up the ids that are stored.
func (s *Store) growIDs(c *chain) {
	was := len(c.ids.seen.slots)
	n := max(2*was, minIDSlots)
	if !c.ids.complete || s.idSlots+n-was <= s.maxIDSlots {
		c.ids.seen.resize(n)
		s.idSlots += n - was
		return
	}
	s.shrinkIDs(c)
	for n = minIDSlots; 4*(len(c.ids.pending)+1) > 3*n; {
		n *= 2
	}
	c.ids.seen.resize(n)
	s.idSlots += n
	for i := range c.ids.pending {
		c.ids.seen.add(s.hashID(c.ids.pending[i].id))
	}
}

// shrinkIDs forgets all ids that are not pending.
func (s *Store) shrinkIDs(c *chain) {
	s.idSlots -= len(c.ids.seen.slots)
	c.ids.seen, c.ids.complete = hashSet{}, false
}

// takeSpare gives a chain with many pending ids the memory that another one had for
// its own.
func (s *Store) takeSpare(c *chain) {
	if last := len(s.spareIDs) - 1; last >= 0 && cap(s.spareIDs[last]) > len(c.ids.pending) {
		c.ids.pending = append(s.spareIDs[last], c.ids.pending...)
		s.spareIDs = s.spareIDs[:last]
	}
}

// flushedIDs forgets the pending ids, which are stored now.
func (s *Store) flushedIDs(c *chain) {
	all := c.ids.pending[:cap(c.ids.pending)]
	clear(all)
	c.ids.pending = all[:0]
	if cap(all) > sparedIDs {
		c.ids.pending = nil
		if len(s.spareIDs) < maxSpareIDs {
			s.spareIDs = append(s.spareIDs, all[:0])
		}
	}
	if !c.ids.complete {
		clear(c.ids.seen.slots)
		c.ids.seen.n = 0
	}
}

// forgetIDs gives back what the chain's ids take.
func (s *Store) forgetIDs(c *chain) {
	s.shrinkIDs(c)
	c.ids.pending = nil
}
