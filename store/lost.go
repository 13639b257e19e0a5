package store

import "sort"

// lostAcross returns the ranges that were lost while the chain was open. IDs and
// the arrival numbers at which ranges were recorded rise together.
func (v *view) lostAcross(st *standing) ([]LostRange, error) {
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
	all, err := v.lostRanges(uint64(from), maxLostPerChain)
	if err != nil || st.fixedArrival == 0 {
		return all, err
	}
	within := sort.Search(len(all), func(i int) bool { return all[i].Arrival > st.fixedArrival })
	return all[:within], nil
}
