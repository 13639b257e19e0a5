package main

import (
	"cmp"
	"slices"
)

// anchors are the acknowledgements of one producer of which the store tells in
// which epoch they were given, in the order of its diary. The others lie between
// them: a producer writes one event at a time, and epochs follow one another.
type anchors []anchor

type anchor struct {
	order int
	epoch uint32
}

// anchor adds what the store knows of a chain.
func (a *anchors) anchor(s *story, f *facts) {
	for _, t := range s.told {
		for _, copy := range t.acked {
			for _, p := range f.at(t) {
				if p.seq == copy.seq {
					*a = append(*a, anchor{copy.order, p.epoch})
				}
			}
			for _, r := range f.rejected {
				if r.StreamSeq == copy.seq && r.Sum.String() == t.sum {
					*a = append(*a, anchor{copy.order, r.Epoch})
				}
			}
		}
	}
}

func (a anchors) sort() {
	slices.SortFunc(a, func(x, y anchor) int { return cmp.Compare(x.order, y.order) })
}

// possible tells whether an acknowledgement at this place of the diary may have
// been given in the epoch: not before the one of the anchor before it, and not
// after the one of the anchor behind it.
func (a anchors) possible(order int, epoch uint32) bool {
	i, _ := slices.BinarySearchFunc(a, order, func(x anchor, order int) int { return cmp.Compare(x.order, order) })
	return (i == 0 || a[i-1].epoch <= epoch) && (i == len(a) || epoch <= a[i].epoch)
}
