package store

import (
	"bytes"
	"encoding/base64"
	"errors"
	"slices"
	"sort"
	"strings"

	"github.com/chaind/chaind/events"
)

// A cursor is the key of the last entry looked at, in base64.

func cursor(key []byte) string { return base64.RawURLEncoding.EncodeToString(key) }

// start is the first key after a cursor, or the prefix when there is none.
func start(after string, prefix []byte) ([]byte, error) {
	if after == "" {
		return prefix, nil
	}
	key, err := base64.RawURLEncoding.DecodeString(after)
	if err != nil || !bytes.HasPrefix(key, prefix) {
		return nil, ErrCursor
	}
	return append(key, 0), nil
}

// scan is a walk over a table for a filtered page. It is cut into short
// transactions; every one begins after the last key of the one before.
type scan struct {
	table  *table
	prefix []byte
	from   []byte
	limit  int // entries to find
	// match looks at one entry and tells whether it went into the page.
	match func(v *view, k, payload []byte) (bool, error)

	last          []byte // key looked at last
	found, looked int
	full          bool // match wants no more in this page
	more          bool // there is something behind last
}

// run returns the key that the page ends with; nil: there is nothing more.
func (sc *scan) run(s *Store) ([]byte, error) {
	sc.more = true
	for sc.more && !sc.done() && sc.looked < scanPerPage {
		sc.more = false
		if err := s.view(sc.piece); err != nil {
			return nil, err
		}
		sc.from = append(bytes.Clone(sc.last), 0)
	}
	if !sc.more {
		return nil, nil
	}
	return sc.last, nil
}

func (sc *scan) done() bool { return sc.full || sc.found >= sc.limit }

// piece is the part of a scan that one transaction does.
func (sc *scan) piece(v *view) error {
	entries, size := scanPerTx, maxPageBytes
	return v.each(sc.table, sc.from, func(k, payload []byte) (bool, error) {
		if !bytes.HasPrefix(k, sc.prefix) {
			return false, nil
		}
		if sc.more = entries == 0 || size <= 0 || sc.done(); sc.more {
			return false, nil
		}
		entries--
		size -= len(payload)
		sc.looked++
		sc.last = append(sc.last[:0], k...)
		ok, err := sc.match(v, k, payload)
		if ok {
			sc.found++
		}
		return true, err
	})
}

// found is what a scan found, before the chain that it is about has been read.
type found[T any] struct {
	chain events.Key
	item  T
	at    []byte // key in the table
}

// pageOf makes a page of a list of chains, where memory and the database count. In
// one transaction it walks a piece of the table and only notes the chains; then it
// looks at memory; then another transaction, which so knows at least as much as
// memory did (see withChain), judges them. Were memory looked at while the first
// one runs, a chain that is flushed meanwhile would be in neither: memory has let
// go of its entries, and the transaction does not know yet that they are stored.
// It returns the key that the page ends with; nil: there is nothing more.
func pageOf[T any](s *Store, sc *scan, limit int, find func(v *view, k, payload []byte) (*found[T], error),
	judge func(*view, *memory, *found[T]) (bool, error)) (page []T, last []byte, err error) {
	var batch []*found[T]
	sc.match = func(v *view, k, payload []byte) (bool, error) {
		f, err := find(v, k, payload)
		if f == nil || err != nil {
			return false, err
		}
		f.at = bytes.Clone(k)
		batch = append(batch, f)
		return true, nil
	}
	for {
		batch, sc.found, sc.limit = batch[:0], 0, min(max(limit-len(page), leastBatch), scanPerTx)
		if last, err = sc.run(s); err != nil {
			return nil, nil, err
		}
		looked, err := s.judged(len(batch), func(i int) events.Key { return batch[i].chain }, func(v *view, i int, m *memory) (bool, error) {
			ok, err := judge(v, m, batch[i])
			if ok {
				page = append(page, batch[i].item)
			}
			return len(page) < limit, err
		})
		switch {
		case err != nil:
			return nil, nil, err
		case looked < len(batch):
			return page, batch[looked-1].at, nil
		case len(page) == limit || last == nil || sc.looked >= scanPerPage:
			return page, last, nil
		}
	}
}

// leastBatch is how many chains a filtered list judges in one transaction, at least.
const leastBatch = 64

// judged looks at memory for n chains and then visits them in one transaction,
// until visit wants no more; it returns how many it visited.
func (s *Store) judged(n int, chain func(i int) events.Key, visit func(v *view, i int, m *memory) (bool, error)) (looked int, err error) {
	if n == 0 {
		return 0, nil
	}
	kept := make([]memory, n)
	for i := range kept {
		kept[i] = s.remember(chain(i))
	}
	err = s.view(func(v *view) error {
		for more := true; more && looked < n; looked++ {
			var err error
			if more, err = visit(v, looked, &kept[looked]); err != nil {
				return err
			}
		}
		return nil
	})
	return looked, err
}

// Chains returns a page of chains, ordered by tenant, prompt hash, session and
// chain, and the cursor of the next page ("": no more). A filter that matches
// little may give a short or even empty page with a cursor.
func (s *Store) Chains(q ChainQuery) (page []ChainSummary, next string, err error) {
	prefix := q.prefix()
	from, err := start(q.After, prefix)
	if err != nil {
		return nil, "", err
	}
	find := func(_ *view, k, payload []byte) (*found[ChainSummary], error) {
		key, _, err := readName(k, payload)
		if err != nil || !q.matchesKey(key) {
			return nil, err
		}
		return &found[ChainSummary]{chain: key}, nil
	}
	judge := func(v *view, m *memory, f *found[ChainSummary]) (bool, error) {
		sum, err := s.summary(v, f.chain, m)
		if errors.Is(err, ErrNotFound) {
			return false, nil // not published yet
		}
		if errors.Is(err, ErrCorrupt) {
			sum, err = &ChainSummary{Key: f.chain, Damage: err.Error()}, nil
		}
		if err != nil || !q.matchesState(sum) {
			return false, inChain(err, f.chain)
		}
		f.item = *sum
		return true, nil
	}
	page, last, err := pageOf(s, &scan{table: tableNames, prefix: prefix, from: from}, pageLimit(q.Limit), find, judge)
	if err != nil {
		return nil, "", err
	}
	return page, cursor(last), nil
}

// prefix is the beginning of the names that can match.
func (q *ChainQuery) prefix() []byte {
	if q.Tenant == nil {
		return nil
	}
	b := append([]byte(*q.Tenant), 0)
	if q.PromptHash == "" {
		return b
	}
	b = append(append(b, q.PromptHash...), 0)
	if q.Session == "" {
		return b
	}
	return append(append(b, q.Session...), 0)
}

func (q *ChainQuery) matchesKey(k events.Key) bool {
	return (q.Tenant == nil || *q.Tenant == k.Tenant) && (q.PromptHash == "" || q.PromptHash == k.PromptHash) &&
		(q.Session == "" || q.Session == k.Session) && (q.Chain == "" || q.Chain == k.Chain)
}

// asksState tells whether more than a chain's name and run ids counts.
func (q *ChainQuery) asksState() bool {
	return q.Outcome != "" || q.Conformity != "" || q.TraceID != "" || q.SinceMS != 0 || q.UntilMS != 0
}

func (q *ChainQuery) matchesState(s *ChainSummary) bool {
	return (q.Outcome == "" || q.Outcome == s.Outcome) && (q.Conformity == "" || q.Conformity == s.Conformity) &&
		(q.TraceID == "" || s.Anchors.TraceID != nil && *s.Anchors.TraceID == q.TraceID) &&
		q.SinceMS <= s.LastAtMS && (q.UntilMS == 0 || s.LastAtMS < q.UntilMS) &&
		(q.RunID == "" || slices.ContainsFunc(s.RunIDs, func(id string) bool { return strings.HasPrefix(id, q.RunID) }))
}

// readName reads an entry of the table of names: a chain and its number.
func readName(k, payload []byte) (events.Key, uint64, error) {
	key, ok := parseName(k)
	if !ok || len(payload) != 8 {
		return events.Key{}, 0, corrupt(tableNames, k, errCoding.Error())
	}
	return key, number(payload), nil
}

func parseName(k []byte) (events.Key, bool) {
	parts := bytes.Split(k, []byte{0})
	if len(parts) != 4 {
		return events.Key{}, false
	}
	return events.Key{Tenant: string(parts[0]), PromptHash: string(parts[1]), Session: string(parts[2]), Chain: string(parts[3])}, true
}

// Runs returns a page of (run id, chain) pairs, ordered by run id and, within
// one, by when the chains began, and the cursor of the next page ("": no more).
// A filter that matches little may give a short or even empty page with a
// cursor; a chain that cannot be read matches no filter of its state.
func (s *Store) Runs(q RunQuery) (page []RunRecord, next string, err error) {
	var prefix []byte
	if q.RunID != "" {
		prefix = []byte(q.RunID)
	}
	from, err := start(q.After, prefix)
	if err != nil {
		return nil, "", err
	}
	find := func(v *view, k, payload []byte) (*found[RunRecord], error) {
		r, err := v.run(k, payload)
		if err != nil || !(*ChainQuery)(&q).matchesKey(r.Key) {
			return nil, err
		}
		return &found[RunRecord]{chain: r.Key, item: *r}, nil
	}
	judge := func(v *view, m *memory, f *found[RunRecord]) (bool, error) {
		return s.matches(v, (*ChainQuery)(&q), f.chain, m)
	}
	page, last, err := pageOf(s, &scan{table: tableRuns, prefix: prefix, from: from}, pageLimit(q.Limit), find, judge)
	if err != nil {
		return nil, "", err
	}
	return page, cursor(last), nil
}

// matches applies a filter to the state of a chain, which is read only where it counts.
func (s *Store) matches(v *view, q *ChainQuery, key events.Key, m *memory) (bool, error) {
	if !q.asksState() {
		return true, nil
	}
	sum, err := s.summary(v, key, m)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrCorrupt) {
		return false, nil
	}
	if err != nil {
		return false, inChain(err, key)
	}
	return q.matchesState(sum), nil
}

func (v *view) run(k, payload []byte) (*RunRecord, error) {
	var seal runSeal
	if err := decode(tableRuns, k, payload, &seal); err != nil {
		return nil, err
	}
	end := len(k) - 9
	if end < 0 || k[end] != 0 {
		return nil, corrupt(tableRuns, k, errCoding.Error())
	}
	rec, err := v.chainRecord(number(k[end+1:]))
	if err != nil {
		return nil, err
	}
	return &RunRecord{RunID: string(k[:end]), Key: rec.key, Seq: seal.seq}, nil
}

// Rejected returns a page of rejections by ascending ID, and the After of the
// next page (0: no more). Payloads are copies, cut at 1 MiB; a page ends after
// some MiB.
func (s *Store) Rejected(q RejectedQuery) (page []events.Rejection, next uint64, err error) {
	if q.UpTo == 0 {
		q.UpTo = 1<<64 - 1
	}
	if q.Key != nil {
		return s.rejectedOf(q)
	}
	size := 0
	sc := scan{table: tableRejections, from: key64(q.After + 1), limit: pageLimit(q.Limit)}
	sc.match = func(_ *view, k, payload []byte) (bool, error) {
		r := rejection{Rejection: events.Rejection{ID: number(k)}}
		if err := decode(tableRejections, k, payload, &r); err != nil || !q.matches(&r) {
			sc.full = r.ID >= q.UpTo
			return false, err
		}
		page = append(page, r.Rejection)
		size += len(payload)
		sc.full = size > maxPageBytes || r.ID >= q.UpTo
		return true, nil
	}
	last, err := sc.run(s)
	if err != nil {
		return nil, 0, err
	}
	if last != nil && number(last) < q.UpTo {
		next = number(last)
	}
	return page, next, nil
}

func (q *RejectedQuery) matches(r *rejection) bool {
	return r.ID > q.After && r.ID <= q.UpTo && (q.Class == "" || q.Class == r.Class) &&
		(q.Tenant == nil || r.Attributed && *q.Tenant == r.Key.Tenant)
}

// rejectedOf walks the chain's own list.
func (s *Store) rejectedOf(q RejectedQuery) (page []events.Rejection, next uint64, err error) {
	err = s.withChain(*q.Key, func(v *view, cv *chainView) error {
		total := cv.last.counts[listRejected]
		first, err := v.firstRejection(cv, total, q.After)
		if err != nil {
			return err
		}
		own, err := v.missed(cv, q.After, pageLimit(q.Limit)+1) // one more, which tells that there is another page
		if err != nil {
			return err
		}
		if !q.matches(&rejection{Rejection: events.Rejection{ID: q.After + 1, Class: events.ChainDamaged, Attributed: true, Key: *q.Key}}) {
			own.rejected = nil
		}
		size, last := 0, uint64(0)
		for i := first; i < total || len(own.rejected) != 0; {
			if len(page) == pageLimit(q.Limit) || size > maxPageBytes || i == first+scanPerTx {
				next = last
				return nil
			}
			r, err := v.rejectionOf(cv, &i, total, &own)
			if err != nil || r == nil || r.ID > q.UpTo {
				return err
			}
			if last = r.ID; q.matches(r) {
				page = append(page, r.Rejection)
			}
			size += len(r.Payload)
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	return page, next, nil
}

// rejectionOf reads a chain's next rejection: the one at an ordinal of its list, or one
// that it was missed by, whichever was first; nil: there is none.
func (v *view) rejectionOf(cv *chainView, ordinal *uint64, total uint64, own *missed) (r *rejection, err error) {
	if *ordinal < total {
		if r, err = v.rejectionAt(cv, *ordinal); err != nil {
			return nil, err
		}
	}
	if len(own.rejected) != 0 && (r == nil || own.rejected[0] < r.ID) {
		r, err = v.rejection(own.rejected[0])
		own.rejected = own.rejected[1:]
		return r, err
	}
	*ordinal++
	return r, nil
}

// firstRejection is the ordinal of a chain's first rejection with an ID above
// after.
func (v *view) firstRejection(cv *chainView, total, after uint64) (uint64, error) {
	if after == 0 {
		return 0, nil
	}
	var failed error
	i := sort.Search(int(total), func(i int) bool {
		r, err := v.rejectionAt(cv, uint64(i))
		if err != nil {
			failed = err
		}
		return r == nil || r.ID > after
	})
	return uint64(i), failed
}

// rejectionAt reads the rejection at an ordinal of a chain's list; nil: the
// transaction does not know that far.
func (v *view) rejectionAt(cv *chainView, ordinal uint64) (*rejection, error) {
	arrivals, err := v.arrivals(cv, listRejected, ordinal, 1)
	if err != nil || len(arrivals) == 0 {
		return nil, err
	}
	e, err := v.journal(arrivals[0])
	if err != nil {
		return nil, err
	}
	if e == nil || e.verdict != events.Rejected {
		return nil, contradicts(tableJournal, key64(arrivals[0]), "not a rejection")
	}
	r, err := v.rejection(e.rejection)
	if err != nil {
		return nil, err
	}
	r.ProducerSeq = e.ProducerSeq
	return r, nil
}
