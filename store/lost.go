package store

import "sort"

// lostAcross returns the ranges that were lost while the chain was open, and the
// last loss before it when nothing shows that the chain's first event is its
// beginning. IDs and the arrival numbers at which ranges were recorded rise
// together.
func (v *view) lostAcross(st *standing, begins bool) ([]LostRange, error) {
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
	if !begins {
		if from, err = v.lossBefore(from); err != nil {
			return nil, err
		}
	}
	all, err := v.lostRanges(uint64(from), maxLostPerChain)
	if err != nil || st.fixedArrival == 0 {
		return all, err
	}
	within := sort.Search(len(all), func(i int) bool { return all[i].Arrival > st.fixedArrival })
	return all[:within], nil
}

// lossBefore steps from the first id records of lost ranges back over the last of
// them, and over those that one loss was recorded in with it.
func (v *view) lossBefore(id int) (int, error) {
	var next LostRange
	for ; id > 0; id-- {
		var l LostRange
		if _, err := v.read(tableLost, key64(uint64(id)), &l); err != nil {
			return 0, err
		}
		if next.Epoch != 0 && (l.Epoch != next.Epoch || l.To+1 != next.From || l.Why != next.Why) {
			break
		}
		next = l
	}
	return id, nil
}
