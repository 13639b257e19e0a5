package store

import "slices"

// asidesOnRecord are the chains that the database says are set aside, by number;
// those whose damage was found when it was opened, and is in no transaction yet, are
// not among them. The caller holds the token.
func (s *Store) asidesOnRecord() map[uint64]*aside {
	m := make(map[uint64]*aside, len(s.aside))
	for _, a := range s.aside {
		if !slices.Contains(s.unread, a) {
			m[a.no] = a
		}
	}
	return m
}

// notOf leaves out the findings that are only about the chains that are set aside:
// whatever is counted leaves such chains out on both sides.
func notOf(asides map[uint64]*aside, findings []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool {
		for _, a := range asides {
			if a.key == f.Chain {
				return true
			}
		}
		return false
	})
}

// asideOf is the set-aside chain that a damaged value belongs to by its key; nil:
// it does not say, or belongs to another chain.
func (c *checker) asideOf(bad *CorruptError) *aside {
	k := bad.Key
	switch bad.Bucket {
	case tableChains.name, tableFixed.name, tableSeals.name, tableIDs.name, tableLists.name:
		if len(k) >= 8 {
			return c.asides[number(k)]
		}
	case tableRuns.name:
		if len(k) >= 8 {
			return c.asides[number(k[len(k)-8:])]
		}
	case tableJournal.name:
		if len(k) != 8 {
			return nil
		}
		for _, a := range c.asides {
			if a.has(number(k)) {
				return a
			}
		}
	}
	return nil
}
