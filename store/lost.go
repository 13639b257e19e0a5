package store

import (
	"sort"

	"github.com/chaind/chaind/events"
)

// lostAcross returns the ranges that were lost while the chain was open, and the
// last one before it when nothing shows that the chain's first event is its
// beginning. IDs and the arrival numbers at which ranges were recorded rise
// together.
func (v *view) lostAcross(st *standing, state *events.State) ([]LostRange, error) {
	b, err := v.bucket(tableLost)
	if err != nil {
		return nil, err
	}
	last, _ := b.Cursor().Last()
	if last == nil {
		return nil, nil
	}
	from := sort.Search(int(number(last)), func(i int) bool {
		var l LostRange
		_, e := v.read(tableLost, key64(uint64(i)+1), &l)
		if e != nil {
			err = e
		}
		return l.Arrival > st.firstArrival
	})
	if err != nil {
		return nil, err
	}
	if from > 0 && !state.Begins() {
		from--
	}
	all, err := v.lostRanges(uint64(from), maxLostPerChain)
	if err != nil || st.fixedArrival == 0 {
		return all, err
	}
	within := sort.Search(len(all), func(i int) bool { return all[i].Arrival > st.fixedArrival })
	return all[:within], nil
}
